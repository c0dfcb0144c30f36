"""The average of model files, on weights that a person can average."""

from pathlib import Path

import pytest
import torch

from nmt.config.schema import Config
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import build_model
from nmt.training.averaging import WeightedMean, average_weights

EMBEDDING = "source_embedding.weight"


def write(path: Path, *, first: torch.Tensor, update: int = 0) -> Path:
    """A model whose source embedding begins with the numbers `first`."""
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "run",
            "data": {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair},
            "model": {"embedding_size": 3, "encoder": {"hidden_size": 2}, "decoder": {"hidden_size": 2}},
        }
    )
    weights = build_model(config.model, source_size=5, target_size=5).state_dict()
    weights[EMBEDDING].view(-1)[: first.numel()] = first.flatten()
    save_model(path, ModelFile(config, weights, b"pieces", b"pieces", (5, 5), {"updates": update}))
    return path


def average(paths: list[Path], count: int) -> torch.Tensor:
    """The first `count` numbers of the averaged embedding."""
    return average_weights(paths)[EMBEDDING].view(-1)[:count]


def test_the_mean_by_shares() -> None:
    """Three parts of 1 and one of 5 are 8 fourths."""
    mean = WeightedMean()
    mean.add({"weight": torch.tensor([1.0])}, 3.0)
    mean.add({"weight": torch.tensor([5.0])})
    assert mean.weights() == {"weight": torch.tensor([2.0])}


def test_sums_are_exact(tmp_path: Path) -> None:
    """2 ** 24 + 1 + (1 - 2 ** 24) = 2; in float32 2 ** 24 + 1 would be 2 ** 24 again, and the sum 1.

    All in units of 2 ** -20, as weights are no larger.
    """
    numbers = (2**24, 1, 1 - 2**24)
    paths = [write(tmp_path / str(number), first=torch.tensor([number / 2**20])) for number in numbers]
    assert average(paths, 1).item() == pytest.approx(2 / 3 / 2**20, rel=1e-6)


def test_agreement_is_the_cosine() -> None:
    """Of all matrices as one vector, (4, 0, 0, 3) and the mean of (2, 0, 0, 3) and (4, 0, 0, -3); not of biases."""
    mean = WeightedMean()
    for first, second in ((2.0, 3.0), (4.0, -3.0)):
        mean.add({"a": torch.tensor([[first, 0.0], [0.0, second]]), "b": torch.full((9,), 7.0)})
    assert mean.agreement({"a": torch.tensor([[4.0, 0.0], [0.0, 3.0]]), "b": torch.full((9,), 7.0)}) == pytest.approx(
        0.8
    )
    assert mean.agreement({"a": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "b": torch.full((9,), 7.0)}) == 0.0
