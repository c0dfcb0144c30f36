"""What a command says when the memory does not suffice, and what helps then."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from nmt.errors import UserError

Item = TypeVar("Item")
ONE_SENTENCE = ", not even for one sentence by itself"


@contextmanager
def enough_memory(advice: str, *, what: str = ONE_SENTENCE) -> Iterator[None]:
    """Raise UserError with the advice for an allocation that fails inside the block; `what` it was for."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        from nmt.ops.memory import out_of_memory  # only here: a command that fails otherwise does not need PyTorch

        if not out_of_memory(error):
            raise
        raise UserError(f"the memory does not suffice{what}: {advice}") from error


def within_memory(items: Iterable[Item], *, advice: str) -> Iterator[Item]:
    """The items, as they are made. Raises UserError with the advice when that takes more memory than there is."""
    with enough_memory(advice):
        yield from items
