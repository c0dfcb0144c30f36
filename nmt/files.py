"""Writing files so that a crash at any moment leaves either the old file or the new one, never half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_atomically(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file beside `path` for writing, and rename it to `path` once the block ends without an exception.

    `mode` is "w" (UTF-8 text, `\\n` line ends) or "wb". The content is flushed to the disk before the rename.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(beside, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
