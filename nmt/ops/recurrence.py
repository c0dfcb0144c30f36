"""One step of a gated recurrent unit and of a long short-term memory, as functions of already projected inputs.

`from_input` is W x + b for all gates, `from_hidden` is U h (+ b), both (rows, gates × size) with the gates side by
side in the order named below, which is PyTorch's.
"""

import torch
from torch import Tensor


def gru_step(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The new state h' (rows, size) of a GRU; gates in the order r, z, n.

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ∘ (U_n h)), h' = (1 - z) ∘ n + z ∘ h.

    This is cuDNN's and PyTorch's form of Cho et al. (2014): the reset gate is applied after the product with U_n, and
    z keeps the old state; Bahdanau et al. (2014) write U_n (r ∘ h) and z for the new one.
    """
    size = hidden.size(-1)
    reset, update = torch.sigmoid(from_input[..., : 2 * size] + from_hidden[..., : 2 * size]).chunk(2, dim=-1)
    candidate = torch.tanh(torch.addcmul(from_input[..., 2 * size :], reset, from_hidden[..., 2 * size :]))
    return torch.lerp(candidate, hidden, update)


def lstm_step(from_input: Tensor, from_hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The new state (h', c') of an LSTM, each (rows, size); gates in the order i, f, g, o.

    i, f, o = σ(W x + U h), g = tanh(W_g x + U_g h), c' = f ∘ c + i ∘ g, h' = o ∘ tanh(c').
    """
    gates = from_input + from_hidden
    enter, forget, candidate, leave = gates.chunk(4, dim=-1)
    cell = torch.addcmul(torch.sigmoid(forget) * cell, torch.sigmoid(enter), torch.tanh(candidate))
    return torch.sigmoid(leave) * torch.tanh(cell), cell
