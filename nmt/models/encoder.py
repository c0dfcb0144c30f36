"""The encoder: a recurrent network over the source, in one or both directions, whose outputs attention reads.

Bahdanau et al. (2014), section 3.2: the annotation h_j = [→h_j; ←h_j]. It sees embedded tokens, not words.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.ops.dropout import dropout

LIBRARY_CELLS: dict[str, type[nn.GRU] | type[nn.LSTM]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class Encoded(NamedTuple):
    """The encoder's result."""

    annotations: Tensor  # (batch, source_length, directions × size); 0 at padding
    final: tuple[
        tuple[Tensor, ...], ...
    ]  # for each layer h (and c): (batch, directions × size), forward direction first
    summary: Tensor  # (batch, size): the last state of the top layer's backward direction, or of its only direction


class Encoder(nn.Module):
    """Stacked GRU or LSTM layers. Padding is packed away, so it never touches a state of either direction."""

    def __init__(
        self,
        *,
        cell: str,
        input_size: int,
        size: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
        output_dropout: float,
    ) -> None:
        super().__init__()
        self.size, self.layers, self.directions = size, layers, 2 if bidirectional else 1
        self.dropout, self.output_dropout = dropout, output_dropout
        self.output_size = self.directions * size
        self.network = LIBRARY_CELLS[cell](
            input_size,
            size,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )

    def forward(self, embedded: Tensor, lengths: Tensor) -> Encoded:
        """Encode `embedded` (batch, source_length, input_size); `lengths` (batch,) counts tokens, at least 1 each."""
        embedded = dropout(embedded, self.dropout, training=self.training)
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, states = self.network(packed)
        annotations, _ = pad_packed_sequence(outputs, batch_first=True, total_length=embedded.size(1))
        annotations = dropout(annotations, self.output_dropout, training=self.training)
        parts = states if isinstance(states, tuple) else (states,)
        final = tuple(tuple(self._layer(part, layer) for part in parts) for layer in range(self.layers))
        return Encoded(annotations, final, summary=parts[0][-1])

    def _layer(self, states: Tensor, layer: int) -> Tensor:
        """The directions of one layer side by side, from the library's (layers × directions, batch, size)."""
        first = layer * self.directions
        return torch.cat(tuple(states[first : first + self.directions]), dim=-1)
