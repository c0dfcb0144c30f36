"""Ctrl-C, SIGTERM and a closed terminal: whenever they come, a command ends with one line, and its signal's exit code.

A command that has something to clean up does that after the first signal; the next one ends the process at once, so
that no signal can hit what answers another. A job that has something to save makes a StopRequest and asks it now and
then. Nothing heavy is imported here, because this is in effect while the rest is imported, which takes seconds.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

JOB_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

Handler = Callable[[int, FrameType | None], None]


class Stopped(KeyboardInterrupt):
    """A signal has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupted(BaseException):
    """A job was asked to stop, and what it has is saved. No Exception: no library is to take it for one of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class StopRequest:
    """Remembers the first signal until the job looks; a second one, if it is Ctrl-C, has its usual effect.

    While `at_once()` is in effect (all is saved already, as during validation), the first signal interrupts too.
    torchrun sends SIGTERM after a Ctrl-C that the terminal has sent to all, so that a second SIGTERM changes nothing.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}
        self._immediate = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals inside the block, and restore the former handlers after it."""
        for number in JOB_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # what nohup asks for
                self._former[number] = signal.signal(number, self._handle)
        try:
            yield
        finally:
            for former, handler in self._former.items():
                signal.signal(former, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside the block a signal, also one that came before, ends the job immediately."""
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


class _Told:
    """Whether the user was told why the command ends, and whether the process is ending already."""

    yet = leaving = False


def forget() -> None:
    """Begin a command: nothing was told of it."""
    _Told.yet = False


@contextmanager
def telling() -> Iterator[None]:
    """In the block the user is told why the command ends, which nothing interrupts; then no signal tells more."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, WORDS)
    try:
        _Told.yet = True
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def tell(program: str, stop: BaseException) -> int:
    """Say that a signal ends the command, unless that was said; returns the exit code."""
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    if not _Told.yet and is_heard():
        with telling():
            print(_line(program, number), file=sys.stderr)
    return 128 + number


def leaving(program: str) -> Handler:
    """A handler that ends the process at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if _Told.leaving:
            return  # this signal has interrupted what follows, which goes on
        _Told.leaving = True
        if not _Told.yet and is_heard():
            with suppress(OSError, ValueError, AttributeError):  # not by print, which may be what was interrupted
                os.write(sys.__stderr__.fileno(), f"{_line(program, number)}\n".encode())  # type: ignore[union-attr]
        os._exit(128 + number)

    return handle


def raising(program: str) -> Handler:
    """A handler that raises Stopped, so that all that is open is closed; the next signal ends the process at once.

    So does the first one where the user was told already that the command ends: nothing is left to close that matters.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        leave = leaving(program)
        if _Told.yet:
            leave(number, frame)
        _install(leave)
        raise Stopped(number)

    return handle


@contextmanager
def handled(handler: Handler) -> Iterator[None]:
    """Inside the block the handler is called for the signals, and after it the former ones."""
    former = _install(handler)
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


def started(program: str, load: Callable[[], Callable[[], int]]) -> int:
    """The exit code of the command that `load` imports; a signal ends the process at once, unless it is `handled`.

    A process that a signal has ended does not return: what Python does at its end would take a second one badly.
    """
    sys.unraisablehook = _unraisable(program)
    _install(leaving(program))
    try:
        code = load()()
    finally:
        _install(signal.SIG_IGN)  # all is done, and Python's own end, which takes a moment, would not say so
    if _Told.yet:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def _unraisable(program: str) -> Callable[["sys.UnraisableHookArgs"], None]:
    """What becomes of a signal that came while Python called what may not raise, as a finalizer: it ends the process.

    A job, which is asked to stop by Interrupted, remembers that by itself.
    """
    otherwise = sys.unraisablehook

    def handle(unraisable: "sys.UnraisableHookArgs") -> None:
        if isinstance(unraisable.exc_value, Stopped):
            leaving(program)(unraisable.exc_value.number, None)
        elif not isinstance(unraisable.exc_value, Interrupted):
            otherwise(unraisable)

    return handle


def _install(handler: "Handler | signal.Handlers") -> dict[int, "Handler | int | signal.Handlers"]:
    """Set the handler for all signals but those that the process was started to ignore; returns the former ones."""
    former: dict[int, Handler | int | signal.Handlers] = {}
    with suppress(ValueError):  # only the main thread is told of signals
        for number in WORDS:
            before = signal.getsignal(number)
            if before is not None and before != signal.SIG_IGN:
                signal.signal(number, handler)
                former[number] = before
    return former


def _line(program: str, number: int) -> str:
    begin = "\n" if sys.__stderr__ is not None and not sys.__stderr__.closed and sys.__stderr__.isatty() else ""
    return f"{begin}{program}: {WORDS[signal.Signals(number)]}"  # on a terminal not behind ^C or a progress bar


def is_heard() -> bool:
    """Of several processes of a command the first of each machine tells."""
    return os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("LOCAL_RANK", "0") == "0"
