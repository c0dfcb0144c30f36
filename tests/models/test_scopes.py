"""Where attention looks: local windows as tables, and predicted positions known by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import PositionLogit, PositionScale
from nmt.models.attention import Attention
from nmt.models.memory import all_steps
from nmt.models.scopes import LocalMonotonicScope, LocalPredictiveScope, Scope
from nmt.models.scores import DotScore

LN3 = math.log(3)
HALF, TWO = math.exp(-0.5), math.exp(-2)  # the Gaussian at one and two standard deviations


def weights_of(scope: Scope, queries: list[float], lengths: list[int]) -> Tensor:
    """The weights (batch, queries, source_length) where all scores are 0, so that the softmax is even: 1 / window.

    Queries have one unit, which nothing but the scope reads.
    """
    attention = Attention(DotScore(1, 1), scope, memory_size=1).double()
    memory = attention.remember(torch.zeros(len(lengths), max(lengths), 1, dtype=torch.float64), torch.tensor(lengths))
    query = torch.tensor(queries, dtype=torch.float64).view(1, -1, 1).expand(len(lengths), -1, -1)
    _, weights = attention(query, memory, all_steps(len(queries), device=torch.device("cpu")))
    return weights.detach()


def table(weights: Tensor) -> list[str]:
    """A row a step: x where there is weight, a point where it is exactly 0."""
    return ["".join("x" if weight else "." for weight in row) for row in weights.tolist()]


def monotonic(half_width: int, *, gaussian: bool = False) -> LocalMonotonicScope:
    return LocalMonotonicScope(1, half_width=half_width, gaussian=gaussian)


def predictive(
    half_width: int, *, renormalize: bool = False, position_scale: PositionScale = "last_position"
) -> LocalPredictiveScope:
    """p_t = (S - 1) · σ(ln 3 · tanh(100 h)): a quarter, the middle and three quarters of the way for h = -1, 0, 1."""
    scope = LocalPredictiveScope(
        1, half_width=half_width, position_scale=position_scale, position_logit="scaled", renormalize=renormalize
    )
    nn.init.constant_(scope.layer.weight, 100.0)
    nn.init.constant_(scope.vector, LN3)
    return scope


# -------------------------------------------------------------------------------------------------------------- local-m


def test_monotonic_windows() -> None:
    """D = 1. The windows go along with the target, are cut at both ends of the sentence, and stay at its last token
    where the target is longer; a sentence may be shorter than the window."""
    weights = weights_of(monotonic(1), [0.0] * 8, [6, 3, 1])
    assert table(weights[0]) == ["xx....", "xxx...", ".xxx..", "..xxx.", "...xxx", "....xx", "....xx", "....xx"]
    assert table(weights[1]) == ["xx....", "xxx...", ".xx...", ".xx...", ".xx...", ".xx...", ".xx...", ".xx..."]
    assert table(weights[2]) == ["x....."] * 8


# -------------------------------------------------------------------------------------------------------------- local-p


def test_predicted_positions_by_hand() -> None:
    """σ(-ln 3) = 1/4, σ(0) = 1/2, σ(ln 3) = 3/4, of S - 1: of 8, 2 and 0 for 9, 3 and 1 tokens, END counted."""
    scope = predictive(2).double()
    query = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64).view(1, 3, 1).expand(3, -1, -1)
    centers = scope.center(query, torch.tensor([9, 3, 1]))
    torch.testing.assert_close(centers, torch.tensor([[2.0, 4, 6], [0.5, 1, 1.5], [0, 0, 0]], dtype=torch.float64))


def test_predicted_positions_of_the_length() -> None:
    """A quarter, the middle and three quarters of S, for 8, 4 and 1 tokens. The last is within reach where σ is 1."""
    scope = predictive(1, position_scale="length").double()
    query = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64).view(1, 3, 1).expand(3, -1, -1)
    centers = scope.center(query, torch.tensor([8, 4, 1]))
    torch.testing.assert_close(centers, torch.tensor([[2.0, 4, 6], [1, 2, 3], [0.25, 0.5, 0.75]], dtype=torch.float64))
    nn.init.constant_(scope.vector, 1e3)
    assert weights_of(scope, [1.0], [4])[0, 0].tolist() == pytest.approx([0, 0, 0, TWO])


@pytest.mark.parametrize(("position_logit", "share"), [("scaled", 3 / 4), ("unscaled", 9 / 10)])
def test_predicted_positions_of_four_units(position_logit: PositionLogit, share: float) -> None:
    """v_pᵀ tanh(W_p h) = 4 · ln 3 / 2 = ln 9. Divided by √4 it is ln 3, and σ(ln 3) = 3/4, where σ(ln 9) = 9/10."""
    scope = LocalPredictiveScope(
        4, half_width=1, position_scale="length", position_logit=position_logit, renormalize=False
    ).double()
    nn.init.constant_(scope.layer.weight, 100.0)
    nn.init.constant_(scope.vector, LN3 / 2)
    centers = scope.center(torch.ones(1, 1, 4, dtype=torch.float64), torch.tensor([20]))
    torch.testing.assert_close(centers, torch.tensor([[20 * share]], dtype=torch.float64))


def test_predictive_weights_by_hand() -> None:
    """S = 7 and D = 2, so σ = 1. p_t = 3: five even weights, times the Gaussian at 2, 1, 0, 1, 2. p_t = 4.5 and 1.5:
    four even weights, times the Gaussian at 1.5, 0.5, 0.5, 1.5. The sums are less than 1."""
    weights = weights_of(predictive(2), [0.0, 1.0, -1.0], [7])
    near, far = math.exp(-0.125), math.exp(-1.125)
    assert weights[0, 0].tolist() == pytest.approx([0, TWO / 5, HALF / 5, 1 / 5, HALF / 5, TWO / 5, 0])
    assert weights[0, 1].tolist() == pytest.approx([0, 0, 0, far / 4, near / 4, near / 4, far / 4])
    assert weights[0, 2].tolist() == pytest.approx([far / 4, near / 4, near / 4, far / 4, 0, 0, 0])
    assert table(weights[0]) == [".xxxxx.", "...xxxx", "xxxx..."]
    assert weights[0].sum(-1).tolist() == pytest.approx(
        [(1 + 2 * HALF + 2 * TWO) / 5, (near + far) / 2, (near + far) / 2]
    )


@pytest.mark.parametrize(("pull", "first", "last"), [(1e3, 0.0, 1.0), (-1e3, 1.0, 0.0)], ids=["end", "beginning"])
def test_predicted_position_at_the_borders(pull: float, first: float, last: float) -> None:
    """A saturated σ gives exactly the first or the last token, never a position beyond it."""
    scope = predictive(1)
    nn.init.constant_(scope.vector, pull)
    weights = weights_of(scope, [1.0], [4])[0, 0]
    assert weights.tolist() == pytest.approx([first / 2, first * TWO / 2, last * TWO / 2, last / 2])


def test_the_gaussian_comes_after_the_softmax() -> None:
    """Scores 0 and ln 3 at the two positions of the window: 1/4 and 3/4, both one standard deviation away. A Gaussian
    inside the softmax, as an option of the authors' code has it, would change their proportion."""
    attention = Attention(DotScore(1, 1), predictive(1), memory_size=1).double()
    nn.init.zeros_(attention.scope.vector)  # p_t is the middle for any query, and the query of 1 can score
    values = torch.tensor([[[7.0], [0.0], [LN3], [9.0]]], dtype=torch.float64)
    memory = attention.remember(values, torch.tensor([4]))
    context, weights = attention(torch.ones(1, 1, 1, dtype=torch.float64), memory, all_steps(1, device=values.device))
    assert weights[0, 0].tolist() == pytest.approx([0, HALF / 4, HALF * 3 / 4, 0])
    assert context.item() == pytest.approx(HALF * 3 / 4 * LN3)


def test_renormalized_far_scores_stay_finite() -> None:
    """All the softmax's mass on the window's border: the Gaussian there is exp(-2), so the divisor is never 0."""
    attention = Attention(DotScore(1, 1), predictive(2, renormalize=True), memory_size=1)
    nn.init.zeros_(attention.scope.vector)
    values = torch.tensor([[[1e4], [0.0], [0.0], [0.0], [-1e4]]], requires_grad=True)
    memory = attention.remember(values, torch.tensor([5]))
    _, weights = attention(torch.ones(1, 1, 1), memory, all_steps(1, device=values.device))
    assert weights[0, 0].tolist() == [1, 0, 0, 0, 0]
    weights.square().sum().backward()
    assert values.grad is not None
    assert values.grad.isfinite().all()
