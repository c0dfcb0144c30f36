"""A tiny corpus and a configuration with every random state: dropout, subword sampling, random words, accumulation, and
averages of both kinds."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt.training.states import read_state
from tests.conftest import data_section, make_synthetic_corpus, write_texts

TIMES = {"seconds", "target_tokens_per_second", "recorded"}  # the last is a checksum of metrics.jsonl, times and all
STATES = STATE, PREVIOUS_STATE = "state.safetensors", "state.1.safetensors"


def make_short_corpus(folder: Path, *, longest: int) -> Path:
    """600 training, 40 validation and 30 test pairs of the synthetic corpus, of at most so many words."""
    make_synthetic_corpus(folder, train=6000, valid=500, test=500)
    for name, count in (("train", 600), ("valid", 40), ("test", 30)):
        names = [f"{name}.{kind}" for kind in ("en", "de", "align")]
        rows = zip(*((folder / one).read_text(encoding="utf-8").splitlines() for one in names), strict=True)
        short = [row for row in rows if max(len(side.split()) for side in row[:2]) <= longest][:count]
        assert len(short) == count
        write_texts(folder, dict(zip(names, zip(*short, strict=True), strict=True)))
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of at most 5 words, which train fast."""
    return make_short_corpus(tmp_path_factory.mktemp("corpus"), longest=5)


def settings(corpus: Path) -> dict[str, Any]:
    return {
        "name": "tiny",
        "seed": 7,
        "data": {**data_section(corpus), "cache_folder": str(corpus / "cache")},
        "subwords": {"type": "bpe", "size": 600, "sampling": {"alpha": 0.1}},
        "model": {
            "embedding_size": 16,
            "initialization": {"range": 0.1},
            "encoder": {"hidden_size": 24, "layers": 2, "dropout": 0.2, "word_dropout": 0.05},
            "decoder": {"hidden_size": 32, "dropout": 0.2, "word_dropout": 0.05},
        },
        "training": {
            "optimizer": {"name": "adam", "learning_rate": 5e-3},
            "schedule": {"name": "plateau", "metric": "loss", "patience": 0},
            "batch_size": 20,
            "accumulate": 2,
            "max_epochs": 8,
            "validate_every": "25 updates",
            "early_stopping": {"metric": "loss", "patience": 50},
            "label_smoothing": 0.1,
            "word_replacement": {"source": 0.05, "target": 0.05},
            "gradient_clip_norm": 1.0,
            "moving_average": {"decay": 0.9},
            "keep_best": 2,
            "average_best": 2,
            "save_every": "3 updates",
            "log_every": 7,
        },
        "decoding": {"beam_size": 2, "max_length_ratio": 1.0, "max_length_extra": 2},  # such models find no end
    }


@pytest.fixture
def tiny(corpus: Path, tmp_path: Path) -> Callable[..., Path]:
    """tiny(**sections) writes the configuration, with some sections changed, and returns its path."""

    def write(**changes: dict[str, Any]) -> Path:
        merged = settings(corpus)
        for section, values in changes.items():
            merged[section] = {**merged.get(section, {}), **values}
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump(merged), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def command() -> Callable[..., list[str]]:
    """command("train", …) is the command line of nmt-train in a process of its own."""

    def build(name: str, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "nmt", name, *map(str, arguments)]

    return build


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for the end of a process; its exit code, and what it said on standard error."""
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors


# ------------------------------------------------------------------------------------------------------- two runs alike


def timeless(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name not in TIMES} for line in lines]


def assert_same(left: Path, right: Path) -> None:
    """Both run folders hold the same weights, optimizer, random states, metrics and checkpoints, bit for bit."""
    assert_same_state(left / STATE, right / STATE)
    if not is_older(right / PREVIOUS_STATE, left / PREVIOUS_STATE):
        assert_same_state(left / PREVIOUS_STATE, right / PREVIOUS_STATE)
    assert timeless(left / "metrics.jsonl") == timeless(right / "metrics.jsonl")
    models = [sorted(path.relative_to(folder) for path in folder.rglob("*.safetensors")) for folder in (left, right)]
    assert models[0] == models[1]
    assert translations(left) == translations(right)
    for path in models[0]:
        if path.name not in STATES:
            assert (left / path).read_bytes() == (right / path).read_bytes(), path
    assert repr(shown(left)) == repr(shown(right))  # what is no number equals not even itself


def translations(run: Path) -> dict[str, bytes]:
    """What each validation translated, by the name of its file."""
    return {path.name: path.read_bytes() for path in sorted((run / "validations").iterdir())}


def is_older(path: Path, other: Path) -> bool:
    """Whether a state lies before the other, as a kill between two renamings leaves the last but one.

    Until the next is saved, the run then has the last but two instead, and neither is damaged.
    """
    mine, theirs = (read_state(state).numbers["progress"] for state in (path, other))
    positions = [
        (progress["update"], progress["validated"], progress["finished"] is not None) for progress in (mine, theirs)
    ]
    return positions[0] < positions[1]


def assert_same_state(left: Path, right: Path) -> None:
    """Both files hold the same state, but for the times."""
    mine, theirs = read_state(left), read_state(right)
    assert mine.tensors.keys() == theirs.tensors.keys()
    for name, tensor in mine.tensors.items():
        assert torch.equal(tensor, theirs.tensors[name]), name
    assert without_times(mine.numbers) == without_times(theirs.numbers)


def without_times(value: Any) -> Any:
    """The numbers of a state without those that differ in each run."""
    if not isinstance(value, dict):
        return value
    return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}


def shown(run: Path) -> dict[str, dict[int, Any]]:
    """The value of each tag and step that TensorBoard shows of a run."""
    everything = {"scalars": 0, "images": 0, "tensors": 0}
    board = EventAccumulator(str(run / "tensorboard"), size_guidance=everything).Reload()
    tags = board.Tags()
    scalars = {tag: board.Scalars(tag) for tag in sorted(tags["scalars"]) if tag.rpartition("/")[2] not in TIMES}
    values = {tag: {event.step: event.value for event in events} for tag, events in scalars.items()}
    images = {tag: {event.step: event.encoded_image_string for event in board.Images(tag)} for tag in tags["images"]}
    texts = {tag: {event.step: event.tensor_proto for event in board.Tensors(tag)} for tag in tags["tensors"]}
    assert {tag.partition("/")[0] for tag in texts} == {"translation"}
    return {**values, **images, **texts}
