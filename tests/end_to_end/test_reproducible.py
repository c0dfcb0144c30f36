"""The same seed, machine and number of threads give the same bytes, in processes that know nothing of each other."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import assert_same

pytestmark = pytest.mark.slow
Command = Callable[..., list[str]]

CHANGES: dict[str, Any] = {  # of `settings`; GRU units, Adam, and float32 by one thread are in test_resume.py
    "model": {
        "encoder": {"cell": "lstm", "hidden_size": 24, "dropout": 0.2},
        "decoder": {"cell": "lstm", "hidden_size": 32, "dropout": 0.2},
    },
    "training": {
        "optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.9},
    },
}
# Two epochs of 8 updates, a validation at the end of each, and that of the average
SHORT = "training.max_epochs=2", "training.validate_every=8 updates", "training.batch_size=40"


def start(command: Command, config: Path, output: Path, *more: str, threads: int = 1) -> "subprocess.Popen[bytes]":
    short = [word for override in SHORT for word in ("--set", override)]
    arguments = command("train", "--config", config, "--output", output, "--device", "cpu", *short, *more)
    # Threads that wait give the processor away: on a machine at work they would else take minutes.
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: "subprocess.Popen[bytes]") -> str:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()
    return errors.decode()


def test_two_runs_alike(tiny: Callable[..., Path], tmp_path: Path, command: Command) -> None:
    """Weights, moments, random states, checkpoints, the average, measurements and TensorBoard's, bit for bit.

    LSTM units with SGD, dropout, and subword sampling, by two threads.
    """
    config = tiny(**CHANGES)
    outputs = [tmp_path / name for name in ("first", "second")]
    for output in outputs:
        assert ", 2 threads" in finish(start(command, config, output, threads=2))
    assert_same(*outputs)
