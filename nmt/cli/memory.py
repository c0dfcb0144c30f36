"""What a command says when the memory does not suffice, even for one sentence at a time."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from nmt.errors import UserError

Item = TypeVar("Item")


@contextmanager
def enough_memory(advice: str) -> Iterator[None]:
    """Raise UserError with the advice for an allocation that fails inside the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        from nmt.ops.memory import out_of_memory  # only here: a command that fails otherwise does not need PyTorch

        if not out_of_memory(error):
            raise
        raise UserError(f"the memory does not suffice, not even for one sentence by itself: {advice}") from error


def within_memory(items: Iterable[Item], *, advice: str) -> Iterator[Item]:
    """The items, as they are made. Raises UserError with the advice when that takes more memory than there is."""
    with enough_memory(advice):
        yield from items
