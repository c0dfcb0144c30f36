import math
from collections.abc import Callable

import pytest
import torch

from nmt.ops import loss as loss_module
from nmt.ops.loss import perplexity, smoothed_cross_entropy, smoothed_cross_entropy_plain

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
    monkeypatch.setattr(loss_module, "CHUNK", chunk)
    monkeypatch.setattr(loss_module, "GROUP", chunk * together * VOCABULARY)
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
    monkeypatch.setattr(loss_module, "CHUNK", chunk)
    monkeypatch.setattr(loss_module, "GROUP", chunk * together * VOCABULARY)
    monkeypatch.setattr(loss_module, "add_product", lambda total, left, right: written.append(right.size(0)))
    vectors, weight, targets = inputs()
    smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)
    assert len(written) == expected


def test_without_gradients_every_chunk_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK", 2)
    vectors, weight, targets = inputs()
    with torch.no_grad():
        found = smoothed_cross_entropy(vectors, weight, targets, smoothing=0.1)
        plain = smoothed_cross_entropy_plain(vectors, weight, targets, smoothing=0.1)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)


def test_the_likelihood_that_is_reported_has_no_gradient() -> None:
    smoothed, nll = smoothed_cross_entropy(*inputs(), smoothing=0.1)
    assert smoothed.requires_grad
    assert not nll.requires_grad


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert perplexity(699.0) == math.exp(699.0)
    assert perplexity(710.0) == perplexity(1e9) == math.inf  # exp(709.8) is more than a float holds


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
