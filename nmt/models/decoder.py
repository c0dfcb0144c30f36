"""What decoders have in common: their state, their cells, their dropout, and the loop of those that end in a readout.

A step reads an embedded token and a state and gives the vector that the output layer turns into a distribution. The
rows of a step are the hypotheses of a batch, sentence by sentence: with k rows a sentence, row i belongs to sentence i
// k. In training k is 1. The weights of position t belong to the word predicted at t, in every decoder.
"""

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.models.attention import Attention
from nmt.models.cells import CELLS, Cell, ResetFirstCell, build_cell
from nmt.models.memory import Memory, Past
from nmt.ops.masks import dropout, dropout_mask
from nmt.ops.recurrence import CellState
from nmt.ops.steps import run_steps


class DecoderState(NamedTuple):
    """What one step hands to the next."""

    layers: tuple[CellState, ...]  # for each layer h (and c): (rows, size)
    past: Past  # what attention remembers
    fed: Tensor | None = None  # (rows, size), what the last step computed for the first cell, where it is fed back

    def select(self, rows: Tensor) -> "DecoderState":
        """The rows `rows`, a flat tensor of indices."""
        layers = tuple(tuple(part.index_select(0, rows) for part in layer) for layer in self.layers)
        fed = None if self.fed is None else self.fed.index_select(0, rows)
        return DecoderState(layers, self.past.select(rows), fed)


class Outputs(NamedTuple):
    """What the decoder gives for a whole target sentence."""

    vectors: Tensor  # (batch, target_length, output_size), the input of the output layer
    weights: Tensor  # (batch, target_length, source_length), the attention weights


Step = tuple[tuple[Tensor, ...], DecoderState]
"""The outputs of one step of `run_steps`, and the next state."""


class DecoderShape(NamedTuple):
    """What every decoder is built from, besides its attention."""

    cell: str  # a key of CELLS
    input_size: int  # units of an embedding
    size: int  # units of each layer
    layers: int
    residual: bool  # whether each layer above the first adds what it reads to what it gives
    output_size: int  # units of the vector that the output layer reads
    dropout: float  # in training, on E y and between layers
    output_dropout: float  # in training, on the vectors that the output layer reads
    locked_dropout: bool  # whether a mask is the same at all steps of a sentence
    layer_normalization: bool  # in every cell
    word_dropout: float  # in training, on whole words of the input


