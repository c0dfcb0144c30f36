"""One step of a gated recurrent unit and of a long short-term memory, as functions of already projected inputs.

`from_input` is W x + b for all gates, `from_hidden` is U h (+ b), both (rows, gates × size) with the gates side by
side in the order named below, which is PyTorch's. The gradients are written by hand; `gru_step_plain` and
`lstm_step_plain` are the plain twins, by autograd.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.ops.activations import sigmoid_backward, tanh_backward, tanh_forward
from nmt.ops.computing import fused

CellState = tuple[Tensor, ...]
"""h of a GRU, h and c of an LSTM, each (rows, size): the first is the output, and the last is what a step reads besides
`from_input` and `from_hidden`."""


class Recurrence(NamedTuple):
    """A kind of recurrent network."""

    gates: int
    states: int  # tensors of a state
    recurrent_bias: bool  # whether U h has a bias of its own, besides that of W x
    plain: Callable[[Tensor, Tensor, Tensor], CellState]
    forward: Callable[[Tensor, Tensor, Tensor], tuple[CellState, tuple[Tensor, ...]]]
    backward: Callable[..., tuple[Tensor, Tensor, Tensor]]
    library: type[nn.GRU] | type[nn.LSTM]  # the same over whole sequences

    def step(self, from_input: Tensor, from_hidden: Tensor, last: Tensor) -> CellState:
        """The state after one step from a state whose last tensor is `last`; `plain` is the plain twin."""
        if not fused():
            return self.plain(from_input, from_hidden, last)
        if not torch.is_grad_enabled():
            return self.forward(from_input, from_hidden, last)[0]
        state: CellState = _Step.apply(self, from_input, from_hidden, last)
        return state


def gru_step_plain(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> tuple[Tensor]:
    """The new state h' of a GRU; gates in the order r, z, n.

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ∘ (U_n h)), h' = (1 - z) ∘ n + z ∘ h.

    This is cuDNN's and PyTorch's form of Cho et al. (2014): the reset gate is applied after the product with U_n, and
    z keeps the old state; Bahdanau et al. (2014) write U_n (r ∘ h) and z for the new one.
    """
    size = int(hidden.size(-1))
    gates = torch.sigmoid(from_input[..., : 2 * size] + from_hidden[..., : 2 * size])
    reset, update = gates[..., :size], gates[..., size:]
    candidate = torch.tanh(from_input[..., 2 * size :] + reset * from_hidden[..., 2 * size :])
    return (candidate + update * (hidden - candidate),)


def lstm_step_plain(from_input: Tensor, from_hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The new state (h', c') of an LSTM; gates in the order i, f, g, o.

    i, f, o = σ(W x + U h), g = tanh(W_g x + U_g h), c' = f ∘ c + i ∘ g, h' = o ∘ tanh(c').
    """
    enter, forget, candidate, leave = (from_input + from_hidden).chunk(4, dim=-1)
    cell = torch.addcmul(torch.sigmoid(forget) * cell, torch.sigmoid(enter), torch.tanh(candidate))
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def gru_forward(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> tuple[CellState, tuple[Tensor, ...]]:
    """(h',), outside autograd, and what the backward pass needs: h, [r; z], n, and u = U_n h + b_n."""
    size = hidden.size(-1)
    input_gates, input_candidate = from_input.split((2 * size, size), dim=-1)
    hidden_gates, recurrent = from_hidden.split((2 * size, size), dim=-1)
    gates = torch.add(input_gates, hidden_gates).sigmoid_()
    reset, update = gates.chunk(2, dim=-1)
    candidate = tanh_forward(torch.addcmul(input_candidate, reset, recurrent))
    return (torch.lerp(candidate, hidden, update),), (hidden, gates, candidate, recurrent)


def gru_backward(gradient: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of from_input, of from_hidden, and of h through h' only (not through U h), given that of h'.

    With the pre-activations r̂, ẑ, n̂: dn̂ = dh' ∘ (1 - z) ∘ (1 - n²), dẑ = dh' ∘ (h - n) ∘ z ∘ (1 - z),
    dr̂ = dn̂ ∘ u ∘ r ∘ (1 - r); from_hidden has dn̂ ∘ r instead of dn̂; h has dh' ∘ z.
    """
    hidden, gates, candidate, recurrent = values
    reset, update = gates.chunk(2, dim=-1)
    to_old = gradient * update
    for_candidate = tanh_backward(gradient - to_old, candidate)
    for_gates = torch.cat((for_candidate * recurrent, gradient * (hidden - candidate)), dim=-1)
    for_gates = sigmoid_backward(for_gates, gates)
    for_input = torch.cat((for_gates, for_candidate), dim=-1)
    for_hidden = torch.cat((for_gates, for_candidate.mul_(reset)), dim=-1)
    return for_input, for_hidden, to_old


def lstm_forward(from_input: Tensor, from_hidden: Tensor, cell: Tensor) -> tuple[CellState, tuple[Tensor, ...]]:
    """(h', c'), outside autograd, and what the backward pass needs: c, [i; f; g; o], and tanh(c')."""
    gates = from_input + from_hidden
    enter, forget, candidate, leave = gates.chunk(4, dim=-1)
    candidate.mul_(2.0)
    gates.sigmoid_()
    candidate.mul_(2.0).sub_(1.0)  # 2σ(2x) - 1 is its tanh
    new = torch.mul(forget, cell).addcmul_(enter, candidate)
    squashed = tanh_forward(new)
    return (leave * squashed, new), (cell, gates, squashed)


def lstm_backward(gradient: Tensor, of_cell: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of from_input, of from_hidden (the same), and of c, given those of h' and c'.

    With the pre-activations î, f̂, ĝ, ô, and dc = dc' + dh' ∘ o ∘ (1 - tanh²(c')): dô = dh' ∘ tanh(c') ∘ o ∘ (1 - o),
    dî = dc ∘ g ∘ i ∘ (1 - i), df̂ = dc ∘ c ∘ f ∘ (1 - f), dĝ = dc ∘ i ∘ (1 - g²); c has dc ∘ f.
    """
    cell, gates, squashed = values
    enter, forget, candidate, leave = gates.chunk(4, dim=-1)
    of_cell = of_cell + tanh_backward(gradient * leave, squashed)
    blocks = (
        sigmoid_backward(of_cell * candidate, enter),
        sigmoid_backward(of_cell * cell, forget),
        tanh_backward(of_cell * enter, candidate),
        sigmoid_backward(gradient * squashed, leave),
    )
    for_gates = torch.cat(blocks, dim=-1)
    return for_gates, for_gates, of_cell.mul_(forget)


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kind: Recurrence, from_input: Tensor, from_hidden: Tensor, last: Tensor) -> CellState:
        state, values = kind.forward(from_input, from_hidden, last)
        ctx.kind = kind
        ctx.save_for_backward(*values)
        return state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.kind.backward(*gradients, ctx.saved_tensors)


GRU = Recurrence(3, 1, True, gru_step_plain, gru_forward, gru_backward, nn.GRU)  # its bias is scaled by the reset gate
LSTM = Recurrence(4, 2, False, lstm_step_plain, lstm_forward, lstm_backward, nn.LSTM)
