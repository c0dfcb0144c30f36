"""Work in forked children: each has a folder, a process group and bounded memory of its own, and says how it ended.

Knows nothing of tests. A child that is ended takes along what it has started.
"""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

DONE, FAILED = 0, 1  # how a child ends
MOST_MEMORY = 3 << 30  # bytes beyond what the process had

Tell = Callable[..., None]


def told(work: Callable[[Tell], None]) -> Iterator[list[Any]]:
    """What a child says while it works: it calls its argument with what JSON can say."""
    reader, writer = os.pipe()

    def tell(*message: object) -> None:
        os.write(writer, (json.dumps(message) + "\n").encode())

    def said_and_done() -> None:
        os.close(reader)
        work(tell)

    child = start(said_and_done, limited=False)
    os.close(writer)
    try:
        with open(reader, encoding="utf-8") as lines:
            yield from map(json.loads, lines)
        if wait([child])[1] != DONE:
            yield ["error", "a process ended before its time"]
    except BaseException:
        os.kill(child, signal.SIGTERM)
        wait([child])
        raise


def start(work: Callable[[], None], *, limited: bool = True) -> int:
    """Begin work in a child with a folder for its files, in a process group of its own; returns its process id."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the child has it to write, too
    pid = os.fork()
    if pid:
        return pid
    status = FAILED
    try:
        os.setpgid(0, 0)
        folder = _folder(os.getpid())
        folder.mkdir()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        if limited:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _limit_memory()
        work()
        status = DONE
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait(running: Sequence[int]) -> tuple[int, int]:
    """Wait until a child ends: (its process id, its exit status, or minus the signal that ended it)."""
    try:
        pid, status = os.wait()
    except KeyboardInterrupt:
        for child in running:
            os.killpg(child, signal.SIGTERM)
        raise
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what it has started
    shutil.rmtree(_folder(pid), ignore_errors=True)
    return pid, os.waitstatus_to_exitcode(status)


def interrupt_on_termination() -> None:
    """Have SIGTERM end this process and those it starts as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _folder(pid: int) -> Path:
    return Path(tempfile.gettempdir()) / f"mutant-{pid}"


def _limit_memory() -> None:
    status = Path("/proc/self/statm")
    if status.exists():
        size = int(status.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, size + MOST_MEMORY))


def quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
