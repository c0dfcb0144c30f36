"""The encoder: a recurrent network over the source, in one or both directions, whose outputs attention reads.

Bahdanau et al. (2014), section 3.2: the annotation h_j = [→h_j; ←h_j]. It sees embedded tokens, not words. Reading
the words from the last to the first is Sutskever et al.'s (2014, arXiv 1409.3215), and in the recipe of Luong et al.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config.schema import DirectionsName
from nmt.models.cells import CELLS
from nmt.models.initialization import Role, Weight
from nmt.ops.computing import fused
from nmt.ops.linear import linear
from nmt.ops.masks import dropout, length_mask
from nmt.ops.recurrence import LSTM
from nmt.ops.reset_first import ResetFirst, reset_first_sequence
from nmt.ops.sequence import sequence

FEW = 4  # sentences; from 5 on the fused kernels are as fast as the library's


def concatenate(directions: Sequence[Tensor]) -> Tensor:
    """The directions side by side, forward first: (…, directions × size)."""
    return torch.cat(tuple(directions), dim=-1)


def add(directions: Sequence[Tensor]) -> Tensor:
    """The sum of the directions: (…, size)."""
    return torch.stack(tuple(directions)).sum(0)


DIRECTIONS: dict[DirectionsName, Callable[[Sequence[Tensor]], Tensor]] = {"concatenate": concatenate, "sum": add}


class Encoded(NamedTuple):
    """The encoder's result; memory_size is directions × size, or size where the directions are summed."""

    annotations: Tensor  # (batch, source_length, memory_size); meaningless at padding
    final: tuple[tuple[Tensor, ...], ...]  # for each layer h (and c): (batch, memory_size)
    summary: Tensor  # (batch, size): what the top layer's backward direction, or its only one, gives at its last step


