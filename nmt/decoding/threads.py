"""Independent pieces of work at once on a CPU: each has a thread of its own, and its share of the cores.

The products of a step leave some of the cores idle, and between them is work that one core does; another batch fills
both. PyTorch computes while Python does not wait for it, so threads are enough.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 4  # pieces at once: each needs memory
_busy = Lock()  # the number of threads is the whole process's business, so one call at a time shares them out
_unwanted: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("_unwanted", default=())  # of the present work


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item], *, most: int = MOST) -> list[Result]:
    """The result of `work` for each of `items`, up to `most` at once where PyTorch has as many threads.

    What `work` raises is raised here, as is an interruption; what has not begun by then is left, and the rest ends when
    it next calls `check`. It must not change what the others read. While this runs, calls from other threads compute
    one item after the other, and a thread that begins sees the share of one item as PyTorch's number of threads.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items), most)
    if workers < 2 or not _busy.acquire(blocking=False):
        return list(map(work, items))
    try:
        return _in_threads(work, items, workers, threads // workers)
    finally:
        torch.set_num_threads(threads)  # it is one number for all that the libraries begin from here on
        _busy.release()


def check() -> None:
    """Raise CancelledError where the result of the work that calls it is not wanted any more; to be called often."""
    if any(unwanted() for unwanted in _unwanted.get()):
        raise CancelledError


@contextmanager
def until(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let `check` raise in this block, and in what it computes side by side, once `unwanted`, which any may call."""
    former = _unwanted.set((*_unwanted.get(), unwanted))
    try:
        yield
    finally:
        _unwanted.reset(former)


def _in_threads(work: Callable[[Item], Result], items: Sequence[Item], workers: int, share: int) -> list[Result]:
    inference, stopped = torch.is_inference_mode_enabled(), Event()

    def alone(item: Item) -> Result:
        with until(stopped.is_set), torch.inference_mode(inference):
            check()
            return work(item)

    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(share,)) as pool:
        try:
            futures = [pool.submit(copy_context().run, alone, item) for item in items]
            return [future.result() for future in futures]
        finally:
            stopped.set()  # without an exception all are done
