import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from nmt.ops import chunks
from nmt.ops import loss as loss_module
from nmt.ops.loss import (
    r_drop_cross_entropy,
    r_drop_cross_entropy_plain,
    smoothed_cross_entropy,
    smoothed_cross_entropy_plain,
)

TOKENS, SIZE, VOCABULARY = 7, 3, 11


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(TOKENS, SIZE, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(VOCABULARY, SIZE, dtype=torch.float64, generator=generator, requires_grad=True)
    return vectors, weight, torch.randint(VOCABULARY, (TOKENS,), generator=generator)


def test_uniform_distribution_costs_the_logarithm_of_the_vocabulary() -> None:
    vectors, weight = torch.zeros(2, SIZE), torch.ones(VOCABULARY, SIZE)
    smoothed, nll = smoothed_cross_entropy(vectors, weight, torch.tensor([0, 5]), smoothing=0.1)
    assert nll.item() == pytest.approx(2 * math.log(VOCABULARY))
    assert smoothed.item() == pytest.approx(2 * math.log(VOCABULARY))


@pytest.mark.parametrize(("chunk", "together"), [(1, 1), (1, 3), (2, 1), (2, 2), (TOKENS, 1), (100, 1)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunks_equal_the_plain_twin(
    monkeypatch: pytest.MonkeyPatch, chunk: int, together: int, smoothing: float
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", chunk)
    monkeypatch.setattr(chunks, "GROUP", chunk * together * VOCABULARY)
    results = []
    for function in (smoothed_cross_entropy_plain, smoothed_cross_entropy):
        vectors, weight, targets = inputs()
        smoothed, nll = function(vectors, weight, targets, smoothing=smoothing)
        (3.0 * smoothed).backward()
        results.append((smoothed, nll, vectors.grad, weight.grad))
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("chunk", "together", "expected"), [(1, 1, 7), (1, 3, 3), (2, 1, 4), (2, 2, 2), (100, 1, 1)])
def test_how_often_the_weight_s_gradient_is_written(
    monkeypatch: pytest.MonkeyPatch, chunk: int, together: int, expected: int
) -> None:
    """Once for so many chunks of the 7 tokens."""
    written = []
    monkeypatch.setattr(chunks, "CHUNK", chunk)
    monkeypatch.setattr(chunks, "GROUP", chunk * together * VOCABULARY)
    monkeypatch.setattr(loss_module, "add_product", lambda total, left, right: written.append(right.size(0)))
    vectors, weight, targets = inputs()
    smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)
    assert len(written) == expected


def test_without_gradients_every_chunk_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 2)
    vectors, weight, targets = inputs()
    with torch.no_grad():
        chunked = smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)
        plain = smoothed_cross_entropy_plain(vectors, weight, targets, smoothing=0.1)
    torch.testing.assert_close(chunked, plain, rtol=0, atol=1e-12)


def test_the_likelihood_that_is_reported_has_no_gradient() -> None:
    smoothed, nll = smoothed_cross_entropy(*inputs(), smoothing=0.1)
    assert smoothed.requires_grad
    assert not nll.requires_grad


def test_gradient_against_finite_differences() -> None:
    vectors, weight, targets = inputs()
    assert torch.autograd.gradcheck(
        lambda v, w: smoothed_cross_entropy(v, w, targets, smoothing=0.1)[0], (vectors, weight)
    )


