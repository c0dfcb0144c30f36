"""Ctrl-C, SIGTERM, and a closed terminal: whenever they come, a command ends with one line and the signal's exit code.

The first signal raises Stopped, a KeyboardInterrupt, so that open files are closed; the next one ends the process at
once. Before a command has begun, the first one does. A training, which has to save something first, asks a StopRequest
between updates. Signals that the process ignores, as nohup asks, stay ignored.

Nothing heavy is imported here, since signals have to be handled during the other imports, which take seconds.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

PATIENCE = 30  # minutes until a process that does not answer counts as lost; it may be scoring a long line
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):  # Windows has none
    WORDS[signal.SIGHUP] = "hung up"

Handler = Callable[[int, FrameType | None], None]


class Stopped(KeyboardInterrupt):
    """A signal ends the command. Whoever has saved something on the way out says so in `saved`."""

    saved = ""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupted(BaseException):
    """A training was asked to stop, and its state is saved. Subclasses BaseException so libraries don't swallow it."""

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
        """Handle signals in the block, and restore the former handlers after it."""
        with handled(self._handle) as self._former:
            yield

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
            former = self._former.get(number)
            if not callable(former):  # ignored before
                raise KeyboardInterrupt
            former(number, frame)


class _Ending:
    """Whether the user was told why the command ends, is being told, and whether the process is already leaving."""

    reported = reporting = leaving = False


def begin() -> None:
    """Begin a command, about whose end nothing was reported yet."""
    _Ending.reported = False


@contextmanager
def reporting() -> Iterator[None]:
    """Tell the user in the block why the command ends: a signal there has no effect, and none reports more afterwards.

    A mask of signals is of one thread: another, such as tqdm's, would take the signal, and its handler run here.
    """
    _Ending.reported = _Ending.reporting = True
    try:
        yield
    finally:
        _Ending.reporting = False


def report(program: str, stop: KeyboardInterrupt) -> int:
    """Say that a signal ends the command, unless that was reported already; returns the exit code."""
    number, saved = (stop.number, stop.saved) if isinstance(stop, Stopped) else (signal.SIGINT, "")
    if not _Ending.reported and reports():
        with reporting(), suppress(OSError):  # a closed terminal
            print(_line(program, number) + (saved and f"; {saved}"), file=sys.stderr)
    return 128 + number


def leaving(program: str) -> Handler:
    """A handler that ends the process at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if _Ending.leaving or _Ending.reporting:
            return  # the interrupted handler, or report, goes on
        _Ending.leaving = True
        if not _Ending.reported and reports():
            with suppress(OSError, ValueError, AttributeError):  # no print: it may have been interrupted
                os.write(sys.__stderr__.fileno(), f"{_line(program, number)}\n".encode())  # type: ignore[union-attr]
        os._exit(128 + number)

    return handle


@contextmanager
def handled(handler: Handler) -> "Iterator[dict[int, Handler | int | signal.Handlers]]":
    """Install the handler in the block, and restore the former ones, which the block gets, after it."""
    former = _install(handler)
    try:
        yield former
    finally:
        for number, before in former.items():
            signal.signal(number, before)


@contextmanager
def raised(program: str) -> Iterator[None]:
    """In the block the first signal raises Stopped, and the next one ends the process at once.

    So does the first one if the end of the command was reported already: nothing important is left to close. And so it
    does during an import, where libraries may swallow what is raised.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        leave = leaving(program)
        if _Ending.reported or _imports(frame):
            return leave(number, frame)
        _install(leave)
        raise Stopped(number)

    with handled(handle):
        yield


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
    if _Ending.reported:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def reports() -> bool:
    """Whether this process says what all would say: of several on a machine, only the first does."""
    rank = os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0"))
    return os.environ.get("WORLD_SIZE", "1") == "1" or rank == "0"


def _imports(frame: FrameType | None) -> bool:
    """Whether the code of the frame is called by an import."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


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
