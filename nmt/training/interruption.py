"""Ctrl-C, SIGTERM and a closed terminal during training: asked to stop, a run first saves what it has."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Training was asked to stop, and its state is saved. No Exception: no library is to take it for one of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class StopRequest:
    """Remembers the first signal until the trainer looks; a second one, if it is Ctrl-C, has its usual effect.

    While `at_once()` is in effect (the state is saved already, as during validation), the first signal interrupts too.
    torchrun sends SIGTERM after a Ctrl-C that the terminal has sent to all, so that a second SIGTERM changes nothing.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}
        self._immediate = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals inside the block, and restore the former handlers after it."""
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # what nohup asks for
                self._former[number] = signal.signal(number, self._handle)
        try:
            yield
        finally:
            for each, handler in self._former.items():
                signal.signal(each, handler)

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
        if self.number is None:
            self.number = number
            if self._immediate:
                raise Interrupted(number)
        elif number == signal.SIGINT:
            former = self._former[number]
            if not callable(former):  # ignored before
                raise KeyboardInterrupt
            former(number, frame)
