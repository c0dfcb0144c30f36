"""The moving average of weights: its equation in NumPy, and the model around it."""

import numpy as np
import pytest
import torch
from torch import nn

from nmt.training.moving_average import MovingAverage


def test_the_equation_in_numpy() -> None:
    """d = 0.9 is reached at t = 80."""
    draws = np.random.default_rng(0).normal(size=(101, 3, 2))
    model = nn.Linear(2, 3, bias=False).double()
    model.weight.data.copy_(torch.from_numpy(draws[0]))
    average, expected = MovingAverage(model, 0.9), draws[0]
    for t in range(1, 101):
        model.weight.data.copy_(torch.from_numpy(draws[t]))
        average.follow(t)
        d = min(0.9, (1 + t) / (10 + t))
        expected = d * expected + (1 - d) * draws[t]
    torch.testing.assert_close(average.weights["weight"], torch.from_numpy(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("decay", [0.9999, 0.99999])
def test_a_long_average_arrives(decay: float) -> None:
    """Of float32 weights that stay at 1.001 when the average is at 1: after n updates it has come (1 - d^n) of the way.
    In float32 it would stand still at the latest at 1.0004, where 1e-4 of what is left is half the last bit of 1."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    average, updates, first = MovingAverage(model, decay), 20_000, 1_000_000  # d_t = d from there on
    nn.init.constant_(model.weight, 1.001)
    for t in range(first, first + updates):
        average.follow(t)
    came = (average.weights["weight"].item() - 1.0) / (model.weight.item() - 1.0)
    assert came == pytest.approx(1 - decay**updates, rel=1e-9)


@pytest.mark.parametrize("decay", [0.9, 0.9999])  # in float32 and in float64
def test_the_average_is_in_the_model_for_a_while(decay: float) -> None:
    model = nn.Linear(2, 3)
    average = MovingAverage(model, decay)
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    nn.init.normal_(model.weight)
    last = model.weight.detach().clone()

    def interrupted() -> None:
        with average.in_model():
            torch.testing.assert_close(model.state_dict(), first, rtol=0, atol=0)  # float32, as `first`
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.equal(model.weight, last)
    assert all(torch.equal(average.weights[name].float(), weight) for name, weight in first.items())
