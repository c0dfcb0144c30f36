"""A saved state puts everything back bit for bit."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nmt.config.schema import TrainingConfig
from nmt.errors import DamagedFile, UserError
from nmt.processes import ALONE
from nmt.tensor_file import read_tensors
from nmt.training.checkpoint import KIND, random_state, read_state, restore, seed_process, write_state
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.progress import Progress, Scored
from tests.hostile_files import rewrite

OPTIMIZERS: list[dict[str, Any]] = [
    {"name": "sgd", "learning_rate": 0.1},
    {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9},
    {"name": "adam"},
    {"name": "adamw", "weight_decay": 0.01},
    {"name": "adadelta"},
]

NUMBERS: dict[str, Any] = {
    "progress": asdict(Progress(update=3, epoch=1, best=[Scored(2.5, 2)], last=[2])),
    "schedule": {"current": 1.0, "best": None},
    "recorded": 300,
    "data": "abc def",
    "surroundings": {"threads": 1, "processes": 1, "PyTorch": "2.0", "fused kernels": True},
}


def train(model: nn.Module, optimizer: torch.optim.Optimizer, updates: int) -> None:
    for _ in range(updates):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().sum().backward()  # from the global generator, as dropout is
        optimizer.step()


@pytest.mark.parametrize("settings", OPTIMIZERS, ids=str)
def test_continues_bit_for_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = TrainingConfig.model_validate({"optimizer": settings})
    path = tmp_path / "state.safetensors"
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = build_optimizer(model.parameters(), config)
    train(model, optimizer, 3)
    write_state(path, model=model, optimizer=optimizer, numbers=NUMBERS, random_states=[random_state()])
    train(model, optimizer, 4)
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    other_optimizer = build_optimizer(other.parameters(), config)
    torch.manual_seed(99)
    state = read_state(path)
    restore(state, model=other, optimizer=other_optimizer)
    train(other, other_optimizer, 4)
    assert state.numbers == json.loads(json.dumps(NUMBERS))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters(), strict=True))


def test_a_process_without_a_state_draws_numbers_of_its_own() -> None:
    drawn = []
    for seed, rank, update in ((1, 0, 0), (1, 1, 0), (1, 0, 5), (2, 0, 0), (1, 0, 0)):
        seed_process(seed, rank, update)
        drawn.append(torch.rand(1).item())
    assert len(set(drawn[:4])) == 4
    assert drawn[0] == drawn[4]


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    write_state(path, model=model, optimizer=optimizer, numbers=NUMBERS, random_states=[random_state()])
    content = path.read_bytes()
    for damaged in (b"", content[:50], content[:-3], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"state\.safetensors: "):
            read_state(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.safetensors"
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    write_state(path, model=model, optimizer=optimizer, numbers=NUMBERS, random_states=[random_state()])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_state(
            path, model=model, optimizer=optimizer, numbers={**NUMBERS, "recorded": 400}, random_states=[random_state()]
        )
    assert read_state(path).numbers == json.loads(json.dumps(NUMBERS))
    assert list(tmp_path.iterdir()) == [path]


# -------------------------------------------------------------------------------------------- states from a stranger


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "state.safetensors"
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    train(model, optimizer, 1)
    write_state(path, model=model, optimizer=optimizer, numbers=NUMBERS, random_states=[random_state()])
    return path


def test_the_names_in_the_file(saved: Path) -> None:
    """By which later versions find what is in it."""
    tensors, texts = read_tensors(saved, kind="training state")
    moments = {f"optimizer.{index}.{name}" for index in range(2) for name in ("step", "exp_avg", "exp_avg_sq")}
    assert tensors.keys() == {"model.weight", "model.bias", "random.0.cpu"} | moments
    assert json.loads(texts["numbers"]) == json.loads(json.dumps(NUMBERS))


@pytest.mark.parametrize(
    ("name", "rank", "is_restored"),
    [
        ("random.0.cpu", 0, True),
        ("random.1.cpu", 1, True),
        ("random.0.cpu", 1, False),
        ("random.cpu", 0, True),
        ("random.cpu", 1, False),
    ],
)
def test_a_random_state_is_that_of_one_process(saved: Path, name: str, rank: int, is_restored: bool) -> None:
    """Without a rank, as in the files of early versions, of the first."""
    rewrite(saved, KIND, lambda tensors, _: tensors.update({name: tensors.pop("random.0.cpu")}))
    model, state = nn.Linear(3, 2), read_state(saved)
    before = torch.get_rng_state()
    restore(state, model=model, optimizer=build_optimizer(model.parameters(), TrainingConfig()), rank=rank)
    assert torch.equal(torch.get_rng_state(), state.tensors[name] if is_restored else before)


def test_the_random_states_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On as many as there were; more or fewer draw numbers of their own."""
    model, path = nn.Linear(3, 2), tmp_path / "state.safetensors"
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    states = [torch.tensor([number, 2], dtype=torch.uint8) for number in range(2)]
    restored: list[list[torch.Tensor]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(states))
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", restored.append)
    write_state(path, model=model, optimizer=optimizer, numbers=NUMBERS, random_states=[random_state()])
    for count in (2, 3, 1):
        states = states[:1] * count
        restore(read_state(path), model=model, optimizer=optimizer)
    assert [[state.tolist() for state in every] for every in restored] == [[[0, 2], [1, 2]]]