class Decoder(nn.Module):
    """Stacked recurrent cells and an attention.

    Keyword arguments of the constructor are keys of the section `model.decoder` that only this decoder takes.
    """

    cell_names: ClassVar[tuple[str, ...]] = tuple(CELLS)
    """The cells it can be built of."""
    without_context: ClassVar[bool] = True
    """Whether it works with an attention that has no context."""

    def __init__(self, attention: Attention, shape: DecoderShape) -> None:
        super().__init__()
        self.attention = attention
        self.size, self.output_size, self.residual = shape.size, shape.output_size, shape.residual
        self.dropout, self.output_dropout = shape.dropout, shape.output_dropout
        self.locked_dropout = shape.locked_dropout
        self.word_dropout = shape.word_dropout
        kind, input_sizes = CELLS[shape.cell], [shape.input_size] + [shape.size] * (shape.layers - 1)
        self.cells = nn.ModuleList(
            build_cell(kind, size, shape.size, layer_normalization=shape.layer_normalization) for size in input_sizes
        )

    def start(self, layers: tuple[CellState, ...], memory: Memory) -> DecoderState:
        """The state before the first step, from the layers' first states."""
        return DecoderState(layers, self.attention.start(memory))

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor, DecoderState]:
        """One step, without dropout, for `embedded` (rows, input_size).

        Returns the vector (rows, output_size), the weights (rows, source_length) and the next state.
        """
        raise NotImplementedError

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Outputs:
        """All steps, for the true previous words `embedded` (batch, target_length, input_size)."""
        raise NotImplementedError

    def _cell(self, layer: int) -> Cell | ResetFirstCell:
        return cast(Cell | ResetFirstCell, self.cells[layer])  # a ModuleList knows modules only

    def _output(self, layers: Sequence[CellState]) -> Tensor:
        """What a stack of layers in these states gives, (rows, size): h of the top one.

        With residual connections (Wu et al. 2016, arXiv 1609.08144, 3.1) layer l gives x^l = h^l + x^{l-1} from
        the second on, and so the stack the sum of all h^l. The states themselves are without them.
        """
        return reduce(torch.add, (layer[0] for layer in layers)) if self.residual else layers[-1][0]

    def _stack(self, bottom: CellState, states: Sequence[CellState], masks: Sequence[Tensor]) -> tuple[CellState, ...]:
        """The new states of all layers, given the new one of the first. `masks`: dropout between layers."""
        layers = [bottom]
        for index in range(1, len(self.cells)):
            below = self._output(layers)
            from_input = self._cell(index).project(below * masks[index - 1] if len(masks) else below)
            layers.append(self._cell(index)(from_input, states[index]))
        return tuple(layers)

    def _dropped(self, values: Tensor, rate: float) -> Tensor:
        """`values` (batch, target_length, …) of all steps, with dropout in training."""
        return dropout(values, rate, training=self.training, locked=1 if self.locked_dropout else None)

    def _dropped_words(self, embedded: Tensor) -> Tensor:
        """`embedded` (batch, target_length, input_size), with word dropout and dropout in training."""
        embedded = dropout(embedded, self.word_dropout, training=self.training, locked=2)
        return self._dropped(embedded, self.dropout)

    def _masks(self, length: int, shape: Sequence[int], rate: float, *, like: Tensor) -> Sequence[Tensor]:
        """For each of `length` steps a dropout mask of this shape, all drawn together; locked, all are one."""
        if self.locked_dropout:
            return [dropout_mask(shape, rate, like=like)] * length
        return dropout_mask((length, *shape), rate, like=like).unbind(0)

    def _masks_between(self, length: int, embedded: Tensor) -> Sequence[Sequence[Tensor]]:
        """For each step the dropout masks between its layers; empty where nothing is dropped."""
        shape = (len(self.cells) - 1, embedded.size(0), self.size)
        if not self.training or self.dropout == 0.0 or 0 in (length, *shape):
            return [()] * length
        return [tuple(step) for step in self._masks(length, shape, self.dropout, like=embedded)]


class ReadoutDecoder(Decoder):
    """A decoder whose cells read a context, and whose readout of (s_i, E y_{i-1}, c_i) is not fed back.

    Therefore the readout of a whole sentence is one product after the loop.
    """

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """One step of cells and attention: c_i (rows, context_size), weights (rows, source_length), the next state.

        `from_input` is what the first cell's `project` gives for E y; `masks` are for `_stack`.
        """
        raise NotImplementedError

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """The vectors (…, output_size) of steps with these s_i of the top layer, embedded words and contexts."""
        raise NotImplementedError

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor, DecoderState]:
        context, weights, state = self._recur(self._cell(0).project(embedded), state, memory, ())
        return self._read_out(self._output(state.layers), embedded, context), weights, state

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Outputs:
        embedded = self._dropped_words(embedded)
        from_inputs = self._cell(0).project(embedded.transpose(0, 1)).unbind(0)
        masks = self._masks_between(len(from_inputs), embedded)

        def step(state: DecoderState, from_input: Tensor, between: Sequence[Tensor]) -> Step:
            context, weights, state = self._recur(from_input, state, memory, between)
            return (self._output(state.layers), context, weights), state

        tops, contexts, attended = run_steps(step, state, from_inputs, masks)
        vectors = self._read_out(tops, embedded, contexts)
        return Outputs(self._dropped(vectors, self.output_dropout), attended)
