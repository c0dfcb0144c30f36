"""Allocations that fail, and work that is done in halves until the memory holds it. It knows nothing of the work."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from nmt.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on a GPU or (PyTorch has no class for it) in main memory."""
    texts = (
        *("out of memory", "can't allocate memory", "Storage size calculation overflowed", "STATUS_ALLOC_FAILED"),
        "could not create a primitive",  # oneDNN, which has no other words for it
    )
    failed = isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
    return failed or isinstance(error, MemoryError)


@contextmanager
def enough_memory(advice: str, *, what: str = ", even for one sentence by itself") -> Iterator[None]:
    """Turn a failed allocation in the block, or in the decorated function, into a UserError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"not enough memory{what}: {advice}") from error


def in_halves(work: Callable[[Sequence[Item]], Sequence[Result]], batch: Sequence[Item]) -> list[Result]:
    """The results of `work` for a batch; where the memory does not hold it, for its halves, one after the other.

    An error for a single item is raised as it is.
    """
    try:
        return list(work(batch))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error) or len(batch) < 2:
            raise
    # Here the error is gone, and with it the tensors of the calls that it came through.
    if torch := sys.modules.get("torch"):
        torch.cuda.empty_cache()  # where no GPU is used it does nothing
    middle = len(batch) // 2
    return in_halves(work, batch[:middle]) + in_halves(work, batch[middle:])
