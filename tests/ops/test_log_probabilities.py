"""The log-probabilities of single words in chunks, against the plain twin, differences, and all logits."""

import pytest
import torch

from nmt.ops import chunks
from nmt.ops.computing import computing
from nmt.ops.log_probabilities import log_probabilities, log_probabilities_plain
from tests.ops.test_loss import SIZE, TOKENS, VOCABULARY, inputs


def test_of_equal_logits_all_words_have_the_same() -> None:
    values = log_probabilities(torch.zeros(2, SIZE), torch.ones(VOCABULARY, SIZE), torch.tensor([0, 5]))
    torch.testing.assert_close(values.exp(), torch.full((2,), 1 / VOCABULARY))


@pytest.mark.parametrize(("chunk", "together"), [(1, 1), (1, 3), (2, 1), (2, 2), (TOKENS, 1), (100, 1)])
def test_chunks_equal_the_plain_twin(monkeypatch: pytest.MonkeyPatch, chunk: int, together: int) -> None:
    """Every word with a gradient of its own."""
    monkeypatch.setattr(chunks, "CHUNK", chunk)
    monkeypatch.setattr(chunks, "GROUP", chunk * together * VOCABULARY)
    results = []
    for function in (log_probabilities_plain, log_probabilities):
        vectors, weight, targets = inputs()
        values = function(vectors, weight, targets)
        values.backward(torch.arange(TOKENS, dtype=torch.float64) - 2.5)
        results.append((values, vectors.grad, weight.grad))
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("frozen", ["weight", "vectors"])
def test_what_is_frozen_has_no_gradient(frozen: str) -> None:
    vectors, weight, targets = inputs()
    kept = {"vectors": vectors, "weight": weight}
    kept.pop(frozen).requires_grad_(False)
    log_probabilities(vectors, weight, targets).sum().backward()
    assert {"vectors": vectors, "weight": weight}[frozen].grad is None
    assert all(tensor.grad is not None for tensor in kept.values())


def test_the_backward_pass_rounds_as_the_forward_pass_did() -> None:
    gradients = {}
    for precision in (torch.float32, torch.bfloat16):
        vectors, weight, targets = inputs()
        vectors, weight = (tensor.detach().float().requires_grad_() for tensor in (vectors, weight))
        with computing(precision=precision):
            values = log_probabilities(vectors, weight, targets)
        values.sum().backward()
        assert vectors.grad is not None
        assert weight.grad is not None
        assert values.dtype == vectors.grad.dtype == weight.grad.dtype == torch.float32
        gradients[precision] = torch.cat([vectors.grad.flatten(), weight.grad.flatten()])
    whole, rounded = gradients.values()
    assert 1e-5 < float((whole - rounded).norm() / whole.norm()) < 2e-2