WRONG: list[Any] = [None, True, "text", -1, 1e400, [], {}, [[]], {"a": 1}, "9" * 5000]
KEYS = ["progress", "schedule.current", "recorded", "data", "surroundings", "surroundings.threads"]
KEYS += [f"progress.{key}" for key in ("epoch", "position", "update", "best", "last", "window")]
KEYS += ["progress.rate", "progress.finished", "progress.gradient_norms"]
FINE = {
    "data": ("text", "9" * 5000),
    "progress.finished": (None, "text", "9" * 5000),
    "schedule.current": (None, -1, 1e400),
}
FINE |= {"progress.best": ([],), "progress.last": ([],), "progress.rate": (-1, 1e400), "progress.gradient_norms": ({},)}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
def test_numbers_that_no_training_writes(saved: Path, key: str, value: Any) -> None:
    numbers = json.loads(json.dumps(NUMBERS))
    *sections, name = key.split(".")
    section = numbers
    for part in sections:
        section = section[part]
    section[name] = value
    rewrite(saved, KIND, lambda _, texts: texts.update(numbers=json.dumps(numbers)))
    if value in FINE.get(key, ()) and value is not True:
        assert read_state(saved)
    else:
        with pytest.raises(DamagedFile, match=r"state\.safetensors: damaged, training cannot resume from it"):
            read_state(saved)


@pytest.mark.parametrize("key", ["progress", "schedule", "recorded", "data", "surroundings", "progress.update"])
def test_numbers_that_are_absent(saved: Path, key: str) -> None:
    numbers = json.loads(json.dumps(NUMBERS))
    section, _, name = key.rpartition(".")
    del (numbers[section] if section else numbers)[name]
    rewrite(saved, KIND, lambda _, texts: texts.update(numbers=json.dumps(numbers)))
    with pytest.raises(DamagedFile, match=f"{key}: missing, or not what a training writes"):
        read_state(saved)


SUMS = {"updates": 2, "loss": 2.5, "tokens": 9, "gradient_norm": 1.5, "padding": 1, "positions": 20, "seconds": 0.5}


def with_window(saved: Path, window: dict[str, Any]) -> None:
    """Write these sums over the updates since the last line of the log into a saved state."""
    numbers = {**NUMBERS, "progress": {**NUMBERS["progress"], "window": window}}
    rewrite(saved, KIND, lambda _, texts: texts.update(numbers=json.dumps(numbers)))


@pytest.mark.parametrize(("sentences", "told"), [({"sentences": 2}, 0.25), ({}, None)])
def test_a_risk_is_of_sentences(saved: Path, sentences: dict[str, int], told: float | None) -> None:
    """But in a state of before they were counted, from which its sum does not go on."""
    with_window(saved, {**SUMS, "risk": 0.5, **sentences})
    means = Progress.from_json(read_state(saved).numbers["progress"]).window.means(ALONE)
    assert means.get("expected_risk") == told


@pytest.mark.parametrize("sentences", [0, -1, None, "2"])
def test_a_risk_of_no_number_of_sentences(saved: Path, sentences: Any) -> None:
    with_window(saved, {**SUMS, "risk": 0.5, "sentences": sentences})
    with pytest.raises(DamagedFile, match=r"progress\.window: missing"):
        read_state(saved)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("value", [None, "3", True, -1, math.nan, math.inf, 0])
