"""The average of weights that a person can average."""

import pytest
import torch

from nmt.training.averaging import WeightedMean


def test_the_mean_by_shares() -> None:
    """Three parts of 1 and one of 5 are 8 fourths."""
    mean = WeightedMean()
    mean.add({"weight": torch.tensor([1.0])}, 3.0)
    mean.add({"weight": torch.tensor([5.0])})
    assert mean.weights() == {"weight": torch.tensor([2.0])}


def test_sums_are_exact() -> None:
    """2 ** 24 + 1 + (1 - 2 ** 24) = 2; in float32 2 ** 24 + 1 would be 2 ** 24 again, and the sum 1.

    All in units of 2 ** -20, as weights are no larger.
    """
    mean = WeightedMean()
    for number in (2**24, 1, 1 - 2**24):
        mean.add({"weight": torch.tensor([number / 2**20])})
    assert mean.weights()["weight"].item() == pytest.approx(2 / 3 / 2**20, rel=1e-6)


def test_agreement_is_the_cosine() -> None:
    """Of all matrices as one vector, (4, 0, 0, 3) and the mean of (2, 0, 0, 3) and (4, 0, 0, -3); not of biases."""
    mean = WeightedMean()
    for first, second in ((2.0, 3.0), (4.0, -3.0)):
        mean.add({"a": torch.tensor([[first, 0.0], [0.0, second]]), "b": torch.full((9,), 7.0)})
    assert mean.agreement({"a": torch.tensor([[4.0, 0.0], [0.0, 3.0]]), "b": torch.full((9,), 7.0)}) == pytest.approx(
        0.8
    )
    assert mean.agreement({"a": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "b": torch.full((9,), 7.0)}) == 0.0
