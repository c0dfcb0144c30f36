"""Ctrl-C, SIGTERM and a closed terminal during training: asked to stop, a run first saves what it has."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Training was asked to stop, and its state is saved."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class StopRequest:
    """Remembers the first signal until the trainer looks; a second Ctrl-C interrupts at once.

    While `at_once()` is in effect (the state is saved already, as during validation), the first signal interrupts too.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._immediate = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals inside the block, and restore the former handlers after it."""
        former = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside the block a signal, also one that came before, ends training immediately."""
        self._immediate = True
        try:
            self.check()
            yield
        finally:
            self._immediate = False

    def check(self) -> None:
        """Raise Interrupted if a signal has come."""
        if self.number is not None:
            raise Interrupted(self.number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.number is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number
        if self._immediate:
            raise Interrupted(number)