def test_sums_of_which_no_means_can_be_computed(saved: Path, name: str, value: Any) -> None:
    """They ended in tracebacks at the next line of the log, or at the next saved state."""
    with_window(saved, {**SUMS, name: value})
    if value == 0 and name not in ("tokens", "positions", "seconds"):
        assert Progress.from_json(read_state(saved).numbers["progress"]).window.means(ALONE)
    else:
        with pytest.raises(DamagedFile, match=r"progress\.window: missing, or not what a training writes"):
            read_state(saved)


@pytest.mark.parametrize(
    "text", ["", "5", "null", "[]", '"a"', "[" * 100_000, "{", f"[{'9' * 5000}]"], ids=lambda text: text[:9]
)
def test_numbers_that_are_no_object(saved: Path, text: str) -> None:
    rewrite(saved, KIND, lambda _, texts: texts.update(numbers=text))
    with pytest.raises(DamagedFile, match="training cannot resume from it"):
        read_state(saved)


TENSORS: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
    "a weight of another shape": lambda tensors: tensors.update({"model.weight": torch.zeros(3, 2)}),
    "a weight of another type": lambda tensors: tensors.update({"model.weight": torch.zeros(2, 3, dtype=torch.int64)}),
    "a weight that is absent": lambda tensors: tensors.pop("model.bias"),
    "a weight too many": lambda tensors: tensors.update({"model.more": torch.zeros(2)}),
    "a moment of another shape": lambda tensors: tensors.update({"optimizer.0.exp_avg": torch.zeros(3, 2)}),
    "a moment of another type": lambda tensors: tensors.update({"optimizer.1.exp_avg": torch.zeros(2).double()}),
    "a moment that is absent": lambda tensors: tensors.pop("optimizer.0.exp_avg_sq"),
    "a moment of another optimizer": lambda tensors: tensors.update({"optimizer.0.acc_delta": torch.zeros(2, 3)}),
    "a moment of no parameter": lambda tensors: tensors.update({"optimizer.2.exp_avg": torch.zeros(2)}),
    "a moment of no number": lambda tensors: tensors.update({"optimizer.x.exp_avg": torch.zeros(2)}),
    "a moment without a name": lambda tensors: tensors.update({"optimizer.1": torch.zeros(2)}),
    "a step of several": lambda tensors: tensors.update({"optimizer.0.step": torch.zeros(2)}),
    "a step of another type": lambda tensors: tensors.update({"optimizer.0.step": torch.tensor(1.0).double()}),
    "a random state of another size": lambda tensors: tensors.update(
        {"random.0.cpu": torch.zeros(3, dtype=torch.uint8)}
    ),
    "a random state of another type": lambda tensors: tensors.update({"random.0.cpu": torch.zeros(5056)}),
    "a random state that is none": lambda tensors: tensors["random.0.cpu"].fill_(255),
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_tensors_of_another_model_or_optimizer(saved: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    rewrite(saved, KIND, lambda tensors, _: change(tensors))
    model = nn.Linear(3, 2)
    before = torch.get_rng_state()
    with pytest.raises(DamagedFile, match=r"state\.safetensors: damaged, training cannot resume from it"):
        restore(read_state(saved), model=model, optimizer=build_optimizer(model.parameters(), TrainingConfig()))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_tensor_that_does_not_fit_is_named(saved: Path) -> None:
    rewrite(saved, KIND, lambda tensors, _: tensors.update({"random.0.cpu": torch.zeros(3, dtype=torch.uint8)}))
    model = nn.Linear(3, 2)
    with pytest.raises(DamagedFile, match=r"random\.cpu: torch\.uint8 \(3,\) instead of torch\.uint8 \(\d+,\)"):
        restore(read_state(saved), model=model, optimizer=build_optimizer(model.parameters(), TrainingConfig()))


def test_a_schedule_that_lacks_its_numbers() -> None:
    config = TrainingConfig.model_validate({"schedule": {"name": "plateau", "metric": "loss", "patience": 1}})
    with pytest.raises(UserError, match="the saved state lacks current, waited of the schedule"):
        build_schedule(config).restore({"best": 1.0})
