"""Several processes, by torchrun or as if by it: the losses of one process, a killed one, another number of them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.training.states import read_state
from tests.end_to_end.conftest import finish, settings
from tests.end_to_end.forked import Forked, Job, arguments

pytestmark = pytest.mark.slow

UPDATES = 20


def configuration(corpus: Path, folder: Path, *, dropout: float = 0.0, **training: Any) -> Path:
    """A file with the usual small model of one layer, without random masks and words, and an update for each batch.

    One process and two can compute the same.
    """
    config = settings(corpus)
    config["model"]["encoder"]["layers"] = 1
    config["training"]["accumulate"] = 1
    for part in ("encoder", "decoder"):
        config["model"][part] |= {"dropout": dropout, "word_dropout": 0.0}
    config["training"].pop("max_epochs", None)
    config["training"].pop("early_stopping", None)
    config["training"].pop("word_replacement")
    config["training"] |= {"max_updates": UPDATES, "log_every": 1, "validate_every": 10, "save_every": "6 updates"}
    config["training"] |= training
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def start(processes: int, config: Path, output: Path, *more: str) -> Forked | Job:
    """Start a training of one or more processes."""
    words = (*arguments(config, output), *more)
    return Forked("train", *words) if processes == 1 else Job(processes, "train", *words)


def start_torchrun(config: Path, output: Path, *more: str, launcher: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    """Start a training of two processes by torchrun; `launcher` are options of its own."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *launcher]
    return subprocess.Popen(
        [sys.executable, *torchrun, "-m", "nmt", "train", *arguments(config, output), *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def losses(output: Path, split: str, name: str = "loss") -> list[float]:
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [record[name] for record in records if record["split"] == split]


def worker(rank: int, output: Path) -> int:
    """The process id of torchrun's process with this rank."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"RANK={rank}".encode() in environment and str(output).encode() in line and b"torch.distributed" not in line:
            return int(folder.name)
    raise AssertionError(f"no process of rank {rank}")


def wait_for_update(output: Path, update: int) -> None:
    """Wait until that update is in the log."""
    log, deadline = output / "train.log", time.monotonic() + 120
    while not (log.exists() and f"update {update} ·" in log.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, f"no update {update} in time"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def one(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The configuration, and the folder of the run of one process."""
    folder = tmp_path_factory.mktemp("one")
    config = configuration(corpus, folder)
    code, errors = start(1, config, folder / "run").finish()
    assert code == 0, errors
    return config, folder / "run"


def test_two_processes_compute_the_updates_of_one(one: tuple[Path, Path], tmp_path: Path) -> None:
    config, alone = one
    code, errors = start(2, config, tmp_path / "run").finish()
    assert code == 0, errors
    assert "2 processes, each with its share of every batch" in errors
    assert errors.count("epoch 1: ") == 1  # one log
    expected, train_losses = losses(alone, "train"), losses(tmp_path / "run", "train")
    assert len(train_losses) == UPDATES
    assert train_losses == pytest.approx(expected, rel=1e-4)
    assert losses(tmp_path / "run", "valid") == pytest.approx(losses(alone, "valid"), rel=1e-4)
    assert (tmp_path / "run" / "best.safetensors").exists()


@pytest.mark.parametrize("normalize_by", ["sentences", "none"])
def test_two_processes_divide_by_what_all_have(normalize_by: str, corpus: Path, tmp_path: Path) -> None:
    """Also by nothing, where the gradients are summed over two accumulated batches of both; and with clipping."""
    norm = {"sentences": 0.48, "none": 26.0}[normalize_by]
    few = {"max_updates": 8, "validate_every": 4, "save_every": None, "accumulate": 2, "gradient_clip_norm": norm}
    rate = {"optimizer": {"name": "sgd", "learning_rate": 0.01}}
    config = configuration(corpus, tmp_path, normalize_by=normalize_by, **few, **rate)
    records = {}
    for processes in (1, 2):
        code, errors = start(processes, config, output := tmp_path / f"run{processes}").finish()
        assert code == 0, errors
        lines = (output / "metrics.jsonl").read_text().splitlines()
        records[processes] = [record for record in map(json.loads, lines) if record["split"] == "train"]
    for alone, together in zip(records[1], records[2], strict=True):
        for number in ("loss", "gradient_norm"):
            assert together[number] == pytest.approx(alone[number], rel=1e-4)
    norms = [record["gradient_norm"] for record in records[1]]
    assert len(norms) == 8
    assert min(norms) < norm < max(norms)
    assert records[1][-1]["loss"] < records[1][0]["loss"]


def test_two_processes_guide_attention_as_one_does(corpus: Path, tmp_path: Path) -> None:
    """Both losses, in training and in validation, although a process may have a share without pairs."""
    config = configuration(
        corpus, tmp_path, guided_alignment={"weight": 2.0}, batch_by="tokens", batch_size=40, max_updates=10
    )
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    settings["data"]["train"][0]["alignments"] = str(corpus / "train.align")
    settings["data"]["valid"]["alignments"] = str(corpus / "valid.align")
    del settings["subwords"]["sampling"]
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    for processes in (1, 2):
        code, errors = start(processes, config, tmp_path / str(processes)).finish()
        assert code == 0, errors
    for split in ("train", "valid"):
        for name in ("loss", "guided_loss"):
            alone, both = (losses(tmp_path / str(processes), split, name) for processes in (1, 2))
            assert len(alone) == (10 if split == "train" else 1)
            assert both == pytest.approx(alone, rel=1e-4)


@pytest.mark.parametrize(
    ("objective", "more", "exact", "bound"),
    [
        ({"minimum_risk": {"size": 5, "metric": "chrf", "cross_entropy": 0.1}}, ["expected_risk"], 6, 1e-4),
        ({"r_drop": {"weight": 5.0}, "scheduled_sampling": {"probability": 1.0, "updates": 1}}, [], 1, 0.06),
        ({"recurrent_dropout": 0.3}, [], 1, 0.06),
    ],
    ids=["risk", "r-drop and sampling", "recurrent dropout"],
)
def test_two_processes_minimize_what_one_does(
    objective: dict[str, Any], more: list[str], exact: int, bound: float, corpus: Path, tmp_path: Path
) -> None:
    """For the risk, each samples for its own pairs what one process samples for them. R-Drop has masks that leave out
    nothing; from the second update on, each process draws words of its own, which matter little to a new model. The
    masks of recurrent weights are the same in both, and until they have drawn anything else those of one process."""
    short = {"max_updates": 6, "validate_every": 6, "save_every": None}
    config = configuration(corpus, tmp_path, dropout=1e-9, **objective, **short)
    for processes in (1, 2):
        code, errors = start(processes, config, tmp_path / str(processes)).finish()
        assert code == 0, errors
    for name in ("loss", "gradient_norm", *more):
        alone, both = (losses(tmp_path / str(processes), "train", name) for processes in (1, 2))
        assert len(alone) == 6
        assert both[:exact] == pytest.approx(alone[:exact], rel=1e-4)
        assert both == pytest.approx(alone, rel=bound)


def test_a_killed_process_ends_the_job_and_resume_goes_on(one: tuple[Path, Path], tmp_path: Path) -> None:
    """Resumed by two processes, and from the same state by one: the losses stay those of one process.

    The process that is left ends by itself; torchrun, which would end it, is not there.
    """
    config, alone = one
    output = tmp_path / "run"
    job = Job(2, "train", *arguments(config, output))
    try:
        wait_for_update(output, 8)
        job.processes[1].kill()
        code, errors = job.processes[0].finish()
    finally:
        job.kill()
    assert code > 0
    assert "process 0 of 2: another process has ended" in errors
    assert "continue with --resume" in errors
    saved = read_state(output / "state.safetensors").numbers["progress"]["update"]
    assert 0 < saved < UPDATES
    subprocess.run(["cp", "-r", str(output), str(tmp_path / "copy")], check=True)
    for processes, folder in ((2, output), (1, tmp_path / "copy")):
        code, errors = start(processes, config, folder, "--resume").finish()
        assert code == 0, errors
        assert f"resuming after update {saved}" in errors
        assert ("warning: processes was 2 and is 1" in errors) == (processes == 1)
        assert losses(folder, "train") == pytest.approx(losses(alone, "train"), rel=1e-4)


def test_a_process_that_stands_still_ends_the_job_and_resume_goes_on(one: tuple[Path, Path], tmp_path: Path) -> None:
    """The process that is left ends by itself, although nobody ends it."""
    config, alone = one
    output = tmp_path / "run"
    job = Job(2, "train", *arguments(config, output), "--rank-timeout", "0.1")
    try:
        wait_for_update(output, 8)
        job.processes[0].send_signal(signal.SIGSTOP)
        code, errors = job.processes[1].finish()
    finally:
        job.kill()
    assert code != 0
    (message,) = [line for line in errors.splitlines() if line.startswith("nmt-train: error: ")]
    assert "process 1 of 2: another process has not answered for 0.1 minutes" in message
    assert "continue with --resume" in message
    assert "nmt/training" not in errors  # no traceback of ours
    code, errors = start(2, config, output, "--resume").finish()
    assert code == 0, errors
    assert losses(output, "train") == pytest.approx(losses(alone, "train"), rel=1e-4)


def test_torchrun_restarts_a_killed_process(one: tuple[Path, Path], tmp_path: Path) -> None:
    config, alone = one
    output = tmp_path / "run"
    process = start_torchrun(config, output, "--resume", launcher=("--max-restarts=1",))
    wait_for_update(output, 9)
    os.kill(worker(1, output), signal.SIGKILL)
    code, errors = finish(process)
    assert code == 0, errors
    assert "process 0 of 2: another process has ended" in errors  # torchrun's SIGTERM is not obeyed
    assert "2 processes, each with its share of every batch" in errors
    assert re.search(r"resuming after update (6|12|18)", errors)
    assert losses(output, "train") == pytest.approx(losses(alone, "train"), rel=1e-4)


def test_a_signal_to_one_process_during_validation_saves_and_ends_all(one: tuple[Path, Path], tmp_path: Path) -> None:
    config, alone = one
    output = tmp_path / "run"
    job = Job(2, "train", *arguments(config, output))
    wait_for_update(output, 10)  # then comes a validation
    job.processes[1].send_signal(signal.SIGTERM)
    code, errors = job.finish()
    assert code == 128 + signal.SIGTERM
    assert "stopped by SIGTERM; the state is saved, continue with --resume" in errors
    code, errors = start(2, config, output, "--resume").finish()
    assert code == 0, errors
    assert losses(output, "train") == pytest.approx(losses(alone, "train"), rel=1e-4)


def test_updates_without_a_number_are_left_out_by_all(corpus: Path, tmp_path: Path) -> None:
    """Each process counts the same; the second one is silent. Steps of 10⁹ overflow the loss in the third update."""
    optimizer = {"name": "sgd", "learning_rate": 1e9, "momentum": 0.9}
    config = configuration(corpus, tmp_path, optimizer=optimizer, gradient_clip_norm=None, skip_non_finite=2)
    code, errors = start(2, config, tmp_path / "run", "--set", "model.decoder.type=bahdanau").finish()
    assert code != 0
    assert [errors.count(f"left out, {count} of at most 2") for count in (1, 2, 3)] == [1, 1, 0]
    assert errors.count("(training.skip_non_finite: 2)") == errors.count("training diverged") == 1
