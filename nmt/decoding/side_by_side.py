"""Independent pieces of work at once on a CPU: each has a thread of its own, and its share of the cores.

The products of a step leave some of the cores idle, and between them is work that one core does; another batch fills
both. PyTorch computes while Python does not wait for it, so threads are enough.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST = 4  # pieces at once: each needs memory


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The result of `work` for each of `items`, several at once where PyTorch has several threads.

    What `work` raises is raised here; what has not begun by then is left. It must not change what the others read.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items), MOST)
    if workers < 2:
        return [work(item) for item in items]
    inference = torch.is_inference_mode_enabled()

    def alone(item: Item) -> Result:
        with torch.inference_mode(inference):
            return work(item)

    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(threads // workers,)) as pool:
        try:
            futures = [pool.submit(copy_context().run, alone, item) for item in items]
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)  # it is one number for all that the libraries begin from here on
