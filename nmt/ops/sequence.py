"""Whole sequences of recurrent states, with a backward pass written by hand.

The states of a sequence do not depend on anything but the sequence, in an encoder and in a decoder without input
feeding. So one function computes all steps; its backward pass goes through the steps for the gradients of the states,
and forms the gradient of the recurrent weights once, as one product over all steps.

Several recurrences of one size, such as the two directions of an encoder, run side by side as groups. Shapes, for S
steps, G groups, B rows, gates × size = N:

    from_inputs (S, G, B, N)    W x + b, projected before; gates side by side as in `recurrence`
    weight (G, N, size)         U, the recurrent weights; `bias` (G, N), which a GRU alone has here
    first (each (G, B, size))   the state before the first step
    real (S, G, B, 1) or None   False at padding, where the state stays as it is; None: there is none

`sequence_plain`, a loop over steps, is the plain twin.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.products import Product, outer_products, product
from nmt.ops.recurrence import GRU, CellState, Recurrence

Padded = dict[int, Tensor]
"""The steps at which some row is padding, each with its real[step] (G, B, 1)."""


def sequence(
    kind: Recurrence, from_inputs: Tensor, weight: Tensor, bias: Tensor | None, first: CellState, real: Tensor | None
) -> CellState:
    """The outputs h (S, G, B, size) after each step, and for an LSTM the last cell states c (G, B, size)."""
    if not fused():
        return sequence_plain(kind, from_inputs, weight, bias, first, real)
    results: CellState = _Sequence.apply(kind, from_inputs, weight, bias, padded_steps(real), *first)
    return results


def sequence_plain(
    kind: Recurrence, from_inputs: Tensor, weight: Tensor, bias: Tensor | None, first: CellState, real: Tensor | None
) -> CellState:
    """The same by autograd."""
    outputs, state = [], first
    for step, from_input in enumerate(from_inputs):
        from_hidden = state[0] @ weight.transpose(1, 2)
        new = kind.plain(from_input, from_hidden if bias is None else from_hidden + bias.unsqueeze(1), state[-1])
        if real is not None:
            new = tuple(torch.where(real[step], *parts) for parts in zip(new, state, strict=True))
        state = new
        outputs.append(state[0])
    return torch.stack(outputs), *state[1:]


def _states(
    kind: Recurrence,
    from_inputs: Tensor,
    multiply: Product,
    first: CellState,
    padded: Padded,
    kept: list[Tensor] | None,
) -> CellState:
    """What `sequence` returns; to `kept`, if it is there, is added what the backward pass needs besides that."""
    outputs, state = [], first
    for step, from_input in enumerate(from_inputs):
        new, values = kind.forward(from_input, multiply(state[0]), state[-1])
        if kept is not None:
            kept += values[1:] if kind == GRU else values  # the h before a step is among the outputs
        real = padded.get(step)
        state = tuple(at_real(real, *parts) for parts in zip(new, state, strict=True))
        outputs.append(state[0])
    return torch.stack(outputs), *state[1:]


class _Sequence(torch.autograd.Function):
    """Backward, step by step from the last: dh = Uᵀ times the gradient of U h, and a GRU's through h' only."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: Recurrence,
        from_inputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        padded: Padded,
        *first: Tensor,
    ) -> CellState:
        matrices = rounded(weight)
        kept: list[Tensor] = []
        multiply = partial(products_of_groups, matrices=matrices.transpose(1, 2), bias=bias)
        results = _states(kind, from_inputs, multiply, first, padded, kept)
        ctx.kind, ctx.computing, ctx.padded = kind, now(), padded
        ctx.save_for_backward(matrices, first[0], results[0], *kept)
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor, *of_cell: Tensor) -> tuple[Tensor | None, ...]:
        matrices, first, outputs, *kept = ctx.saved_tensors
        for_inputs, for_products = [], []
        carried = (torch.zeros_like(first), *of_cell)
        with computing(*ctx.computing):
            for step in reversed(range(len(outputs))):
                values = kept[3 * step : 3 * step + 3]
                if ctx.kind == GRU:
                    values = [first if step == 0 else outputs[step - 1], *values]
                real, of_state = ctx.padded.get(step), (carried[0] + gradients[step], *carried[1:])
                made = (at_real(real, part, 0.0) for part in of_state)
                for_input, for_product, for_last = ctx.kind.backward(*made, values)
                for_hidden = products_of_groups(for_product, matrices)
                for_state = (for_last.add_(for_hidden),) if ctx.kind == GRU else (for_hidden, for_last)
                carried = tuple(at_real(real, *parts) for parts in zip(for_state, of_state, strict=True))
                for_inputs.append(for_input)
                for_products.append(for_product)
            all_inputs = torch.stack(for_inputs[::-1])
            all_products = torch.stack(for_products[::-1]) if ctx.kind == GRU else all_inputs
            before = torch.cat((first.unsqueeze(0), outputs[:-1]))
            for_weight = outer_of_groups(all_products, before) if ctx.needs_input_grad[2] else None
        for_bias = all_products.sum((0, 2)) if ctx.needs_input_grad[3] else None
        return None, all_inputs, for_weight, for_bias, None, *carried


def at_real(real: Tensor | None, values: Tensor, others: Tensor | float) -> Tensor:
    """`values` (G, B, …) where the rows of a step are real, `others` at its padding; None: there is none."""
    return values if real is None else torch.where(real, values, others)


def padded_steps(real: Tensor | None) -> Padded:
    """The steps of real (S, G, B, 1) with padding; None: there is none."""
    if real is None:
        return {}
    whole = real.flatten(1).all(1).tolist()
    return {step: real[step] for step, all_real in enumerate(whole) if not all_real}


def products_of_groups(rows: Tensor, matrices: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each group rows (G, B, inner_size) @ matrices (G, inner_size, columns) + bias (G, columns)."""
    biases = [None] * len(matrices) if bias is None else bias
    return of_groups(
        [partial(product, matrix=matrix, bias=offset) for matrix, offset in zip(matrices, biases, strict=True)], rows
    )


def of_groups(products: Sequence[Product], rows: Tensor) -> Tensor:
    """For each group what its product gives for rows (G, B, inner_size): (G, B, columns)."""
    results = [multiply(of_group) for multiply, of_group in zip(products, rows, strict=True)]
    return results[0].unsqueeze(0) if len(results) == 1 else torch.stack(results)


def outer_of_groups(gradients: Tensor, inputs: Tensor) -> Tensor:
    """dU (G, N, size): the gradients (S, G, B, N) of products times their inputs (S, G, B, size), summed over S, B."""
    groups = zip(gradients.unbind(1), inputs.unbind(1), strict=True)
    return torch.stack([outer_products(gradient.flatten(0, 1), rows.flatten(0, 1)) for gradient, rows in groups])
