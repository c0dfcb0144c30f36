"""A saved state puts everything back bit for bit."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nmt.config.schema import TrainingConfig
from nmt.errors import UserError
from nmt.training.checkpoint import random_state, read_state, restore, write_state
from nmt.training.optim import build_optimizer

OPTIMIZERS: list[dict[str, Any]] = [
    {"name": "sgd", "learning_rate": 0.1},
    {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9},
    {"name": "adam"},
    {"name": "adamw", "weight_decay": 0.01},
    {"name": "adadelta"},
]


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
    write_state(path, model=model, optimizer=optimizer, numbers={"update": 3}, random_states=[random_state()])
    train(model, optimizer, 4)
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    other_optimizer = build_optimizer(other.parameters(), config)
    torch.manual_seed(99)
    state = read_state(path)
    restore(state, model=other, optimizer=other_optimizer)
    train(other, other_optimizer, 4)
    assert state.numbers == {"update": 3}
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters(), strict=True))


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    write_state(path, model=model, optimizer=optimizer, numbers={}, random_states=[random_state()])
    content = path.read_bytes()
    for damaged in (b"", content[:50], content[:-3], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"state\.safetensors: "):
            read_state(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.safetensors"
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model.parameters(), TrainingConfig())
    write_state(path, model=model, optimizer=optimizer, numbers={"update": 1}, random_states=[random_state()])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_state(path, model=model, optimizer=optimizer, numbers={"update": 2}, random_states=[random_state()])
    assert read_state(path).numbers == {"update": 1}
    assert list(tmp_path.iterdir()) == [path]
