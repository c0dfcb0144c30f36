"""Ctrl-C, SIGTERM and a closed terminal: whenever they come, a command ends with one line and the signal's exit code.

After the first signal a command cleans up, if it has anything to clean up; the next one ends the process at once, so
that no signal can interrupt the handling of another. A job that has something to save asks a StopRequest now and then.
Nothing heavy is imported here, since signals have to be handled during the other imports, which take seconds.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}

Handler = Callable[[int, FrameType | None], None]


class Stopped(KeyboardInterrupt):
    """A signal has arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupted(BaseException):
    """A job was asked to stop, and its state is saved. No Exception, so that no library catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class StopRequest:
    """Remembers the first signal until the job checks; a second Ctrl-C has its usual effect.

    Within `at_once()` (all is saved already, as during validation) the first signal interrupts, too. A second SIGTERM
    has no effect, because torchrun sends one after the terminal has sent a Ctrl-C to all processes.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}
        self._immediate = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle signals in the block, and restore the former handlers after it.

        In another thread than the main one, where Python handles no signals, there is nothing to handle.
        """
        for number in WORDS if current_thread() is main_thread() else ():
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # what nohup asks for
                self._former[number] = signal.signal(number, self._handle)
        try:
            yield
        finally:
            for former, handler in self._former.items():
                signal.signal(former, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """In the block a signal ends the job immediately, even one that came before."""
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
    """Whether the user was told why the command ends, and whether the process is already ending."""

    yet = leaving = False


def forget() -> None:
    """Begin a command, about which nothing was told yet."""
    _Told.yet = False


@contextmanager
def telling() -> Iterator[None]:
    """Tell the user in the block why the command ends: no signal interrupts it, or tells more afterwards."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, WORDS)
    try:
        _Told.yet = True
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def tell(program: str, stop: BaseException) -> int:
    """Say that a signal ends the command, unless that was said already; returns the exit code."""
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    if not _Told.yet and is_heard():
        with telling(), suppress(OSError):  # a closed terminal
            print(_line(program, number), file=sys.stderr)
    return 128 + number


def leaving(program: str) -> Handler:
    """A handler that ends the process at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if _Told.leaving:
            return  # the interrupted handler goes on
        _Told.leaving = True
        if not _Told.yet and is_heard():
            with suppress(OSError, ValueError, AttributeError):  # no print: it may have been interrupted
                os.write(sys.__stderr__.fileno(), f"{_line(program, number)}\n".encode())  # type: ignore[union-attr]
        os._exit(128 + number)

    return handle


def raising(program: str) -> Handler:
    """A handler that raises Stopped, so that open files are closed; the next signal ends the process at once.

    So does the first one if the user was told already that the command ends: nothing important is left to close.
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
    """Install the handler in the block, and restore the former ones after it."""
    former = _install(handler)
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


def started(program: str, load: Callable[[], Callable[[], int]]) -> int:
    """Run the command that `load` imports and return its exit code; an unhandled signal ends the process at once.

    After a signal the process ends here, because a second one would disturb Python's own shutdown.
    """
    sys.unraisablehook = _unraisable(program)
    _install(leaving(program))
    try:
        code = load()()
    finally:
        _install(signal.SIG_IGN)  # all is done; Python's shutdown takes a moment
    if _Told.yet:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def _unraisable(program: str) -> Callable[["sys.UnraisableHookArgs"], None]:
    """A hook for a signal that arrived where Python cannot raise, as in a finalizer: it ends the process.

    Interrupted is ignored here, since its StopRequest remembers the signal.
    """
    otherwise = sys.unraisablehook

    def handle(unraisable: "sys.UnraisableHookArgs") -> None:
        if isinstance(unraisable.exc_value, Stopped):
            leaving(program)(unraisable.exc_value.number, None)
        elif not isinstance(unraisable.exc_value, Interrupted):
            otherwise(unraisable)

    return handle


def _install(handler: "Handler | signal.Handlers") -> dict[int, "Handler | int | signal.Handlers"]:
    """Set the handler for all signals except those that the process ignores; returns the former handlers."""
    former: dict[int, Handler | int | signal.Handlers] = {}
    with suppress(ValueError):  # only the main thread may handle signals
        for number in WORDS:
            before = signal.getsignal(number)
            if before is not None and before != signal.SIG_IGN:
                signal.signal(number, handler)
                former[number] = before
    return former


def _line(program: str, number: int) -> str:
    begin = "\n" if sys.__stderr__ is not None and not sys.__stderr__.closed and sys.__stderr__.isatty() else ""
    return f"{begin}{program}: {WORDS[signal.Signals(number)]}"  # on a terminal below ^C or a progress bar


def is_heard() -> bool:
    """Whether this process tells the user what all would tell: of several on a machine, only the first does."""
    rank = os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0"))
    return os.environ.get("WORLD_SIZE", "1") == "1" or rank == "0"
