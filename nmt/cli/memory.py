"""What commands say if there is not enough memory, and what helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from nmt.errors import UserError

ONE_SENTENCE = ", even for one sentence by itself"


@contextmanager
def enough_memory(advice: str, *, what: str = ONE_SENTENCE) -> Iterator[None]:
    """Turn a failed allocation in the block, or in the decorated function, into a UserError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        from nmt.ops.memory import out_of_memory  # only here: a command that fails otherwise does not need PyTorch

        if not out_of_memory(error):
            raise
        raise UserError(f"not enough memory{what}: {advice}") from error
