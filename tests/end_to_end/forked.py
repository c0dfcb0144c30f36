"""nmt-train in processes of one thread, forked from one that has imported it, so that none spends seconds on that.

Otherwise they are as a shell or torchrun starts them: with arguments, an environment, and signals of their own. What
torchrun does itself, such as restarting what was killed, needs its own processes.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.font_manager  # these two are imported where pictures and optimizers are made, which takes a second
import torch
import torch._dynamo
from torch.distributed import TCPStore

from nmt.cli import start, train

assert matplotlib.font_manager
assert torch._dynamo
assert train

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__])


@atexit.register
def _kill_all() -> None:
    """Also those that a failed test has left standing still, for which Python would wait."""
    for process in multiprocessing.active_children():
        process.kill()


class Training:
    """A process of nmt-train that has been started; what it says on standard error is kept."""

    def __init__(self, *arguments: object, environment: Mapping[str, str] | None = None) -> None:
        descriptor, name = tempfile.mkstemp()
        os.close(descriptor)
        self._said = Path(name)
        words = [str(argument) for argument in arguments]
        self._process = _FORKING.Process(target=_train, args=(words, name, dict(environment or {})), daemon=True)
        self._process.start()

    def poll(self) -> int | None:
        """The exit code, minus the number of a signal that killed it; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def finish(self, *, limit: float = 300.0) -> tuple[int, str]:
        """Wait for the end, at most `limit` seconds; the exit code, and what was said."""
        self._process.join(limit)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
        said = self._said.read_text(encoding="utf-8")
        self._said.unlink()
        assert code is not None, f"still running after {limit} seconds: {said}"
        return code, said


class Job:
    """Several processes of one training, in an environment as torchrun makes it, with the store that it keeps."""

    def __init__(self, processes: int, *arguments: object) -> None:
        self._store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        place = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(self._store.port)}
        shared = {**place, "TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": str(processes)}
        self.processes = [
            Training(*arguments, environment={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(processes)
        ]

    def finish(self) -> tuple[int, str]:
        """Wait for the end of all; the first exit code but 0, and what they said, one after the other."""
        ended = [process.finish() for process in self.processes]
        codes = [code for code, _ in ended if code]
        return (codes or [0])[0], "".join(said for _, said in ended)


def wait_for_line(log: Path, text: str) -> None:
    """Wait until the log of a training has that text."""
    deadline = time.monotonic() + 120
    while not (log.exists() and text in log.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, f"no {text!r} in {log} in time"
        time.sleep(0.02)


def _train(arguments: Sequence[str], said: str, environment: Mapping[str, str]) -> None:
    os.setsid()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for path, descriptor in ((os.devnull, 1), (said, 2)):
        opened = os.open(path, os.O_WRONLY)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["nmt-train", *arguments]
    sys.exit(start.train())
