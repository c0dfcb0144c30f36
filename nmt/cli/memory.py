"""What a command says when the memory does not suffice, and what helps then."""

from collections.abc import Iterator
from contextlib import contextmanager

from nmt.errors import UserError

ONE_SENTENCE = ", not even for one sentence by itself"


@contextmanager
def enough_memory(advice: str, *, what: str = ONE_SENTENCE) -> Iterator[None]:
    """Raise UserError with the advice for an allocation that fails in the block, or in a function that it decorates."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        from nmt.ops.memory import out_of_memory  # only here: a command that fails otherwise does not need PyTorch

        if not out_of_memory(error):
            raise
        raise UserError(f"the memory does not suffice{what}: {advice}") from error
