"""Where a decoder starts, as far as tests/oracle, which holds every way against its equation, does not tell."""

from typing import Any

import torch

from nmt.models.encoder import Encoded
from nmt.models.initial_state import INITIAL_STATES, StateSizes
from nmt.models.memory import Memory

VALUES = torch.tensor([[[1.0, 8.0], [2.0, 0.0], [3.0, 1.0]], [[5.0, 4.0], [1.0, 6.0], [3.0, 2.0]]])
ENCODED = Encoded(VALUES, final=(), summary=torch.tensor([[0.5], [-0.25]]))
MEMORY, MASKED = (
    Memory(VALUES, VALUES, torch.tensor([3, 3]), mask) for mask in (None, torch.ones(2, 3, dtype=torch.bool))
)
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


def test_mean_without_padding() -> None:
    state = INITIAL_STATES["mean"](SIZES)
    torch.testing.assert_close(state(ENCODED, MEMORY), state(ENCODED, MASKED), rtol=0, atol=0)
