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

The results are the outputs of all steps (S, G, B, size) and the last state. `gru_step` and `lstm_step`, called in a
loop, are the plain twins.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, now, rounded
from nmt.ops.products import Product, outer_products, product
from nmt.ops.recurrence import GRUValues, LSTMValues, gru_backward, gru_forward, lstm_backward, lstm_forward

Padded = dict[int, Tensor]
"""The steps at which some row is padding, each with its real[step] (G, B, 1)."""


def gru_sequence(from_inputs: Tensor, weight: Tensor, bias: Tensor, first: Tensor, real: Tensor | None) -> Tensor:
    """The states (S, G, B, size) of GRUs after each step; the last of them is the last state."""
    states: Tensor = _GRUSequence.apply(from_inputs, weight, bias, first, _padded(real))
    return states


def lstm_sequence(
    from_inputs: Tensor, weight: Tensor, first: tuple[Tensor, Tensor], real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The outputs h (S, G, B, size) of LSTMs after each step, and their last cell states c (G, B, size)."""
    states, cell = _LSTMSequence.apply(from_inputs, weight, *first, _padded(real))
    return states, cell


def packed_gru_sequence(
    from_inputs: Tensor, recurrent: Sequence[Product], first: Tensor, real: Tensor | None
) -> Tensor:
    """`gru_sequence` for inference; `recurrent` has for each group what gives U h + b (B, N) for h (B, size)."""
    return _gru_states(from_inputs, partial(_of_groups, recurrent), first, _padded(real), None)


def packed_lstm_sequence(
    from_inputs: Tensor, recurrent: Sequence[Product], first: tuple[Tensor, Tensor], real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`lstm_sequence` for inference; `recurrent` has for each group what gives U h (B, N) for h (B, size)."""
    return _lstm_states(from_inputs, partial(_of_groups, recurrent), first, _padded(real), None)


def _gru_states(
    from_inputs: Tensor, multiply: Product, first: Tensor, padded: Padded, kept: list[Tensor] | None
) -> Tensor:
    """The states after each step; to `kept`, if it is there, is added what the backward pass needs besides them."""
    states, state = [], first
    for step, from_input in enumerate(from_inputs):
        new, values = gru_forward(from_input, multiply(state), state)
        state = _at_real(padded.get(step), new, state)
        states.append(state)
        if kept is not None:
            kept += values[1:]
    return torch.stack(states)


def _lstm_states(
    from_inputs: Tensor,
    multiply: Product,
    first: tuple[Tensor, Tensor],
    padded: Padded,
    kept: list[Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """The outputs after each step and the last cell states; to `kept` is added what the backward pass needs."""
    states, (state, cell) = [], first
    for step, from_input in enumerate(from_inputs):
        new, new_cell, values = lstm_forward(from_input, multiply(state), cell)
        real = padded.get(step)
        state, cell = _at_real(real, new, state), _at_real(real, new_cell, cell)
        states.append(state)
        if kept is not None:
            kept += values
    return torch.stack(states), cell


class _GRUSequence(torch.autograd.Function):
    """Backward, step by step from the last: dh = what `gru_backward` gives for h + Uᵀ times what it gives for U h."""

    @staticmethod
    def forward(ctx: Any, from_inputs: Tensor, weight: Tensor, bias: Tensor, first: Tensor, padded: Padded) -> Tensor:
        matrices = rounded(weight)
        kept: list[Tensor] = []
        multiply = partial(_products, matrices=matrices.transpose(1, 2), bias=bias)
        outputs = _gru_states(from_inputs, multiply, first, padded, kept)
        ctx.computing, ctx.padded = now(), padded
        ctx.save_for_backward(matrices, first, outputs, *kept)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight, first, states, *kept = ctx.saved_tensors
        for_inputs, for_hidden = [], []
        carried = torch.zeros_like(first)
        with computing(*ctx.computing):
            for step in reversed(range(len(states))):
                values = GRUValues(first if step == 0 else states[step - 1], *kept[3 * step : 3 * step + 3])
                real, gradient = ctx.padded.get(step), carried + gradients[step]
                for_input, for_product, carried = gru_backward(_at_real(real, gradient, 0.0), values)
                carried += _products(for_product, weight)
                carried = _at_real(real, carried, gradient)
                for_inputs.append(for_input)
                for_hidden.append(for_product)
            all_inputs, all_hidden = torch.stack(for_inputs[::-1]), torch.stack(for_hidden[::-1])
            for_weight = _outer(all_hidden, first, states) if ctx.needs_input_grad[1] else None
        return all_inputs, for_weight, all_hidden.sum((0, 2)), carried, None


class _LSTMSequence(torch.autograd.Function):
    """Backward, step by step from the last: dh = Uᵀ times what `lstm_backward` gives for the gates."""

    @staticmethod
    def forward(
        ctx: Any, from_inputs: Tensor, weight: Tensor, first: Tensor, first_cell: Tensor, padded: Padded
    ) -> tuple[Tensor, Tensor]:
        matrices = rounded(weight)
        kept: list[Tensor] = []
        multiply = partial(_products, matrices=matrices.transpose(1, 2))
        outputs, cell = _lstm_states(from_inputs, multiply, (first, first_cell), padded, kept)
        ctx.computing, ctx.padded = now(), padded
        ctx.save_for_backward(matrices, first, outputs, *kept)
        return outputs, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor, carried_cell: Tensor) -> tuple[Tensor | None, ...]:
        weight, first, states, *kept = ctx.saved_tensors
        for_inputs = []
        carried = torch.zeros_like(first)
        with computing(*ctx.computing):
            for step in reversed(range(len(states))):
                real, gradient = ctx.padded.get(step), carried + gradients[step]
                made, made_cell = _at_real(real, gradient, 0.0), _at_real(real, carried_cell, 0.0)
                for_input, for_cell = lstm_backward(made, made_cell, LSTMValues(*kept[3 * step : 3 * step + 3]))
                carried = _at_real(real, _products(for_input, weight), gradient)
                carried_cell = _at_real(real, for_cell, carried_cell)
                for_inputs.append(for_input)
            all_inputs = torch.stack(for_inputs[::-1])
            for_weight = _outer(all_inputs, first, states) if ctx.needs_input_grad[1] else None
        return all_inputs, for_weight, carried, carried_cell, None


def _at_real(real: Tensor | None, values: Tensor, others: Tensor | float) -> Tensor:
    """`values` (G, B, …) where the rows of a step are real, `others` at its padding; None: there is none."""
    return values if real is None else torch.where(real, values, others)


def _padded(real: Tensor | None) -> Padded:
    if real is None:
        return {}
    whole = real.flatten(1).all(1).tolist()
    return {step: real[step] for step, all_real in enumerate(whole) if not all_real}


def _products(rows: Tensor, matrices: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each group rows (G, B, inner_size) @ matrices (G, inner_size, columns) + bias (G, columns)."""
    biases = [None] * len(matrices) if bias is None else bias
    return _of_groups(
        [partial(product, matrix=matrix, bias=offset) for matrix, offset in zip(matrices, biases, strict=True)], rows
    )


def _of_groups(products: Sequence[Product], rows: Tensor) -> Tensor:
    """For each group what its product gives for rows (G, B, inner_size): (G, B, columns)."""
    results = [multiply(of_group) for multiply, of_group in zip(products, rows, strict=True)]
    return results[0].unsqueeze(0) if len(results) == 1 else torch.stack(results)


def _outer(gradients: Tensor, first: Tensor, states: Tensor) -> Tensor:
    """dU (G, N, size): the gradients (S, G, B, N) of U h times the states h before each step, summed over S and B."""
    before = torch.cat((first.unsqueeze(0), states[:-1]))
    groups = zip(gradients.unbind(1), before.unbind(1), strict=True)
    return torch.stack([outer_products(gradient.flatten(0, 1), states.flatten(0, 1)) for gradient, states in groups])