class Encoder(nn.Module):
    """Stacked GRU or LSTM layers. Padding never touches a state of either direction.

    The annotations are in the order of the text, whatever the order of reading. Their layer normalization (Ba et al.
    2016, arXiv 1607.06450) is of each annotation by itself, with a gain and a bias. With residual connections (Wu et
    al. 2016, arXiv 1609.08144, 3.1) layer l gives x^l = h^l + x^{l-1} from the second on; its states h^l are without.
    """

    def __init__(
        self,
        *,
        cell: str,
        input_size: int,
        size: int,
        layers: int,
        residual: bool,
        bidirectional: bool,
        directions: DirectionsName,
        reverse_source: bool,
        end_mark: bool,
        layer_normalization: bool,
        dropout: float,
        output_dropout: float,
        locked_dropout: bool,
        word_dropout: float,
    ) -> None:
        """`cell` is a key of CELLS. `directions`, one of DIRECTIONS, has no meaning where there is only one."""
        super().__init__()
        self.kind, self.size, self.layers, self.directions = CELLS[cell], size, layers, 2 if bidirectional else 1
        self.join = DIRECTIONS[directions]
        self.reverse_source, self.end_mark, self.residual = reverse_source, end_mark, residual
        self.dropout, self.output_dropout, self.locked_dropout = dropout, output_dropout, locked_dropout
        self.word_dropout = word_dropout
        self.output_size = size if self.join is add else self.directions * size
        self.network = self.kind.library(
            input_size,
            size,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.norm = nn.LayerNorm(self.output_size) if layer_normalization else nn.Identity()

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        for from_input, recurrent, *biases in self.network.all_weights:
            yield from_input, Weight(gates=self.kind.gates)
            yield recurrent, Weight(Role.RECURRENT, self.kind.gates)
            roles = (Role.LSTM_BIAS if self.kind is LSTM else Role.BIAS, Role.BIAS)  # a gate's two biases are added
            yield from ((bias, Weight(role)) for bias, role in zip(biases, roles, strict=True))

    def tokens_read(self, lengths: Tensor) -> Tensor:
        """How many of `lengths` (batch,) tokens, END counted, are read: all, or without `end_mark` all but END, which
        is then padding. A source that is END alone is read."""
        return lengths if self.end_mark else (lengths - 1).clamp(min=1)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Encoded:
        """Encode `embedded` (batch, source_length, input_size); `lengths` (batch,) counts tokens that are read, at
        least 1 each."""
        embedded = dropout(embedded, self.word_dropout, training=self.training, locked=2)
        embedded = self._dropped(embedded, self.dropout, steps=1)
        order = None
        if self.reverse_source:
            words = lengths - 1 if self.end_mark else lengths
            order = reversed_words(words, embedded.size(1)).unsqueeze(2)
            embedded = embedded.gather(1, order.expand_as(embedded))
        encode = self._by_layer if self._goes_by_layer(embedded) else self._library
        annotations, states = encode(embedded, lengths)
        if order is not None:
            annotations = annotations.gather(1, order.expand_as(annotations))  # the reversal undoes itself
        if self.join is add:  # the library has them side by side
            annotations = add(annotations.split(self.size, dim=2))
        annotations = self._dropped(self.norm(annotations), self.output_dropout, steps=1)
        final = tuple(tuple(self._layer(part, layer) for part in states) for layer in range(self.layers))
        last = states[0][self.directions - 1 :: self.directions]  # h of each layer
        return Encoded(annotations, final, summary=last.sum(0) if self.residual else last[-1])

    def _dropped(self, values: Tensor, rate: float, *, steps: int) -> Tensor:
        """`values` with dropout in training; the positions of a sentence lie along the axis `steps`."""
        return dropout(values, rate, training=self.training, locked=steps if self.locked_dropout else None)

    def _goes_by_layer(self, embedded: Tensor) -> bool:
        """Whether `_by_layer` is to compute: on a CPU it is faster, but for a few sentences to be translated.

        What comes between layers the library does not have, but for dropout with a new mask at every step; nor does it
        have a reset gate that comes first.
        """
        if isinstance(self.kind, ResetFirst):
            return True
        if self.layers > 1 and (self.residual or (self.locked_dropout and self.training)):
            return True
        few = not torch.is_grad_enabled() and embedded.size(0) <= FEW
        return fused() and embedded.device.type == "cpu" and not few

    def _library(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The plain twin of `_by_layer`, and what GPUs use, for which the library has kernels; padding is packed away.

        On a CPU it is also what encodes a few sentences to be translated.
        """
        on_host = lengths.cpu()
        if int(on_host.min()) == embedded.size(1):
            annotations, states = self.network(embedded)
        else:
            packed = pack_padded_sequence(embedded, on_host, batch_first=True, enforce_sorted=False)
            outputs, states = self.network(packed)
            annotations, _ = pad_packed_sequence(outputs, batch_first=True, total_length=embedded.size(1))
        return annotations, states if isinstance(states, tuple) else (states,)

    def _by_layer(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Outputs (batch, source_length, directions × size) of the top layer, and h (and c) as the library has them:
        (layers × directions, batch, size).

        The two directions run side by side, the second on reversed time. Its padding then comes first, where the state
        stays at 0; in the first direction it comes last, where the state stays the last one.
        """
        real = length_mask(lengths, embedded.size(1)).t()
        real = torch.stack((real, real.flip(0))[: self.directions], dim=1).unsqueeze(3)  # (S, directions, batch, 1)
        inputs = embedded.transpose(0, 1)
        states = []
        for layer in range(self.layers):
            below = self._dropped(inputs, self.dropout, steps=0) if layer else inputs
            outputs, state = self._one_layer(below, real, layer)
            states.append(state)
            turned = (outputs[:, 0], outputs[:, 1].flip(0)) if self.directions == 2 else (outputs[:, 0],)
            inputs = inputs + concatenate(turned) if self.residual and layer else concatenate(turned)
        return inputs.transpose(0, 1), tuple(torch.cat(parts) for parts in zip(*states, strict=True))

    def _one_layer(self, inputs: Tensor, real: Tensor, layer: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One layer over `inputs` (S, batch, input_size): its outputs (S, directions, batch, size), its last states."""
        first = (inputs.new_zeros(self.directions, inputs.size(1), self.size),) * self.kind.states
        weights = [self._weights(layer, direction) for direction in range(self.directions)]
        gates = [linear(inputs, weight, bias) for weight, bias, *_ in weights]  # the second in reversed time
        from_inputs = torch.stack([one.flip(0) if way else one for way, one in enumerate(gates)], dim=1)
        recurrent = torch.stack([weight for _, _, weight, _ in weights])
        biases = [bias for *_, bias in weights if bias is not None]
        if isinstance(self.kind, ResetFirst):
            outputs, *cell = (reset_first_sequence(from_inputs, recurrent, first[0], real),)
        else:
            outputs, *cell = sequence(
                self.kind, from_inputs, recurrent, torch.stack(biases) if biases else None, first, real
            )
        return outputs, (outputs[-1], *cell)

    def _weights(self, layer: int, direction: int) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W, b, U and a GRU's bias of U h, from the library's network; its two biases of other cells are added."""
        weight, recurrent, bias, recurrent_bias = self.network.all_weights[layer * self.directions + direction]
        if self.kind.recurrent_bias:
            return weight, bias, recurrent, recurrent_bias
        return weight, bias + recurrent_bias, recurrent, None

    def _layer(self, states: Tensor, layer: int) -> Tensor:
        """The directions of one layer joined, from the library's (layers × directions, batch, size)."""
        first = layer * self.directions
        return self.join(tuple(states[first : first + self.directions]))


def reversed_words(words: Tensor, size: int) -> Tensor:
    """Positions (batch, size) that turn the words of each sentence around, while END and padding stay where they are.

    With `words` (batch,) of them, position j takes words[i] - 1 - j for j < words[i].
    """
    positions = torch.arange(size, device=words.device)
    words = words.unsqueeze(1)
    return torch.where(positions < words, words - 1 - positions, positions)
