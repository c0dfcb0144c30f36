"""The toolkit's commands in forked children of a process that has imported everything, or in fresh processes.

Forking spares a child the seconds of importing PyTorch; the forking process must have one thread. A child has its own
folder to work in, its output in files, and bounds: memory, and time, after which it counts as hanging.
"""

import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import nmt.cli.init_folder
import nmt.cli.translation
import nmt.experiment.training  # noqa: F401 - what commands import late, and the forking process before them
from nmt.cli import init, shortlist, train, translate
from tests.torture.faults import Fault, Striker
from tests.torture.operations import Operation

MAINS = {"init": init.main, "train": train.main, "translate": translate.main, "shortlist": shortlist.main}
MEMORY = 3 << 30  # bytes that a child may ask for
PATIENCE = 600.0  # seconds that a child has; a busy machine may be slow without anything hanging
HANGING = -1000  # the exit code of what had to be killed because it did not end


class Ended(NamedTuple):
    """How a command ended: its exit code, negative for a signal's number, and what it wrote to standard error."""

    code: int
    errors: str
    operations: list[Operation]


class Child:
    """A running command."""

    def __init__(self, process: int, errors: IO[bytes], operations: IO[bytes], paused: int, go_on: int) -> None:
        self.process = process
        self._errors, self._operations, self._paused, self._go_on = errors, operations, paused, go_on

    def wait_until_paused(self) -> bool:
        """Wait for a fault's pause; False where the command ends without it."""
        ready, _, _ = select.select([self._paused], [], [], PATIENCE)
        return bool(ready) and os.read(self._paused, 6) == b"paused"

    def go_on(self) -> None:
        """End the pause."""
        os.write(self._go_on, b"\n")

    def kill_after(self, seconds: float) -> None:
        """kill -9 after so many seconds, unless it has ended."""
        ready, _, _ = select.select([self._paused], [], [], seconds)  # its end closes the pipe
        if not ready:
            os.kill(self.process, signal.SIGKILL)

    def ended(self) -> Ended:
        """Wait for its end."""
        ready, _, _ = select.select([self._paused], [], [], PATIENCE)
        if not ready:
            os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        os.close(self._paused)
        os.close(self._go_on)
        texts = []
        for file in (self._errors, self._operations):
            with file:
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        operations = [Operation(*fields) for fields in json.loads(texts[1] or "[]")]
        code = os.waitstatus_to_exitcode(status) if ready else HANGING
        return Ended(-signal.SIGKILL if code == 137 else code, texts[0], operations)


def start(
    program: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    fault: Fault | None = None,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Fork a child that runs a command in `folder`."""
    paused, says_paused = os.pipe()
    hears, go_on = os.pipe()
    errors, operations = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by `ended`
    process = os.fork()
    if process == 0:
        for descriptor in (paused, go_on):
            os.close(descriptor)
        _run(program, arguments, folder, fault or Fault(), environment or {}, errors, operations, says_paused, hears)
    for descriptor in (says_paused, hears):
        os.close(descriptor)
    return Child(process, errors, operations, paused, go_on)


def call(program: str, arguments: Sequence[str], folder: Path, *, fault: Fault | None = None) -> Ended:
    """Run a command to its end."""
    return start(program, arguments, folder, fault=fault).ended()


def start_ranks(
    program: str, arguments: Sequence[str], folder: Path, count: int, faults: Mapping[int, Fault]
) -> list[Child]:
    """The processes of a job as torchrun starts them, forked; the faults are those of some ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        start(
            program,
            arguments,
            folder,
            fault=faults.get(rank),
            environment={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(count)
    ]


def in_a_child(body: Callable[[], object]) -> None:
    """Call a function in a forked process, lest it starts threads in this one."""
    process = os.fork()
    if process == 0:
        try:
            body()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        raise RuntimeError("a forked process failed")


def _run(
    program: str,
    arguments: Sequence[str],
    folder: Path,
    fault: Fault,
    environment: Mapping[str, str],
    errors: IO[bytes],
    operations: IO[bytes],
    paused: int,
    go_on: int,
) -> NoReturn:
    """What a child does."""
    code = 1
    seen: list[Operation] = []
    record = os.fdopen(os.dup(operations.fileno()), "wb")  # before its functions are replaced
    try:
        os.chdir(folder)
        os.environ.update(environment)
        os.dup2(errors.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        seen = Striker(fault, paused=paused, go_on=go_on).install().seen
        code = MAINS[program](arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        traceback.print_exc()
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        record.write(json.dumps(seen).encode())
        record.flush()
        os._exit(code)
