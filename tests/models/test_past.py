"""What attention remembers of its earlier steps: their weights' sum, the last weights, or nothing."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from nmt.models.attention import Attention
from nmt.models.scopes import GlobalScope
from nmt.models.scores import AdditiveScore
from nmt.models.seq2seq import Seq2Seq


def test_coverage_accumulates() -> None:
    """Two positions, e_j = tanh(h_j - 2 C_j) with h = (0, 1): after each step the one that had more gets less."""
    score = AdditiveScore(1, 1, size=1, bias=False, coverage=True)
    assert score.coverage_vector is not None
    for parameter, value in (
        (score.query_layer.weight, 0.0),
        (score.memory_layer.weight, 1.0),
        (score.vector, 1.0),
        (score.coverage_vector, -2.0),
    ):
        nn.init.constant_(parameter, value)
    attention = Attention(score.double(), GlobalScope(1), memory_size=1)
    memory = attention.remember(torch.tensor([[[0.0], [1.0]]], dtype=torch.float64), torch.tensor([2]))
    past, coverage = attention.start(memory), [0.0, 0.0]
    for step in range(4):
        assert past.steps == step
        assert past.weights is None  # coverage alone is asked for
        assert past.coverage is not None
        assert past.coverage[0].tolist() == pytest.approx(coverage)
        scores = [math.exp(math.tanh(h - 2 * c)) for h, c in zip([0.0, 1.0], coverage, strict=True)]
        expected = [score / sum(scores) for score in scores]
        context, weights, past = attention.step(torch.zeros(1, 1, dtype=torch.float64), memory, past)
        assert weights[0].tolist() == pytest.approx(expected)
        assert context.item() == pytest.approx(expected[1])
        coverage = [c + w for c, w in zip(coverage, expected, strict=True)]
    assert sum(coverage) == pytest.approx(4)


@pytest.mark.parametrize(
    ("options", "weights", "coverage"),
    [
        ({"score": "additive"}, False, False),
        ({"score": "additive", "coverage": True}, False, True),
        ({"score": "location_sensitive"}, True, False),
        ({"score": "location_sensitive", "coverage": True}, True, True),
    ],
    ids=["nothing", "coverage", "weights", "both"],
)
def test_only_what_is_asked_for_is_remembered(
    make_model: Callable[..., Seq2Seq], batch: Any, options: dict[str, Any], weights: bool, coverage: bool
) -> None:
    """In the state of search: the weights of the last step, and the sum of those of all steps."""
    model = make_model(attention=options)
    state = model.start(batch[0], batch[1])
    expected = model(*batch).weights
    for tokens in batch[2].unbind(1):
        _, state = model.step(tokens, state)
    past = state.decoder.past
    assert (past.weights is not None, past.coverage is not None) == (weights, coverage)
    if past.weights is not None:
        torch.testing.assert_close(past.weights, expected[:, -1], rtol=0, atol=1e-12)
    if past.coverage is not None:
        torch.testing.assert_close(past.coverage, expected.sum(1), rtol=0, atol=1e-12)
