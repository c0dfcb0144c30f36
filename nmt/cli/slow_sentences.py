"""The progress of TER, whose search for moved phrases may take minutes for one line: a bar, and which line it is.

It knows the numbers of lines, and no metric.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

PATIENCE = 10.0  # seconds until a warning about a sentence
MOST_TOLD = 5  # sentences


@contextmanager
def sentences_watched(
    total: int, *, tell: Callable[[int], str]
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A function that makes the block in which a sentence is computed.

    It moves a bar where a person watches. What `tell` says of a sentence, by its number counted from 0, goes to
    standard error when that has taken long.
    """
    done, began, ended = 0, math.inf, Event()  # ∞: no sentence is being computed
    bar: tqdm[Any]
    with tqdm(total=total, unit=" sentences", desc="TER", disable=None, leave=False, delay=1.0) as bar:

        @contextmanager
        def sentence() -> Iterator[None]:
            nonlocal done, began
            began = time.monotonic()
            yield
            began = math.inf
            done += 1
            bar.update()

        def watch() -> None:
            told: set[int] = set()
            while not ended.wait(PATIENCE / 10) and len(told) < MOST_TOLD:
                number, took = done, time.monotonic() - began
                if number not in told and took >= PATIENCE:
                    told.add(number)
                    tqdm.write(tell(number), file=sys.stderr)

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield sentence
        finally:
            ended.set()
            watcher.join()
