"""nmt-train in processes of one thread, forked from one that has imported it, so that none spends seconds on that.

They have arguments, an environment, and signals of their own. Unlike processes that are started afresh, all of them
have one hash seed, and they end without Python's own shutdown; and nobody watches over those of a job. Proofs that
depend on this need processes of their own, or torchrun's.
"""

import atexit
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp

import torch
from torch.distributed import TCPStore

from nmt.cli import start

_FORKING = multiprocessing.get_context("forkserver")
# Pictures and optimizers import the last two where they are made, which takes a second
_FORKING.set_forkserver_preload([__name__, "nmt.cli.train", "matplotlib.font_manager", "torch._dynamo"])


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
    """The arguments of nmt-train that trainings by these tests have in common."""
    return ["--config", str(config), "--output", str(output), "--device", "cpu"]


class Training:
    """A process of nmt-train that has been started; what it says on standard error is kept."""

    def __init__(self, *arguments: object, environment: Mapping[str, str] | None = None) -> None:
        descriptor, name = mkstemp(dir=_folder().name)
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

    def kill(self) -> None:
        """End it, also if it stands still."""
        self._process.kill()
        self._process.join()

    def finish(self) -> tuple[int, str]:
        """Wait for the end, at most five minutes; the exit code, and what was said."""
        self._process.join(300)
        code = self._process.exitcode
        if code is None:
            self.kill()
        said = self._said.read_text(encoding="utf-8")
        assert code is not None, f"still running after five minutes: {said}"
        return code, said


class Job:
    """Several processes of one training, told of each other as by torchrun, with a store like the one that it keeps."""

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
        try:
            ended = [process.finish() for process in self.processes]
        finally:
            self.kill()
        codes = [code for code, _ in ended if code]
        return (codes or [0])[0], "".join(said for _, said in ended)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()


def _train(arguments: Sequence[str], said: str, environment: Mapping[str, str]) -> None:
    multiprocessing.set_start_method("fork", force=True)  # or the lock of tqdm is left behind where this is killed
    os.setsid()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for path, descriptor in ((os.devnull, 1), (said, 2)):
        opened = os.open(path, os.O_WRONLY)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["nmt-train", *arguments]
    sys.exit(start.train())
