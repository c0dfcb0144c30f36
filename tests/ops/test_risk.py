"""The expected risk by hand, against plain NumPy, and its gradient against the formula."""

import math

import numpy as np
import pytest
import torch

from nmt.ops.risk import expected_risk

COSTS = [[0.0, 0.2, 0.9, 0.5, 0.7], [0.4, 0.3, 0.0, 0.0, 0.0], [0.8, 0.0, 0.0, 0.0, 0.0]]
COUNTS = [5, 2, 1]  # candidates of three sources; the costs of others mean nothing
LOG_PROBABILITIES = [[-3.0, -7.5, -20.0, -1.5, -400.0], [-11.0, -13.0, 0.0, 5.0, 0.0], [-2.0, 0.0, 0.0, 0.0, 0.0]]


def mask() -> torch.Tensor:
    return torch.arange(5) < torch.tensor(COUNTS).unsqueeze(1)


def test_by_hand() -> None:
    """P of 1/4 and 1/100 with α = 1/2 are weighed as 1/2 and 1/10: Q is 5/6 and 1/6."""
    both = torch.tensor([[math.log(1 / 4), math.log(1 / 100)]], dtype=torch.float64)
    costs = torch.tensor([[0.3, 0.9]], dtype=torch.float64)
    risk = expected_risk(both, costs, torch.ones(1, 2, dtype=torch.bool), sharpness=0.5)
    assert risk.tolist() == [pytest.approx(0.3 * 5 / 6 + 0.9 / 6)]


@pytest.mark.parametrize("sharpness", [0.005, 0.5, 1.0, 30.0])
def test_in_numpy_with_the_gradient(sharpness: float) -> None:
    values = torch.tensor(LOG_PROBABILITIES, dtype=torch.float64, requires_grad=True)
    risk = expected_risk(values, torch.tensor(COSTS, dtype=torch.float64), mask(), sharpness=sharpness)
    risk.sum().backward()
    for row, count in enumerate(COUNTS):
        log_p, costs = np.array(LOG_PROBABILITIES[row][:count]), np.array(COSTS[row][:count])
        powers = np.exp(sharpness * (log_p - log_p.max()))
        shares = powers / powers.sum()
        expected = float(shares @ costs)
        assert float(risk[row].detach()) == pytest.approx(expected, abs=1e-12)
        gradient = sharpness * shares * (costs - expected)
        assert values.grad is not None
        np.testing.assert_allclose(values.grad[row, :count], gradient, rtol=0, atol=1e-12)
        assert not values.grad[row, count:].any()


def test_equal_costs_teach_nothing() -> None:
    values = torch.tensor(LOG_PROBABILITIES, dtype=torch.float64, requires_grad=True)
    risk = expected_risk(values, torch.full((3, 5), 0.25, dtype=torch.float64), mask(), sharpness=0.5)
    risk.sum().backward()
    torch.testing.assert_close(risk.detach(), torch.full((3,), 0.25, dtype=torch.float64))
    torch.testing.assert_close(values.grad, torch.zeros(3, 5, dtype=torch.float64))
