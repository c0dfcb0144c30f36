"""Lines of a file by their numbers, as chunks of a translation need them."""

from itertools import islice
from pathlib import Path

from nmt.data.corpus import read_lines
from nmt.errors import UserError


class NumberedLines:
    """A file of lines, read from its beginning to the end as long as what is asked for lies ahead."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_lines(path)
        self._next = 0

    def lines(self, first: int, count: int) -> list[str]:
        """So many lines from line `first` on, counted from 0. Raises UserError where the file has become shorter."""
        if first < self._next:
            self._lines, self._next = read_lines(self._path), 0
        found = list(islice(self._lines, first - self._next, first - self._next + count))
        self._next = first + count
        if len(found) < count:
            raise UserError(f"{self._path}: has become shorter since the translation began")
        return found
