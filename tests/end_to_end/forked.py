"""Commands in processes of one thread, forked from one that has imported them, so that none spends seconds on that.

They have arguments, an environment, and signals of their own. Unlike processes that are started afresh, all of them
have one hash seed, and they end without Python's own shutdown; and nobody watches over those of a job. Proofs that
depend on this need processes of their own, or torchrun's.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from threading import Thread, Timer
from typing import NamedTuple

import torch
from torch.distributed import TCPStore

from nmt.cli import start
from nmt.training.dry_run import resident

PATIENCE = 300.0  # seconds that a process has

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, "tests.end_to_end.warm", "tests.fuzz.readers"])  # one forks for both


@atexit.register
def _kill_all() -> None:
    """Also those that a failed test has left standing still, for which Python would wait."""
    for process in multiprocessing.active_children():
        process.kill()


@cache
def _folder() -> TemporaryDirectory[str]:
    """For what the processes say."""
    return TemporaryDirectory()


def arguments(config: Path, output: Path) -> list[str]:
    """Arguments that trainings by these tests have in common."""
    return ["--config", str(config), "--output", str(output), "--device", "cpu"]


class Ended(NamedTuple):
    """How a command ended: its exit code, what it wrote, and the most memory that it had, in MB; 0 if nobody knows."""

    code: int
    output: bytes
    errors: str
    peak: int


class Forked:
    """A process of a command (train, translate, …) that has been started; what it says on standard error is kept.

    It reads nothing and what it writes is lost, unless connections take the places of these streams. What is to be
    done in the process `before` the command begins is a function of a module, or a partial one.
    """

    def __init__(
        self,
        command: str,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        streams: Mapping[int, Connection] | None = None,
        before: Callable[[], object] | None = None,
    ) -> None:
        descriptor, name = mkstemp(dir=_folder().name)
        os.close(descriptor)
        self._said = Path(name)
        words = [str(argument) for argument in arguments]
        call = (command, words, name, dict(environment or {}), dict(streams or {}), before)
        self._process = _FORKING.Process(target=_run, args=call, daemon=True)
        self._process.start()

    def poll(self) -> int | None:
        """The exit code, minus the number of a signal that killed it; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Does nothing if the process has ended."""
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it, also if it stands still."""
        self._process.kill()
        self._process.join()

    def finish(self) -> tuple[int, str]:
        """Wait for the end, at most five minutes; the exit code, and what was said."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            self.kill()
        said = self._said.read_text(encoding="utf-8")
        assert code is not None, f"still running after five minutes: {said}"
        return code, said

    def peak(self) -> int:
        """The most memory that it had until it ended by itself, in MB, or 0 where nobody knows."""
        path = Path(f"{self._said}.peak")
        return int(path.read_text(encoding="ascii") or 0) if path.exists() else 0


def run(command: str, *arguments: object, text: bytes = b"") -> Ended:
    """Run a command that reads `text` from a pipe and writes to one."""
    source, feed = _FORKING.Pipe(duplex=False)
    result, sink = _FORKING.Pipe(duplex=False)
    process = Forked(command, *arguments, streams={0: source, 1: sink})
    source.close()
    sink.close()
    feeding = Thread(target=_write_all, args=(feed, text), daemon=True)
    feeding.start()
    deadline = Timer(PATIENCE, process.kill)
    deadline.daemon = True
    deadline.start()
    with open(os.dup(result.fileno()), "rb") as pipe:
        output = pipe.read()
    result.close()
    code, errors = process.finish()
    deadline.cancel()
    feeding.join()
    return Ended(code, output, errors, process.peak())


class Job:
    """Several processes of one command, told of each other as by torchrun, with a store like the one that it keeps."""

    def __init__(self, processes: int, command: str, *arguments: object) -> None:
        self._store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        place = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(self._store.port)}
        shared = {**place, "TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": str(processes)}
        self.processes = [
            Forked(command, *arguments, environment={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(processes)
        ]

    def finish(self, *, as_torchrun: bool = False) -> tuple[int, str]:
        """Wait for the end of all; the first exit code but 0, and what they said, one after the other.

        `codes` then has the exit codes of all. As torchrun does, the others can be sent SIGTERM when one has failed.
        """
        deadline = time.monotonic() + PATIENCE
        while any(process.poll() is None for process in self.processes) and time.monotonic() < deadline:
            if as_torchrun and any(process.poll() for process in self.processes):
                for process in self.processes:
                    process.send_signal(signal.SIGTERM)
                as_torchrun = False
            time.sleep(0.02)
        self.kill()  # what still runs, whose code is then that of the signal
        ended = [process.finish() for process in self.processes]
        self.codes = [code for code, _ in ended]
        return next(filter(None, self.codes), 0), "".join(said for _, said in ended)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()


def _write_all(feed: Connection, text: bytes) -> None:
    """Write to a pipe, whose reader may be gone before the end, and close it."""
    with suppress(BrokenPipeError), open(os.dup(feed.fileno()), "wb") as pipe:
        feed.close()
        pipe.write(text)


def _run(
    command: str,
    arguments: Sequence[str],
    said: str,
    environment: Mapping[str, str],
    streams: Mapping[int, Connection],
    before: Callable[[], object] | None,
) -> None:
    multiprocessing.set_start_method("fork", force=True)  # or the lock of tqdm is left behind where this is killed
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts commands in the background without it
    os.setsid()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for descriptor, path in enumerate((os.devnull, os.devnull, said)):
        if descriptor in streams:
            os.dup2(streams[descriptor].fileno(), descriptor)
            streams[descriptor].close()
        else:
            opened = os.open(path, os.O_RDWR)
            os.dup2(opened, descriptor)
            os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - multiprocessing has closed the former
    sys.argv = [command, *arguments]
    peak = os.open(f"{said}.peak", os.O_WRONLY | os.O_CREAT)
    if before is not None:
        before()
    try:
        sys.exit(start.main(f"nmt-{command}"))
    finally:
        if Path("/proc/self/status").exists():  # not `resource`, which counts what the forking process has used
            os.write(peak, str(resident("VmHWM") // 2**20).encode())
