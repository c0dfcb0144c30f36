"""Cases run in a process of their own, within bounds of time and memory, so that even a library's crash is a finding.

It knows what a finding is; it knows no readers but by the function that runs a case.
"""

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

SECONDS = 2.0  # of processor time a case may take, on a machine that counts to ROUNDS in SECONDS_OF_ROUNDS
ROUNDS, SECONDS_OF_ROUNDS = 500_000, 0.008
MEMORY = 1 << 30  # bytes a case may take
PATIENCE = 60.0  # seconds until a case that does not even compute is given up
_READY = "ready"

OneCase = Callable[[bytes], None]  # raises whatever a reader must not raise
Prepare = Callable[[Path], OneCase]  # makes what the cases need in a folder


class Finding(NamedTuple):
    """What must not have happened; findings with one signature are one fault."""

    signature: str
    detail: str


class Broken(AssertionError):
    """A reader has taken what it must not take, or changed its mind; the text is the same for every such case."""


class TooSlow(BaseException):
    """A case has used up its time. No `except Exception` is to catch it."""


class Worker:
    """A process that runs cases one after another, and is replaced when it dies."""

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.fuzz.readers"])
        self._process: Any = None
        self._connection: Any = None

    def run(self, case: bytes) -> Finding | None:
        """What came of a case; None for nothing bad."""
        self._start()
        try:
            self._connection.send_bytes(case)
            if self._connection.poll(PATIENCE):
                finding: Finding | None = self._connection.recv()
                if finding is not None:
                    self.close()  # whatever the case has left behind
                return finding
            self._process.kill()
            signature = "hangs: no answer, and no processor time used"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(PATIENCE)
            code = self._process.exitcode or 0
            signature = f"crash: {signal.Signals(-code).name}" if code < 0 else f"the process ended with code {code}"
        self.close()
        return Finding(signature, "the process that ran the case is gone")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
            self._folder.cleanup()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        if self._process is not None:
            return
        self._connection, other = self._context.Pipe()
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name).resolve()
        self._process = self._context.Process(target=_serve, args=(self._prepare, folder, other), daemon=True)
        self._process.start()
        other.close()
        assert self._connection.poll(PATIENCE), "the process that runs cases does not start"
        answer = self._connection.recv()
        assert answer == _READY, answer


def _serve(prepare: Prepare, folder: Path, connection: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(folder)
    os.fsync = lambda _: None  # type: ignore[assignment] - nothing here is to outlast a power failure
    try:
        one_case = bounded(prepare(folder))
    except BaseException:
        connection.send(traceback.format_exc())
        return
    connection.send(_READY)
    while True:
        try:
            case = connection.recv_bytes()
        except EOFError:
            return
        connection.send(one_case(case))


def bounded(one_case: OneCase) -> Callable[[bytes], Finding | None]:
    """The function with bounds on time and memory, returning what it finds. Bounds this process for good."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        # Address space is more than memory: each thread reserves some.
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2 * MEMORY,) * 2)
    signal.signal(signal.SIGPROF, _out_of_time)
    limit = SECONDS * max(1.0, _slowness())

    def run(case: bytes) -> Finding | None:
        peak, began = _peak(), time.process_time()
        finding: Finding | None = None
        try:
            signal.setitimer(signal.ITIMER_PROF, limit)
            try:
                one_case(case)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except TooSlow as error:
            finding = Finding(f"too slow: more than {SECONDS:g} s{_place(error)}", _shown(error))
        except MemoryError as error:
            finding = Finding(f"too large: more than {MEMORY >> 20} MiB{_place(error)}", _shown(error))
        except Broken as error:
            finding = Finding(f"broken promise: {error}", _shown(error))
        except BaseException as error:
            if "alloc" in str(error).lower() and isinstance(error, RuntimeError):  # PyTorch's way to say it
                finding = Finding(f"too large: more than {MEMORY >> 20} MiB{_place(error)}", _shown(error))
            else:
                finding = Finding(f"{type(error).__name__}{_place(error)}", _shown(error))
        if finding is None and time.process_time() - began > limit:
            finding = Finding(f"too slow: more than {SECONDS:g} s in a library", "")
        if finding is None and _peak() - peak > MEMORY:
            finding = Finding(f"too large: more than {MEMORY >> 20} MiB, then given back", "")
        return finding

    return run


def _slowness() -> float:
    """How many times as long as the machine that the limit was set on this one takes to count."""
    began = time.process_time()
    for _ in range(ROUNDS):
        pass
    return (time.process_time() - began) / SECONDS_OF_ROUNDS


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def _peak() -> int:
    """The most memory that this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _place(error: BaseException) -> str:
    """The last place in the package that the exception came through; the first, where it could have come anywhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if f"{os.sep}nmt{os.sep}" in frame.filename]
    if not frames:
        return ""
    frame = frames[0] if isinstance(error, TooSlow | MemoryError) else frames[-1]
    return f" in {'/'.join(Path(frame.filename).parts[-3:])}, {frame.name}"


def _shown(error: BaseException) -> str:
    lines = traceback.format_exception(error, limit=-12)
    return "".join(lines)[-4000:]
