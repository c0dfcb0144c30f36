"""Whole recurrent sequences against loops over single steps, whose gradients are autograd's."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.ops.recurrence import GRU, LSTM
from nmt.ops.sequence import sequence, sequence_plain

STEPS, GROUPS, ROWS, SIZE = 7, 2, 5, 3
KINDS = {"gru": GRU, "lstm": LSTM}


def problem(cell: str, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Projected inputs, recurrent weights, biases, first states h and c."""
    torch.manual_seed(7)
    gates = KINDS[cell].gates * SIZE
    shapes = ((STEPS, GROUPS, ROWS, gates), (GROUPS, gates, SIZE), (GROUPS, gates), *2 * ((GROUPS, ROWS, SIZE),))
    return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]


def padding() -> Tensor:
    """The first group has its padding at the end, the second at the start, as the directions of an encoder have."""
    lengths = torch.tensor([STEPS, 1, 4, STEPS, 2])
    real = (torch.arange(STEPS).unsqueeze(1) < lengths).unsqueeze(2)
    return torch.stack((real, real.flip(0)), dim=1)


def fast(cell: str, tensors: list[Tensor], real: Tensor | None) -> tuple[Tensor, ...]:
    inputs, weight, bias, *first = tensors
    kind = KINDS[cell]
    return sequence(kind, inputs, weight, bias if kind.recurrent_bias else None, tuple(first[: kind.states]), real)


def plain(cell: str, tensors: list[Tensor], real: Tensor | None) -> tuple[Tensor, ...]:
    inputs, weight, bias, *first = tensors
    kind = KINDS[cell]
    one_bias = bias if kind.recurrent_bias else None
    return sequence_plain(kind, inputs, weight, one_bias, tuple(first[: kind.states]), real)


def gradients(
    compute: Callable[[str, list[Tensor], Tensor | None], tuple[Tensor, ...]], cell: str, real: Tensor | None
) -> list[Tensor]:
    tensors = problem(cell)
    used = tensors[:4] if cell == "gru" else [*tensors[:2], *tensors[3:]]
    results = compute(cell, tensors, real)
    torch.manual_seed(1)
    loss = sum((result * torch.randn_like(result)).sum() for result in results)
    assert isinstance(loss, Tensor)
    return list(torch.autograd.grad(loss, used))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_equal_to_the_loop_over_steps(cell: str, padded: bool) -> None:
    real = padding() if padded else None
    for output, expected in zip(fast(cell, problem(cell), real), plain(cell, problem(cell), real), strict=True):
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    for gradient, expected in zip(gradients(fast, cell, real), gradients(plain, cell, real), strict=True):
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-10)
