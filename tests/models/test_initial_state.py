"""Where a decoder starts: from the encoder's last states, from the mean of its annotations, or from nothing."""

from typing import Any

import torch
from torch import nn

from nmt.models.encoder import Encoded
from nmt.models.initial_state import INITIAL_STATES, StateSizes
from nmt.models.memory import Memory

LENGTHS = torch.tensor([3, 1])
VALUES = torch.tensor([[[1.0, 8.0], [2.0, 0.0], [3.0, 1.0]], [[5.0, 4.0], [1e6, 1e6], [1e6, 1e6]]])
ENCODED = Encoded(
    VALUES,
    final=((torch.tensor([[3.0, 1.0], [5.0, 4.0]]), torch.tensor([[-3.0, -1.0], [-5.0, -4.0]])),),
    summary=torch.tensor([[0.5], [-0.25]]),
)
MEMORY = Memory(VALUES, VALUES, LENGTHS, torch.tensor([[True, True, True], [True, False, False]]))
SIZES = StateSizes(summary=1, memory=2, layers=1, states=2, size=2)  # an LSTM: h and c of two units


def test_final_by_hand() -> None:
    """tanh(W ←h_1 + b): the summary times (1, 2, 3, 4), the first two for h, the others for c."""
    state: Any = INITIAL_STATES["final"](SIZES)
    with torch.no_grad():
        state.layer.weight.copy_(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
        state.layer.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 1.0]))
    ((h, c),) = state(ENCODED, MEMORY)
    torch.testing.assert_close(h, torch.tanh(torch.tensor([[0.5, 1.0], [-0.25, -0.5]])))
    torch.testing.assert_close(c, torch.tanh(torch.tensor([[1.5, 3.0], [-0.75, 0.0]])))


def test_mean_by_hand() -> None:
    """The mean over the real positions: (2, 3) and (5, 4), whatever stands at padding."""
    state: Any = INITIAL_STATES["mean"](SIZES)
    with torch.no_grad():
        state.layer.weight.copy_(torch.tensor([[0.1, 0.0], [0.0, 0.1], [0.1, 0.1], [0.0, 0.0]]))
        nn.init.zeros_(state.layer.bias)
    ((h, c),) = state(ENCODED, MEMORY)
    torch.testing.assert_close(h, torch.tanh(torch.tensor([[0.2, 0.3], [0.5, 0.4]])))
    torch.testing.assert_close(c, torch.tanh(torch.tensor([[0.5, 0.0], [0.9, 0.0]])))


def test_mean_without_padding() -> None:
    state = INITIAL_STATES["mean"](SIZES)
    masked, bare = (
        state(ENCODED, Memory(VALUES, VALUES, torch.tensor([3, 3]), mask)) for mask in (VALUES[..., 0] > 0, None)
    )
    torch.testing.assert_close(bare, masked, rtol=0, atol=0)


def test_copy_by_hand() -> None:
    ((h, c),) = INITIAL_STATES["copy"](SIZES)(ENCODED, MEMORY)
    assert h.tolist() == [[3.0, 1.0], [5.0, 4.0]]
    assert c.tolist() == [[-3.0, -1.0], [-5.0, -4.0]]


def test_forward_by_hand() -> None:
    """h of the first direction, one unit of the two, in h and c of both layers."""
    sizes = StateSizes(summary=1, memory=2, layers=2, states=2, size=1)
    layers = INITIAL_STATES["forward"](sizes)(ENCODED, MEMORY)
    assert [[part.tolist() for part in layer] for layer in layers] == [[[[3.0], [5.0]]] * 2] * 2


def test_alternate_by_hand() -> None:
    """h and c of the first direction for the first layer, those of the second for the second."""
    sizes = StateSizes(summary=1, memory=2, layers=2, states=2, size=1)
    (h, c), (top_h, top_c) = INITIAL_STATES["alternate"](sizes)(ENCODED, MEMORY)
    assert (h.tolist(), c.tolist()) == ([[3.0], [5.0]], [[-3.0], [-5.0]])
    assert (top_h.tolist(), top_c.tolist()) == ([[1.0], [4.0]], [[-1.0], [-4.0]])


def test_zeros_by_hand() -> None:
    state = INITIAL_STATES["zeros"](SIZES)
    assert list(state.parameters()) == []
    ((h, c),) = state(ENCODED, MEMORY)
    assert h.tolist() == c.tolist() == [[0.0, 0.0], [0.0, 0.0]]