def products(function: Callable[[], object]) -> int:
    """How many matrix products `function` computes."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function()
    return sum(event.count for event in profile.key_averages() if event.key in ("aten::mm", "aten::addmm_"))


@pytest.mark.parametrize(("frozen", "expected"), [("", 3), ("weight", 2), ("vectors", 2), ("both", 1)])
def test_only_the_gradients_that_are_wanted_are_formed(frozen: str, expected: int) -> None:
    """One chunk: a product for the logits, and one for each wanted gradient."""
    vectors, weight, targets = inputs()
    vectors.requires_grad_(frozen not in ("vectors", "both"))
    weight.requires_grad_(frozen not in ("weight", "both"))
    assert products(lambda: smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)) == expected
    if frozen == "weight":
        smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)[0].backward()
        assert weight.grad is None
        assert vectors.grad is not None


def test_no_gradient_is_formed_where_none_is_asked_for() -> None:
    vectors, weight, targets = inputs()
    with torch.no_grad():
        assert products(lambda: smoothed_cross_entropy(vectors, weight, targets, smoothing=0.0)) == 1
        smoothed, nll = smoothed_cross_entropy(vectors, weight, targets, smoothing=0.0)
    assert not smoothed.requires_grad
    assert not nll.requires_grad
    assert smoothed.item() == pytest.approx(nll.item())


# --------------------------------------------------------------------------------------------------------------- R-Drop

TWO = [r_drop_cross_entropy_plain, r_drop_cross_entropy]


def pairs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two vectors of each token."""
    vectors, weight, targets = inputs()
    other = torch.randn(TOKENS, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return torch.stack((vectors.detach(), other), dim=1).requires_grad_(), weight, targets


@pytest.mark.parametrize("function", TWO)
def test_r_drop_of_two_distributions_over_two_words(function: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
    """p = (1/2, 1/2) and q = (1/4, 3/4) have KL(p ‖ q) + KL(q ‖ p) = Σ (p - q) log(p / q) = log(3) / 4."""
    vectors = torch.tensor([[[0.5, 0.5], [0.25, 0.75]]], dtype=torch.float64).log()
    loss, nll = function(vectors, torch.eye(2, dtype=torch.float64), torch.tensor([0]), smoothing=0.0, alpha=6.0)
    assert nll.item() == pytest.approx((math.log(2) + math.log(4)) / 2, rel=1e-12)
    assert loss.item() == pytest.approx(nll.item() + 6 / 4 * math.log(3) / 4, rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_in_numpy(smoothing: float) -> None:
    vectors, weight, targets = pairs()
    logits = vectors.detach().numpy() @ weight.detach().numpy().T
    said = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    nll = loss = 0.0
    for (p, q), target in zip(said, targets.tolist(), strict=True):
        nll -= (p[target] + q[target]) / 2
        loss -= (1 - smoothing) * (p[target] + q[target]) / 2 + smoothing * (p.mean() + q.mean()) / 2
        loss += 5.0 / 4 * (np.sum(np.exp(p) * (p - q)) + np.sum(np.exp(q) * (q - p)))
    for function in TWO:
        losses = function(vectors, weight, targets, smoothing=smoothing, alpha=5.0)
        assert [part.item() for part in losses] == pytest.approx([loss, nll], rel=1e-12)


@pytest.mark.parametrize(("chunk", "together"), [(2, 1), (2, 3), (6, 1), (4, 2), (100, 1)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_in_chunks_equals_the_plain_twin(
    monkeypatch: pytest.MonkeyPatch, chunk: int, together: int, smoothing: float
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", chunk)
    monkeypatch.setattr(chunks, "GROUP", chunk * together * VOCABULARY)
    results = []
    for function in TWO:
        vectors, weight, targets = pairs()
        loss, nll = function(vectors, weight, targets, smoothing=smoothing, alpha=5.0)
        (3.0 * loss).backward()
        assert not nll.requires_grad
        results.append((loss, nll, vectors.grad, weight.grad))
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


def test_r_drop_of_equal_passes_is_the_usual_loss() -> None:
    vectors, weight, targets = inputs()
    expected = smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)
    twice = r_drop_cross_entropy(torch.stack((vectors, vectors), dim=1), weight, targets, smoothing=0.1, alpha=5.0)
    torch.testing.assert_close(twice, expected, rtol=0, atol=1e-12)


def test_r_drop_where_a_probability_is_too_small_for_a_number() -> None:
    """p and q are sure of different words, and exp of the rest is 0: what is finite stays so."""
    vectors = torch.tensor([[[300.0, 0.0], [0.0, 300.0]]], requires_grad=True)
    loss, _ = r_drop_cross_entropy(vectors, torch.eye(2), torch.tensor([0]), smoothing=0.0, alpha=4.0)
    loss.backward()
    assert loss.item() == pytest.approx(150 + 600)
    assert vectors.grad is not None
    assert bool(vectors.grad.isfinite().all())
