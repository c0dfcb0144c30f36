"""Standard input as lines of bytes; it knows whether the next line has arrived or has to be waited for.

A program at the other end of a pipe may write one line and wait for its answer before it writes the next. Python's own
buffered reader cannot say whether more is there, so the descriptor is read directly. A line without an end is cut off
where it has become longer than `corpus.lines_of` allows, and reading stops.
"""

import select
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from nmt.cli.outputs import is_device, is_of
from nmt.data.corpus import LONGEST_LINE
from nmt.errors import UserError

GRACE = 0.02  # seconds that a program gets to write the next line, so that a busy one has its lines translated together
_CHUNK = 1 << 16  # bytes read at once: what a pipe holds


class Lines:
    """The lines of standard input, open as `descriptor`, with their line ends (0x0A)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()  # complete and not yet asked for
        self._rest = bytearray()  # the beginning of the next line
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line as soon as it is complete. Raises UserError if reading fails."""
        while self._lines or not self._ended:
            if self._lines:
                yield self._lines.popleft()
            else:
                self._read()

    def waiting(self) -> bool:
        """Whether the next line has not arrived; False at the end of the input."""
        while not self._lines and not self._ended:
            if not self._readable(GRACE):
                return True
            self._read()
        return False

    def _readable(self, seconds: float | None) -> bool:
        try:
            return bool(select.select([self._descriptor], [], [], seconds)[0])
        except OSError:  # Windows can only ask sockets: what has not arrived together counts as not arrived
            return False

    def _read(self) -> None:
        try:
            self._readable(None)  # another process may have made it non-blocking
            with open(self._descriptor, "rb", buffering=0, closefd=False) as file:  # UTF-8, also of Windows' console
                chunk = file.read(_CHUNK)
        except OSError as error:
            raise UserError(f"standard input: cannot be read ({error.strerror or error})") from None
        if chunk is None:  # another process was faster
            return
        self._ended = not chunk
        self._rest += chunk
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            self._lines.extend(bytes(line) + b"\n" for line in lines)
        self._ended = self._ended or len(self._rest) > LONGEST_LINE
        if self._ended and self._rest:
            self._lines.append(bytes(self._rest))


def is_standard_input(path: Path) -> bool:
    """Whether the path, such as /dev/stdin, is of the pipe or terminal that standard input reads; not of a file that it
    was redirected from, which can be opened again."""
    return is_device(path) and is_of(sys.stdin, path)
