"""How a decoder's first state comes from the encoder: one class for each way; INITIAL_STATES names them.

Every class takes the same sizes and gives the state of every layer: h of (batch, size), and c for an LSTM.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.encoder import Encoded
from nmt.models.memory import Memory
from nmt.ops.linear import Linear
from nmt.ops.recurrence import CellState


class StateSizes(NamedTuple):
    """Units of what is read, and of the states that come of it."""

    summary: int  # of the encoder's last state
    memory: int  # of an annotation
    layers: int  # of the decoder
    states: int  # tensors a layer: h, and c for an LSTM
    size: int  # units of each

    @property
    def units(self) -> int:
        """Of all states of all layers together."""
        return self.layers * self.states * self.size


class InitialState(nn.Module):
    """What the ways share: the sizes of the states."""

    def __init__(self, sizes: StateSizes) -> None:
        super().__init__()
        self.sizes = sizes

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        """The state of every layer, (batch, size) each."""
        raise NotImplementedError

    def _parts(self, flat: Tensor) -> tuple[CellState, ...]:
        """The layers' states from (batch, layers × states × size)."""
        layers, states = self.sizes.layers, self.sizes.states
        parts = flat.split(self.sizes.size, dim=1)
        return tuple(tuple(parts[layer * states : (layer + 1) * states]) for layer in range(layers))


class FinalState(InitialState):
    """tanh(W ←h_1 + b), ←h_1 the last state of the encoder's backward direction, or of its only one (Bahdanau et al.,
    A.2.2)."""

    def __init__(self, sizes: StateSizes) -> None:
        super().__init__(sizes)
        self.layer = Linear(sizes.summary, sizes.units)

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        return self._parts(torch.tanh(self.layer(encoded.summary)))


class MeanState(InitialState):
    """tanh(W (1/S) Σ_j h_j + b), over the S real positions of the memory (dl4mt, Nematus)."""

    def __init__(self, sizes: StateSizes) -> None:
        super().__init__(sizes)
        self.layer = Linear(sizes.memory, sizes.units)

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        values = memory.values if memory.mask is None else memory.values * memory.mask.unsqueeze(2)
        return self._parts(torch.tanh(self.layer(values.sum(1) / memory.lengths.unsqueeze(1))))


class CopiedState(InitialState):
    """The encoder's last states, layer by layer, its directions joined as the encoder joins them (Luong's code)."""

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        return encoded.final


class ForwardState(InitialState):
    """→h_S, the last state of the forward direction in the encoder's top layer, for h of every layer, and for c of an
    LSTM as well (JoeyNMT, `init_hidden: last`). Directions must not be summed."""

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        last = encoded.final[-1][0][:, : self.sizes.size]
        return tuple((last,) * self.sizes.states for _ in range(self.sizes.layers))


class AlternatingState(InitialState):
    """The encoder's last states, direction by direction: decoder layers 1 and 2 get those of the forward and of the
    backward direction of encoder layer 1, and so on (tensorflow/nmt). Directions must not be summed."""

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        size = self.sizes.size
        return tuple(
            tuple(part[:, first : first + size] for part in layer) for layer in encoded.final for first in (0, size)
        )


class ZeroState(InitialState):
    """0: the decoder knows the source through attention only."""

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        return self._parts(encoded.summary.new_zeros(encoded.summary.size(0), self.sizes.units))


INITIAL_STATES: dict[str, type[InitialState]] = {
    "final": FinalState,
    "mean": MeanState,
    "copy": CopiedState,
    "forward": ForwardState,
    "alternate": AlternatingState,
    "zeros": ZeroState,
}
