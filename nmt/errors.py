"""The one exception that means "the user can mend this": printed as messages, never as a traceback, exit code 2.

Mistakes are reported all at once. What checks what it was given is a function that yields its problems and returns what
it has read; `caught` makes one of a function that raises, and `checked` runs them all.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

Result = TypeVar("Result")
Otherwise = TypeVar("Otherwise")
Checking = Generator[str, None, Result]  # yields problems, and returns what was read


class UserError(Exception):
    """One or several mistakes in what the user gave, each a complete message.

    A message says what was given, where (file, line, key), what is allowed and, where there is one, the nearest match.
    """

    def __init__(self, *messages: str) -> None:
        if not messages:
            raise ValueError("a UserError needs at least one message")
        super().__init__("\n".join(messages))
        self.messages: Sequence[str] = messages


class DamagedFile(UserError):
    """A file is not what was written: cut short, overwritten, or with a bit that has changed."""


def caught(check: Callable[[], Result], otherwise: Otherwise) -> Checking[Result | Otherwise]:
    """Yield what is wrong as `check` says by raising; return its result, or `otherwise` where it has none."""
    try:
        return check()
    except UserError as error:
        yield from error.messages
    except OSError as error:  # a path that cannot even be asked about: too long a name, a folder that is closed to us
        yield f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return otherwise


def checked(checking: Checking[Result]) -> Result:
    """What was read, once all of it has been checked. Raises UserError with all problems."""
    problems = []
    while True:
        try:
            problems.append(next(checking))
        except StopIteration as end:
            if problems:
                raise UserError(*problems) from None
            return end.value
