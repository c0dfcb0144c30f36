"""The GRU whose reset gate comes first: a step by hand, and whole sequences against loops over plain steps."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.ops.computing import computing
from nmt.ops.reset_first import reset_first_sequence, reset_first_step
from tests.ops.test_sequence import GROUPS, ROWS, SIZE, STEPS, padding


def test_a_step_by_hand() -> None:
    """r = z = σ(0) = 0.5, and U_g = 3 multiplies r h = 2: g = tanh(6 - 5), h' = 0.5 tanh(1) + 0.5 · 4."""
    three, nothing = partial(torch.mul, other=3.0), lambda hidden: torch.zeros(1, 2)
    (new,) = reset_first_step(torch.tensor([[0.0, 0.0, -5.0]]), torch.tensor([[4.0]]), nothing, three)
    assert new.item() == pytest.approx(0.5 * np.tanh(1.0) + 2.0)


def problem() -> list[Tensor]:
    """Projected inputs, recurrent weights, the first state."""
    torch.manual_seed(7)
    shapes = ((STEPS, GROUPS, ROWS, 3 * SIZE), (GROUPS, 3 * SIZE, SIZE), (GROUPS, ROWS, SIZE))
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def by_steps(inputs: Tensor, weight: Tensor, first: Tensor, real: Tensor | None) -> Tensor:
    state, outputs = first, []
    for step in range(STEPS):
        xr, xz, xg = inputs[step].chunk(3, dim=-1)
        ur, uz, ug = (part.transpose(1, 2) for part in weight.chunk(3, dim=1))
        r, z = torch.sigmoid(xr + state @ ur), torch.sigmoid(xz + state @ uz)
        new = (1 - z) * torch.tanh(xg + (r * state) @ ug) + z * state
        state = new if real is None else torch.where(real[step], new, state)
        outputs.append(state)
    return torch.stack(outputs)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("padded", [False, True])
def test_equal_to_the_loop_over_steps(padded: bool, fused: bool) -> None:
    real, tensors = padding() if padded else None, problem()
    expected = by_steps(*tensors, real)
    with computing(fused=fused):
        states = reset_first_sequence(*tensors, real)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-12)
    factor = torch.randn_like(expected)
    gradients = (torch.autograd.grad((result * factor).sum(), tensors) for result in (states, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_in_bfloat16_it_is_nearly_the_same() -> None:
    """Only the products are rounded, in both passes."""
    tensors = [tensor.detach().float().requires_grad_() for tensor in problem()]
    expected = reset_first_sequence(*tensors, padding())
    with computing(precision=torch.bfloat16):
        states = reset_first_sequence(*tensors, padding())
    assert states.dtype == torch.float32
    assert not torch.equal(states, expected)
    torch.testing.assert_close(states, expected, rtol=0, atol=0.05)
    for one, other in zip(*(torch.autograd.grad(result.sum(), tensors) for result in (states, expected)), strict=True):
        torch.testing.assert_close(one, other, rtol=0.1, atol=0.2)
