"""The guided loss against its dense formula in NumPy, and its gradient where weights are 0 or nearly so."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.ops.guidance import guided_loss

BATCH, TARGET, SOURCE = 2, 3, 5


def links(dense: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, targets, sources = dense.nonzero(as_tuple=True)
    return rows, targets, sources, dense[rows, targets, sources]


def alignment() -> Tensor:
    """Two positions with several links, one with one, and three without any."""
    dense = torch.zeros(BATCH, TARGET, SOURCE, dtype=torch.float64)
    dense[0, 0, 1:4] = torch.tensor([0.5, 0.25, 0.25])
    dense[0, 2, 4] = 1.0
    dense[1, 1, :2] = 0.5
    return dense


def scores() -> Tensor:
    torch.manual_seed(3)
    return torch.randn(BATCH, TARGET, SOURCE, dtype=torch.float64, requires_grad=True)


def test_the_formula() -> None:
    weights, dense = torch.softmax(scores(), -1), alignment()
    expected = 0.0
    for sentence, aligned in zip(weights.detach().numpy(), dense.numpy(), strict=True):
        for attended, row in zip(sentence, aligned, strict=True):
            expected -= float((row * np.log(attended)).sum())
    assert guided_loss(weights, *links(dense)).item() == pytest.approx(expected, rel=1e-12)
    shares = links(dense)[3].float()
    assert guided_loss(weights.float(), *links(dense)[:3], shares).item() == pytest.approx(expected, rel=1e-6)


def test_the_gradient_of_the_scores_is_the_difference_of_attention_and_alignment() -> None:
    """For softmax weights d loss / d e = a - A where a position is linked, and 0 elsewhere."""
    energies, dense = scores(), alignment()
    weights = torch.softmax(energies, -1)
    guided_loss(weights, *links(dense)).backward()
    linked = dense.sum(-1, keepdim=True) > 0
    torch.testing.assert_close(energies.grad, torch.where(linked, weights.detach() - dense, 0.0), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lambda e: guided_loss(torch.softmax(e, -1), *links(dense)), (scores(),))


def test_a_position_that_cannot_be_attended_to_is_left_out() -> None:
    """The weights of a local scope: 0 outside the window, and no gradient is NaN."""
    energies, dense = scores(), alignment()
    outside = torch.zeros_like(dense, dtype=torch.bool)
    outside[0, 0, 2:] = True  # two of three links
    outside[1, 1, :2] = True  # all of them
    weights = torch.softmax(energies.masked_fill(outside, -1e300), -1).masked_fill(outside, 0.0)
    loss = guided_loss(weights, *links(dense))
    inside = -(0.5 * weights[0, 0, 1].log() + weights[0, 2, 4].log())
    assert loss.item() == pytest.approx(inside.item(), rel=1e-12)
    loss.backward()
    assert energies.grad is not None
    assert energies.grad.isfinite().all()
    assert not energies.grad[1].any()


@pytest.mark.parametrize("weight", [1e-29, 1e-31, 1e-42, 0.0])
def test_tiny_weights_have_finite_gradients(weight: float) -> None:
    weights = torch.tensor([[[weight, 1.0]]], requires_grad=True)
    one = torch.zeros(1, dtype=torch.int64)
    loss = 1e3 * guided_loss(weights, one, one, one, torch.ones(1))
    loss.backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()
    assert bool(loss) == (weight == 1e-29)


def test_without_links_it_is_0_with_gradients_of_0() -> None:
    energies = scores()
    loss = guided_loss(torch.softmax(energies, -1), *links(torch.zeros(BATCH, TARGET, SOURCE)))
    loss.backward()
    assert loss.item() == 0.0
    assert energies.grad is not None
    assert not energies.grad.any()
