"""A saved state puts everything back bit for bit."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nmt.config.schema import TrainingConfig
from nmt.errors import DamagedFile
from nmt.tensor_file import read_tensors
from nmt.training.checkpoint import KIND, random_state, read_state, restore, seed_process, write_state
from nmt.training.optim import build_optimizer
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


@pytest.mark.parametrize("rank", [0, 1])
def test_a_random_state_is_that_of_one_process(saved: Path, rank: int) -> None:
    model, state = nn.Linear(3, 2), read_state(saved)
    before = torch.get_rng_state()
    restore(state, model=model, optimizer=build_optimizer(model.parameters(), TrainingConfig()), rank=rank)
    assert torch.equal(torch.get_rng_state(), before if rank else state.tensors["random.0.cpu"])


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


def test_a_state_of_another_model_is_refused(saved: Path) -> None:
    model = nn.Linear(3, 5)
    with pytest.raises(DamagedFile, match=r"state\.safetensors: damaged, training cannot resume from it"):
        restore(read_state(saved), model=model, optimizer=build_optimizer(model.parameters(), TrainingConfig()))


@pytest.mark.parametrize("text", [None, "", "{"])
def test_a_state_without_its_numbers_is_damaged(saved: Path, text: str | None) -> None:
    rewrite(saved, KIND, lambda _, texts: texts.pop("numbers") if text is None else texts.update(numbers=text))
    with pytest.raises(DamagedFile, match="training cannot resume from it"):
        read_state(saved)
