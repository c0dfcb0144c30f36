"""What a person sees of a training: its log, in a file and on the terminal, and a line there that moves."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.files import open_refusing_links


@contextmanager
def logging_to(path: Path) -> Iterator[Callable[[str], None]]:
    """A function that appends a line to the file, unless it is a link, and writes it to stderr above a progress bar.

    It raises OSError if the file cannot be written, as on a full disk. A terminal that has gone away (a closed
    session, `| head`) does not end the training: the file has every line.
    """
    with open_refusing_links(path, "a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:

        def log(message: str) -> None:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")
            file.flush()
            if sys.stderr is not None:
                with suppress(OSError, ValueError):
                    tqdm.write(message, file=sys.stderr)

        yield log


def progress_bar(epoch: int, done: int, batches: int, *, is_shown: bool) -> "tqdm[Any]":
    """A line on a terminal that shows how far the epoch is; nothing elsewhere."""
    hidden = None if is_shown and sys.stderr is not None else True  # None: where there is no terminal
    return tqdm(
        desc=f"epoch {epoch}",
        initial=done,
        total=batches,
        leave=False,
        disable=hidden,
        dynamic_ncols=True,
        bar_format="{desc}: {percentage:3.0f}% of {total_fmt} batches, {remaining} left{postfix}",
    )
