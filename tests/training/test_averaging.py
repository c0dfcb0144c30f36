"""The average of model files, on weights that a person can average."""

from pathlib import Path

import pytest
import torch

from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.models.model_file import ModelFile, save_model
from nmt.training.averaging import average_weights


def write(path: Path, **weights: torch.Tensor) -> Path:
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {"name": "run", "data": {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair}}
    )
    save_model(path, ModelFile(config, weights, b"pieces", b"pieces", (5, 5), {}))
    return path


def test_the_mean_of_every_weight(tmp_path: Path) -> None:
    values = ([[1.0, 2.0, 3.0]], [[3.0, 2.0, 0.0]], [[5.0, 2.0, -9.0]])
    paths = [write(tmp_path / str(index), w=torch.tensor(value)) for index, value in enumerate(values)]
    average = average_weights(paths)
    assert torch.equal(average["w"], torch.tensor([[3.0, 2.0, -2.0]]))
    assert average["w"].dtype == torch.float32
    assert torch.equal(average_weights(paths[:1])["w"], torch.tensor(values[0]))


def test_sums_are_exact(tmp_path: Path) -> None:
    """2 ** 24 + 1 + (1 - 2 ** 24) = 2; in float32 2 ** 24 + 1 would be 2 ** 24 again, and the sum 1."""
    paths = [write(tmp_path / str(value), w=torch.tensor([float(value)])) for value in (2**24, 1, 1 - 2**24)]
    assert average_weights(paths)["w"].item() == pytest.approx(2 / 3)


def test_the_order_does_not_matter(tmp_path: Path) -> None:
    torch.manual_seed(2)
    paths = [write(tmp_path / str(index), w=torch.randn(3, 5), v=torch.randn(7)) for index in range(4)]
    forwards, backwards = average_weights(paths), average_weights(paths[::-1])
    assert all(torch.equal(weight, backwards[name]) for name, weight in forwards.items())


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone: no such model file"):
        average_weights([write(tmp_path / "there", w=torch.ones(1)), tmp_path / "gone"])
