"""A corpus of sentences such as "the dog sees the cat .", and a model for it that trains in a second."""

import errno
import json
import os
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.cli.train import main
from nmt.cli.translate import main as translate
from nmt.experiment import validation
from nmt.training import dry_run
from nmt.training.update import UpdateResult, update
from tests.conftest import data_section, write_pairs

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "boy": "Junge", "bird": "Vogel", "horse": "Hengst"}
VERBS = {"sees": "sieht", "hears": "hört", "likes": "mag", "finds": "findet"}
TRAINING_PAIRS = 108
PIECES = 100  # most words are pieces, so sentences are short

Train = Callable[..., int]


def write_corpus(folder: Path) -> None:
    """108 pairs for training and 12 for validation."""
    pairs = [
        (f"the {subject} {verb} the {thing} .", f"der {NOUNS[subject]} {VERBS[verb]} den {NOUNS[thing]} .")
        for subject in NOUNS
        for verb in VERBS
        for thing in NOUNS
        if subject != thing
    ]
    random.Random(1).shuffle(pairs)
    write_pairs(folder, train=pairs[:TRAINING_PAIRS], valid=pairs[TRAINING_PAIRS:])


def settings(corpus: Path) -> dict[str, Any]:
    return {
        "name": "tiny",
        "seed": 3,
        "data": {**data_section(corpus), "cache_folder": str(corpus / "cache")},
        "subwords": {"size": PIECES},
        "model": {
            "embedding_size": 7,
            "initialization": {"range": 0.1},
            "encoder": {"hidden_size": 6, "dropout": 0.1},
            "decoder": {"type": "luong", "hidden_size": 11, "output_size": 7},
        },
        "training": {
            "optimizer": {"name": "adam", "learning_rate": 0.02},
            "moving_average": None,  # 27 updates are too few for one
            "batch_size": 12,
            "max_epochs": 3,
            "gradient_clip_norm": 0.2,
            "validation": {"metric": "loss", "tokenize": "none", "samples": 1},
            "log_every": 4,
        },
        "decoding": {"beam_size": 2, "max_length_ratio": 1.0, "max_length_extra": 2},  # such models find no end
    }


FEW = ("training.validate_every=1 update", "training.max_updates=3", "training.validation.samples=0")
"""Three updates and three validations, where their number makes no difference, and nothing of them in TensorBoard."""


@pytest.fixture(scope="session", autouse=True)
def _fast() -> Iterator[None]:
    """Several threads would only wait for each other over products this small. A dry run times one update."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dry_run, "WARM_UP", 0)
        patch.setattr(dry_run, "TIMED", 1)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """The configuration file: 9 updates an epoch, 3 epochs."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump(settings(corpus)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def train() -> Train:
    """train(config, output, "training.max_epochs=1", …, "--resume", …): nmt-train in this process; its exit code.

    What begins with -- is an option, what is no text is the value of one, and the rest is for --set.
    """

    def run(config: Path, output: Path, *more: str | Path) -> int:
        arguments = ["--config", str(config), "--output", str(output), "--device", "cpu"]
        for argument in more:
            option = isinstance(argument, Path) or argument.startswith("--")
            arguments += [str(argument)] if option else ["--set", argument]
        return main(arguments)

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny: Path, train: Train) -> Path:
    """The folder of a finished run of `tiny`."""
    output = tmp_path_factory.mktemp("runs") / "trained"
    shown = "training.validation.samples=4"  # in TensorBoard
    assert train(tiny, output, "training.keep_best=2", "training.keep_last=2", shown) == 0
    return output


def translated(model: Path, source: Path, *options: object) -> list[str]:
    """The lines that nmt-translate writes beside the source, with which it must succeed."""
    output = source.with_name("output.txt")
    arguments = ("--model", model, "--input", source, "--output", output, "--device", "cpu", *options)
    assert translate([str(argument) for argument in arguments]) == 0
    return lines(str(output))


def refused(capsys: pytest.CaptureFixture[str], program: Callable[[list[str]], int], *options: object) -> list[str]:
    """The messages of a command that must end with exit code 2 and no traceback."""
    capsys.readouterr()  # which may have warnings of runs before
    assert program([str(option) for option in options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err.splitlines()


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """What a training reported in the end; never a traceback."""
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors[errors.index("nmt-train: ") :]


def lines(name: str) -> list[str]:
    """Those of a file, each with its end."""
    content = Path(name).read_text(encoding="utf-8")
    assert content.endswith("\n")
    return content.split("\n")[:-1]


def records(output: Path) -> list[dict[str, Any]]:
    """The measurements of a run."""
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def at_validation(monkeypatch: pytest.MonkeyPatch, number: int, action: Callable[[], object]) -> None:
    """Do something where the validation of that number, counted from 1, begins."""
    original, numbers = validation.corpus_loss, count(1)

    def counted(*arguments: Any) -> dict[str, float]:
        if next(numbers) == number:
            action()
        return original(*arguments)

    monkeypatch.setattr(validation, "corpus_loss", counted)


def stop_at_validation(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have a training stopped there, as if by Ctrl-C."""

    def stop() -> None:
        raise KeyboardInterrupt

    at_validation(monkeypatch, number, stop)


def stop_at_update(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have a training end before that update, as if the disk were full."""
    numbers = count(1)

    def failing(*arguments: Any, **keywords: Any) -> UpdateResult:
        if next(numbers) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return update(*arguments, **keywords)

    monkeypatch.setattr("nmt.training.trainer.update", failing)
