"""The decoder of Luong, Pham & Manning (2015), and how a decoder's first state comes from the encoder.

A step reads an embedded token and a state and gives the vector that the output layer turns into a distribution. The
rows of a step are the hypotheses of a batch, sentence by sentence: with k rows a sentence, row i belongs to sentence i
// k. In training k is 1.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.models.attention import Attention, Memory
from nmt.models.cells import CELLS, Cell, CellState
from nmt.models.encoder import Encoded
from nmt.ops.dropout import dropout, dropout_mask


class DecoderState(NamedTuple):
    """What one step hands to the next."""

    layers: tuple[CellState, ...]  # for each layer h (and c): (rows, size)
    fed: Tensor | None  # h̃ of the last step, (rows, output_size); None without input feeding

    def select(self, rows: Tensor) -> "DecoderState":
        """The rows `rows`, a flat tensor of indices."""
        layers = tuple(tuple(part.index_select(0, rows) for part in layer) for layer in self.layers)
        return DecoderState(layers, None if self.fed is None else self.fed.index_select(0, rows))


class Outputs(NamedTuple):
    """What the decoder gives for a whole target sentence."""

    vectors: Tensor  # (batch, target_length, output_size), the input of the output layer
    weights: Tensor  # (batch, target_length, source_length), the attention weights


class InitialState(nn.Module):
    """The decoder's first state, for every layer and each of its state tensors:

    - final: tanh(W ←h_1), the last state of the encoder's backward direction (Bahdanau et al., A.2.2);
    - mean: tanh(W mean_j h_j), over the real positions (dl4mt, Nematus);
    - copy: the encoder's last states of the same layer, directions side by side (Luong et al.);
    - zeros.
    """

    def __init__(self, kind: str, *, summary_size: int, memory_size: int, layers: int, states: int, size: int) -> None:
        super().__init__()
        self.kind, self.size, self.depth, self.states = kind, size, layers, states
        input_sizes = {"final": summary_size, "mean": memory_size}
        if kind in input_sizes:
            self.layer = nn.Linear(input_sizes[kind], layers * states * size)

    def forward(self, encoded: Encoded, memory: Memory) -> tuple[CellState, ...]:
        """The state of every layer, (batch, size) each."""
        if self.kind == "copy":
            return encoded.final
        if self.kind == "zeros":
            flat = encoded.summary.new_zeros(encoded.summary.size(0), self.depth * self.states * self.size)
        elif self.kind == "mean":
            mask = memory.mask.unsqueeze(2).to(memory.values.dtype)
            flat = torch.tanh(self.layer((memory.values * mask).sum(1) / mask.sum(1)))
        else:
            flat = torch.tanh(self.layer(encoded.summary))
        parts = flat.split(self.size, dim=1)
        return tuple(tuple(parts[i * self.states : (i + 1) * self.states]) for i in range(self.depth))


class LuongDecoder(nn.Module):
    """Cell first, then attention with its new state, then the attentional vector (sections 3.1 and 3.3 of the paper):

        h_t = RNN([E y_{t-1}; h̃_{t-1}], h_{t-1})        h̃_{t-1} only with input feeding, h̃_0 = 0
        c_t = attention(h_t)                             h_t of the top layer is the query
        h̃_t = tanh(W_c [c_t; h_t])                       without bias

    Dropout in training: on E y, between layers, and on h̃, which is fed with the same mask that the output layer sees.
    The weights of position t belong to the word predicted at t.
    """

    def __init__(
        self,
        attention: Attention,
        *,
        cell: str,
        input_size: int,
        memory_size: int,
        size: int,
        layers: int,
        output_size: int,
        input_feeding: bool,
        dropout: float,
        output_dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.size, self.output_size = size, output_size
        self.dropout, self.output_dropout = dropout, output_dropout
        input_sizes = [input_size] + [size] * (layers - 1)
        self.cells = nn.ModuleList(CELLS[cell](each, size) for each in input_sizes)
        self.feed = nn.Linear(output_size, CELLS[cell].gates * size, bias=False) if input_feeding else None
        self.combine = nn.Linear(memory_size + size, output_size, bias=False)

    def start(self, layers: tuple[CellState, ...]) -> DecoderState:
        """The state before the first step, from the layers' first states."""
        first = layers[0][0]
        return DecoderState(layers, None if self.feed is None else first.new_zeros(first.size(0), self.output_size))

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, DecoderState]:
        """One step without dropout: h̃ (rows, output_size) for `embedded` (rows, input_size), and the next state."""
        layers = self._advance(self._cell(0).project(embedded), state, ())
        top = layers[-1][0]
        queries = top.view(memory.values.size(0), -1, self.size)  # hypotheses of one sentence share its memory
        vectors, _ = self._attend(queries, memory)
        vector = vectors.reshape(top.size(0), self.output_size)
        return vector, DecoderState(layers, None if self.feed is None else vector)

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Outputs:
        """All steps, for the true previous words `embedded` (batch, target_length, input_size)."""
        batch, length, _ = embedded.shape
        embedded = dropout(embedded, self.dropout, training=self.training)
        from_inputs = self._cell(0).project(embedded.transpose(0, 1)).unbind(0)
        between = self._masks(self.dropout, (length, len(self.cells) - 1, batch, self.size), embedded)
        on_output = self._masks(self.output_dropout, (length, batch, self.output_size), embedded)
        if self.feed is None:
            return self._without_feeding(from_inputs, state, memory, between, on_output)
        vectors, weights = [], []
        for step, from_input in enumerate(from_inputs):
            layers = self._advance(from_input, state, _at(between, step))
            vector, attended = self._attend(layers[-1][0].unsqueeze(1), memory)
            vector = vector.squeeze(1)
            if on_output:
                vector = vector * on_output[step]
            state = DecoderState(layers, vector)
            vectors.append(vector)
            weights.append(attended.squeeze(1))
        return Outputs(torch.stack(vectors, dim=1), torch.stack(weights, dim=1))

    def _without_feeding(
        self,
        from_inputs: Sequence[Tensor],
        state: DecoderState,
        memory: Memory,
        between: Sequence[Tensor],
        on_output: Sequence[Tensor],
    ) -> Outputs:
        """The states do not depend on attention, so all positions attend at once, as the queries of one call."""
        tops = []
        for step, from_input in enumerate(from_inputs):
            state = DecoderState(self._advance(from_input, state, _at(between, step)), None)
            tops.append(state.layers[-1][0])
        vectors, weights = self._attend(torch.stack(tops, dim=1), memory)
        if on_output:
            vectors = vectors * torch.stack(tuple(on_output), dim=1)
        return Outputs(vectors, weights)

    def _advance(self, from_input: Tensor, state: DecoderState, masks: Sequence[Tensor]) -> tuple[CellState, ...]:
        """The new states of all layers; the first one's input is projected already. `masks`: dropout between layers."""
        if self.feed is not None and state.fed is not None:
            from_input = torch.addmm(from_input, state.fed, self.feed.weight.t())
        layers: list[CellState] = []
        for index, old in enumerate(state.layers):
            cell = self._cell(index)
            if index:
                below = layers[-1][0]
                from_input = cell.project(below * masks[index - 1] if len(masks) else below)
            layers.append(cell(from_input, old))
        return tuple(layers)

    def _cell(self, layer: int) -> Cell:
        return cast(Cell, self.cells[layer])  # a ModuleList knows modules only

    def _attend(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """h̃ (batch, queries, output_size) and attention weights for the top states `queries` (batch, queries, size)."""
        context, weights = self.attention(queries, memory)
        return torch.tanh(self.combine(torch.cat((context, queries), dim=-1))), weights

    def _masks(self, rate: float, shape: tuple[int, ...], like: Tensor) -> Sequence[Tensor]:
        """Dropout masks of all steps, one tensor a step, drawn together; empty where nothing is dropped."""
        if not self.training or rate == 0.0 or 0 in shape:
            return ()
        return dropout_mask(shape, rate, like=like).unbind(0)


def _at(masks: Sequence[Tensor], step: int) -> Sequence[Tensor]:
    """The masks of the layers at a step; none where nothing is dropped."""
    return tuple(masks[step]) if masks else ()


DECODERS: dict[str, type[LuongDecoder]] = {"luong": LuongDecoder}
