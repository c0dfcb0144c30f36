"""The one exception that means "the user can mend this": printed as messages, never as a traceback, exit code 2."""

from collections.abc import Sequence


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
