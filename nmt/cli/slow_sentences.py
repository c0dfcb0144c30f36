"""The progress of TER, whose search for moved phrases may take minutes for one line: a bar, and which line it is.

It knows the numbers of lines, and no metric.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

PATIENCE = 10.0  # seconds until a warning about a sentence
MOST_TOLD = 5  # sentences


@contextmanager
def sentences_watched(total: int, *, tell: Callable[[int], str]) -> Iterator[Callable[[], None]]:
    """A function to call before each sentence.

    It moves a bar where a person watches. What `tell` says of a sentence, by its number counted from 0, goes to
    standard error when that has taken long.
    """
    done, began, ended = -1, time.monotonic(), Event()
    bar: tqdm[Any]
    with tqdm(total=total, unit=" sentences", desc="TER", disable=None, leave=False, delay=1.0) as bar:

        def begin() -> None:
            nonlocal done, began
            if done >= 0:
                bar.update()
            done, began = done + 1, time.monotonic()

        def watch() -> None:
            told: set[int] = set()
            while not ended.wait(PATIENCE / 10) and len(told) < MOST_TOLD:
                sentence = done
                if sentence >= 0 and sentence not in told and time.monotonic() - began >= PATIENCE:
                    told.add(sentence)
                    tqdm.write(tell(sentence), file=sys.stderr)

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield begin
        finally:
            ended.set()
            watcher.join()
