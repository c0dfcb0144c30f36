"""A gated recurrent unit whose reset gate comes before the product with the last state, as in Cho et al. (2014), arXiv
1406.1078, equations 5-8, and Bahdanau et al. (2014), A.1.1:

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), g = tanh(W_g x + U_g (r ∘ h)), h' = (1 - z) ∘ g + z ∘ h

So U_g waits for r: a step has two products, one after the other, where `recurrence` has one. Cho et al. write z for the
old state, as here; Bahdanau et al. for the new one, which only renames z and 1 - z.

Whole sequences are as in `sequence`, with U (G, 3 × size, size) for r, z and g, one below the other. U h has no bias:
the one of W x does the same here.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.ops.activations import sigmoid_backward, tanh, tanh_backward
from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.products import Product
from nmt.ops.sequence import Padded, at_real, outer_of_groups, padded_steps, products_of_groups


class ResetFirst(NamedTuple):
    """The properties that this unit shares with a `Recurrence`."""

    gates: int = 3
    states: int = 1
    recurrent_bias: bool = False
    library: type[nn.GRU] = nn.GRU  # has such weights, but another form; it computes nothing here


RESET_FIRST = ResetFirst()


def reset_first_step(from_input: Tensor, hidden: Tensor, of_gates: Product, of_candidate: Product) -> tuple[Tensor]:
    """The new state h', given W x + b (rows, 3 × size), h, and what multiplies by [U_r; U_z] and by U_g."""
    return _step(from_input, hidden, of_gates, of_candidate)[0]


def _step(
    from_input: Tensor, hidden: Tensor, of_gates: Product, of_candidate: Product
) -> tuple[tuple[Tensor], tuple[Tensor, ...]]:
    """(h',), and what the backward pass of a sequence needs: [r; z], g, and r ∘ h."""
    size = hidden.size(-1)
    input_gates, input_candidate = from_input.split((2 * size, size), dim=-1)
    gates = torch.sigmoid(input_gates + of_gates(hidden))
    reset, update = gates.chunk(2, dim=-1)
    shown = reset * hidden
    candidate = tanh(input_candidate + of_candidate(shown))
    return (torch.lerp(candidate, hidden, update),), (gates, candidate, shown)


def reset_first_sequence(from_inputs: Tensor, weight: Tensor, first: Tensor, real: Tensor | None) -> Tensor:
    """The outputs h (S, G, B, size) after each step."""
    if fused():
        outputs: Tensor = _Sequence.apply(from_inputs, weight, padded_steps(real), first)
        return outputs
    of_gates, of_candidate = (partial(torch.matmul, other=matrix.transpose(1, 2)) for matrix in _split(weight))
    return _outputs(from_inputs, of_gates, of_candidate, first, padded_steps(real), None)


def _outputs(
    from_inputs: Tensor,
    of_gates: Product,
    of_candidate: Product,
    hidden: Tensor,
    padded: Padded,
    kept: list[Tensor] | None,
) -> Tensor:
    """All steps; to `kept`, if it is there, is added what the backward pass needs besides the outputs."""
    outputs = []
    for step, from_input in enumerate(from_inputs):
        (new,), values = _step(from_input, hidden, of_gates, of_candidate)
        if kept is not None:
            kept += values
        hidden = at_real(padded.get(step), new, hidden)
        outputs.append(hidden)
    return torch.stack(outputs)


def _split(weight: Tensor) -> tuple[Tensor, Tensor]:
    """[U_r; U_z] (G, 2 × size, size) and U_g (G, size, size)."""
    size = weight.size(2)
    return weight[:, : 2 * size], weight[:, 2 * size :]


class _Sequence(torch.autograd.Function):
    """Backward, step by step from the last, with the pre-activations r̂, ẑ, ĝ:

    dĝ = dh' ∘ (1 - z) ∘ (1 - g²), d(r ∘ h) = U_gᵀ dĝ, dr̂ = d(r ∘ h) ∘ h ∘ r ∘ (1 - r),
    dẑ = dh' ∘ (h - g) ∘ z ∘ (1 - z), dh = dh' ∘ z + d(r ∘ h) ∘ r + [U_r; U_z]ᵀ [dr̂; dẑ].
    The gradients of the weights are one product each at the end.
    """

    @staticmethod
    def forward(ctx: Any, from_inputs: Tensor, weight: Tensor, padded: Padded, first: Tensor) -> Tensor:
        matrices = rounded(weight)
        kept: list[Tensor] = []
        turned = (matrix.transpose(1, 2) for matrix in _split(matrices))
        of_gates, of_candidate = (partial(products_of_groups, matrices=matrix) for matrix in turned)
        outputs = _outputs(from_inputs, of_gates, of_candidate, first, padded, kept)
        ctx.computing, ctx.padded = now(), padded
        ctx.save_for_backward(matrices, first, outputs, *kept)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        matrices, first, outputs, *kept = ctx.saved_tensors
        of_gates, of_candidate = _split(matrices)
        size, for_inputs, carried = first.size(-1), [], torch.zeros_like(first)
        with computing(*ctx.computing):
            for step in reversed(range(len(outputs))):
                gates, candidate, _ = kept[3 * step : 3 * step + 3]
                reset, update = gates.chunk(2, dim=-1)
                hidden, real = first if step == 0 else outputs[step - 1], ctx.padded.get(step)
                of_state = carried + gradients[step]
                made = at_real(real, of_state, 0.0)
                to_old = made * update
                for_candidate = tanh_backward(made - to_old, candidate)
                for_shown = products_of_groups(for_candidate, of_candidate)
                for_gates = torch.cat((for_shown * hidden, made * (hidden - candidate)), dim=-1)
                for_gates = sigmoid_backward(for_gates, gates)
                for_hidden = to_old.addcmul_(for_shown, reset).add_(products_of_groups(for_gates, of_gates))
                carried = at_real(real, for_hidden, of_state)
                for_inputs.append(torch.cat((for_gates, for_candidate), dim=-1))
            all_inputs = torch.stack(for_inputs[::-1])
            for_weight = None
            if ctx.needs_input_grad[1]:
                before, shown = torch.cat((first.unsqueeze(0), outputs[:-1])), torch.stack(kept[2::3])
                parts = zip(all_inputs.split((2 * size, size), dim=-1), (before, shown), strict=True)
                for_weight = torch.cat([outer_of_groups(gradient, inputs) for gradient, inputs in parts], dim=1)
        return all_inputs, for_weight, None, carried
