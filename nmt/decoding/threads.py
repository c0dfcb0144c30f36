"""Independent pieces of work at once on a CPU: each has a thread of its own, and its share of the cores.

The products of a step leave some of the cores idle, and between them is work that one core does; another batch fills
both. PyTorch and ONNX Runtime compute while Python does not wait for them, so threads are enough.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 4  # pieces at once: each needs memory
FEWEST = 8  # sentences of a piece where there are as many: smaller ones cost more than another thread saves
_busy = Lock()  # the number of threads is the whole process's business, so one call at a time shares them out
_share: ContextVar[int | None] = ContextVar("_share", default=None)
_unwanted: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("_unwanted", default=())  # of the present work


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item], *, most: int = MOST) -> list[Result]:
    """The result of `work` for each of `items`, up to `most` at once where there are as many threads.

    What `work` raises is raised here, as is an interruption; what has not begun by then is left, and the rest ends when
    it next calls `check`. It must not change what the others read. While this runs, calls from other threads compute
    one item after the other.
    """
    threads = number()
    workers = min(threads, len(items), most)
    if workers < 2 or not _busy.acquire(blocking=False):
        return list(map(work, items))
    stopped = Event()

    def alone(item: Item) -> Result:
        with until(stopped.is_set), sharing(threads // workers):
            check()
            return work(item)

    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                futures = [pool.submit(copy_context().run, alone, item) for item in items]
                return [future.result() for future in futures]
            finally:
                stopped.set()  # without an exception all are done
    finally:
        _busy.release()


def number() -> int:
    """The threads that a product may have here: a `share`, or PyTorch's number where it is loaded, or as many as the
    variable OMP_NUM_THREADS says, or one for each core that this process may use."""
    if (here := share()) is not None:
        return here
    if (of_pytorch := getattr(sys.modules.get("torch"), "get_num_threads", None)) is not None:
        return int(of_pytorch())
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else _cores()


def share() -> int | None:
    """The threads that the present work may have; None: all."""
    return _share.get()


def sharing(threads: int) -> AbstractContextManager[None]:
    """Let `number` be `threads` in the block."""
    return _having(_share, threads)


@contextmanager
def _having(variable: ContextVar[Item], value: Item) -> Iterator[None]:
    former = variable.set(value)
    try:
        yield
    finally:
        variable.reset(former)


@cache
def _cores() -> int:
    """How many cores this process may use; those that look like two processors count once."""
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = set()
    for processor in processors:
        same = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        cores.add(same.read_text() if same.is_file() else processor)
    return len(cores)


def check() -> None:
    """Raise CancelledError where the result of the work that calls it is not wanted any more; to be called often."""
    if any(unwanted() for unwanted in _unwanted.get()):
        raise CancelledError


def until(unwanted: Callable[[], bool]) -> AbstractContextManager[None]:
    """Let `check` raise in this block, and in what it computes side by side, once `unwanted`, which any may call."""
    return _having(_unwanted, (*_unwanted.get(), unwanted))
