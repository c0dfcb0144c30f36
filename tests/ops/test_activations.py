"""tanh and the scores of a tanh layer: equal to their plain twins, and what they keep for the backward pass."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from nmt.ops.activations import tanh, tanh_forward, tanh_scores
from nmt.ops.computing import computing

BATCH, QUERIES, LENGTH, SIZE = 2, 3, 5, 7
SHAPES = {
    "one query a step": [(BATCH, 1, 1, SIZE), (BATCH, 1, LENGTH, SIZE)],
    "all queries": [(BATCH, QUERIES, 1, SIZE), (BATCH, 1, LENGTH, SIZE)],
    "keys of each query": [(BATCH, QUERIES, 1, SIZE), (BATCH, QUERIES, LENGTH, SIZE)],
    "coverage": [(BATCH, 1, 1, SIZE), (BATCH, 1, LENGTH, SIZE), (BATCH, 1, LENGTH, SIZE)],
}


def inputs(shapes: Sequence[tuple[int, ...]]) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(3)
    *parts, vector = (
        torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True) for shape in (*shapes, (SIZE,))
    )
    return parts, vector


def test_tanh_equals_its_twin() -> None:
    values = torch.linspace(-30, 30, 1001, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(tanh(values), torch.tanh(values), rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(tanh, (values[480:520].detach().requires_grad_(),))


def test_which_tanh_is_computed() -> None:
    """The library's as the plain twin; ours with its own backward pass, which keeps the result alone."""
    values = torch.randn(3, requires_grad=True)
    assert tanh(values).grad_fn.name() == "_TanhBackward"
    with computing(fused=False):
        assert tanh(values).grad_fn.name() == "TanhBackward0"
    with torch.no_grad():
        assert torch.equal(tanh(values), tanh_forward(values))
        assert tanh(values).grad_fn is None


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_scores_equal_their_twin(shapes: list[tuple[int, ...]]) -> None:
    results = []
    for fused in (True, False):
        parts, vector = inputs(shapes)
        with computing(fused=fused):
            scores = tanh_scores(parts, vector)
            (scores * torch.arange(scores.numel()).view_as(scores)).sum().backward()
        results.append([scores, vector.grad, *(part.grad for part in parts)])
    for fast, plain in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


def test_any_layout_of_the_parts() -> None:
    (query, keys), vector = inputs(SHAPES["all queries"])
    expected = torch.autograd.grad(tanh_scores([query, keys], vector).sum(), (query, keys, vector))
    turned = [part.transpose(0, 3).contiguous().transpose(0, 3) for part in (query, keys)]
    gradients = torch.autograd.grad(tanh_scores(turned, vector).sum(), (query, keys, vector))
    torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-13)


def test_the_hidden_layer_is_not_kept() -> None:
    """Over a sentence it would be target_length × source_length × size, most of what training holds."""
    parts, vector = inputs(SHAPES["all queries"])
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        tanh_scores(parts, vector)
    assert sum(kept) == sum(tensor.numel() for tensor in (*parts, vector))
