"""The decoders: what each puts between an embedded word and the vector that the output layer reads.

A decoder is a class and a line in DECODERS, and no other source file; `decoder.py` has what they share.

Luong, Pham & Manning (2015), arXiv 1508.04025; Bahdanau, Cho & Bengio (2014), arXiv 1409.0473; the conditional GRU of
dl4mt (Firat & Cho, docs/cgru.tex) and Nematus (Sennrich et al. 2017, arXiv 1703.04357).
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from nmt.config.schema import OrderName
from nmt.models.attention import Attention
from nmt.models.cells import CELLS, build_cell
from nmt.models.decoder import Decoder, DecoderShape, DecoderState, Outputs, ReadoutDecoder, Step
from nmt.models.initialization import Weight
from nmt.models.memory import Memory, all_steps
from nmt.ops.activations import tanh
from nmt.ops.computing import fused
from nmt.ops.linear import Linear
from nmt.ops.recurrence import CellState
from nmt.ops.steps import StepLinear, run_steps


class LuongDecoder(Decoder):
    """Luong et al. (2015), sections 3.1 and 3.3: cell first, attention with its new state, then the attentional vector:

        h_t = RNN([E y_{t-1}; h̃_{t-1}], h_{t-1})        h̃_{t-1} only with input feeding, h̃_0 = 0
        c_t = attention(h_t)                             h_t of the top layer is the query
        h̃_t = tanh(W_c [c_t; h_t])                       without bias

    The vector that the output layer reads is h̃_t; it is fed with the same dropout mask that the output layer sees, and
    with one of its own if there is `fed_dropout`. `attentional_dropout` is on [c_t; h_t]. There is no tanh with
    `attentional_activation: none`.
    """

    def __init__(
        self,
        attention: Attention,
        shape: DecoderShape,
        *,
        input_feeding: bool,
        fed_dropout: float,
        attentional_dropout: float,
        attentional_activation: Literal["tanh", "none"],
    ) -> None:
        super().__init__(attention, shape)
        self.fed_dropout, self.attentional_dropout = fed_dropout, attentional_dropout
        self.linear = attentional_activation == "none"
        gates = CELLS[shape.cell].gates * shape.size
        self.feed = StepLinear(shape.output_size, gates, bias=False) if input_feeding else None
        self.combine = StepLinear(attention.context_size + shape.size, shape.output_size, bias=False)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        if self.feed is not None:
            yield self.feed.weight, Weight(gates=self._cell(0).kind.gates)

    def start(self, layers: tuple[CellState, ...], memory: Memory) -> DecoderState:
        first = layers[0][0]
        fed = None if self.feed is None else first.new_zeros(first.size(0), self.output_size)
        return super().start(layers, memory)._replace(fed=fed)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor, DecoderState]:
        return self._recur(self._with_fed(self._cell(0).project(embedded), state), state, memory, ())

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Outputs:
        embedded = self._dropped_words(embedded)
        from_inputs = self._cell(0).project(embedded.transpose(0, 1)).unbind(0)
        between = self._masks_between(len(from_inputs), embedded)
        if self.feed is None and not self.attention.recurrent:
            return self._at_once(from_inputs, state, memory, between)
        rates = (self.fed_dropout, self.attentional_dropout, self.output_dropout)
        sizes = (self.output_size, self.combine.in_features, self.output_size)
        dropped = [
            self._step_masks(len(from_inputs), size, rate, from_inputs[0])
            for size, rate in zip(sizes, rates, strict=True)
        ]

        def step(
            state: DecoderState, from_input: Tensor, masks: Sequence[Tensor], on_fed: Tensor | None, *others: Tensor
        ) -> Step:
            read = self._with_fed(from_input, state, on_fed)
            vector, weights, state = self._recur(read, state, memory, masks, *others)
            return (vector, weights), state

        return Outputs(*run_steps(step, state, from_inputs, between, *dropped))

    def _recur(
        self,
        from_input: Tensor,
        state: DecoderState,
        memory: Memory,
        masks: Sequence[Tensor],
        on_attentional: Tensor | None = None,
        on_output: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """One step of cells and attention: h̃, weights, next state. In training `on_attentional` is the dropout mask of
        [c; h], `on_output` that of h̃."""
        layers = self._stack(self._cell(0)(from_input, state.layers[0]), state.layers, masks)
        top = self._output(layers)
        context, weights, past = self.attention.step(top, memory, state.past)
        vector = self._combine(_masked(torch.cat((context, top), dim=-1), on_attentional))
        vector = _masked(vector, on_output)
        return vector, weights, DecoderState(layers, past, None if self.feed is None else vector)

    def _at_once(
        self, from_inputs: Sequence[Tensor], state: DecoderState, memory: Memory, between: Sequence[Sequence[Tensor]]
    ) -> Outputs:
        """Nothing of attention enters the cells or the next step, so all positions attend as queries of one call."""
        queries = self._all_states(from_inputs, state.layers, between)
        context, weights = self.attention(queries, memory, all_steps(len(from_inputs), device=queries.device))
        vectors = self._combine(self._dropped(torch.cat((context, queries), dim=-1), self.attentional_dropout))
        return Outputs(self._dropped(vectors, self.output_dropout), weights)

    def _all_states(
        self, from_inputs: Sequence[Tensor], first: Sequence[CellState], between: Sequence[Sequence[Tensor]]
    ) -> Tensor:
        """What the layers give at all steps, (batch, target_length, size), where nothing is fed."""
        layers = tuple(first)
        if fused() and not self._cell(0).layer_normalization:
            outputs = self._cell(0).sequence(torch.stack(tuple(from_inputs)), layers[0])
            for index in range(1, len(layers)):
                below = outputs * torch.stack([masks[index - 1] for masks in between]) if between[0] else outputs
                states = self._cell(index).sequence(self._cell(index).project(below), layers[index])
                outputs = outputs + states if self.residual else states
            return outputs.transpose(0, 1)

        def step(
            layers: tuple[CellState, ...], from_input: Tensor, masks: Sequence[Tensor]
        ) -> tuple[tuple[Tensor, ...], tuple[CellState, ...]]:
            layers = self._stack(self._cell(0)(from_input, layers[0]), layers, masks)
            return (self._output(layers),), layers

        (tops,) = run_steps(step, layers, from_inputs, between)
        return tops

    def _with_fed(self, from_input: Tensor, state: DecoderState, on_fed: Tensor | None = None) -> Tensor:
        """What the first cell reads, the embedded word being projected already: V h̃ is added where h̃ is fed, in
        training with its dropout mask."""
        if self.feed is None or state.fed is None:
            return from_input
        return from_input + self.feed(_masked(state.fed, on_fed))

    def _combine(self, both: Tensor) -> Tensor:
        """h̃ (…, output_size) from contexts and states of the top layer, (…, context_size + size)."""
        return self.combine(both) if self.linear else tanh(self.combine(both))

    def _step_masks(self, length: int, size: int, rate: float, like: Tensor) -> Sequence[Tensor | None]:
        """For each step a dropout mask (rows, size); None where nothing is dropped."""
        if not self.training or rate == 0.0:
            return [None] * length
        return self._masks(length, (like.size(0), size), rate, like=like)


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """`values` times their dropout mask, if there is one."""
    return values if mask is None else values * mask


class BahdanauDecoder(ReadoutDecoder):
    """Bahdanau et al. (2014), 3.1, A.2.2: attention, a cell that reads the context, a maxout layer. `order: paper`:

        c_i = attention(s_{i-1})                             s_{i-1} of the top layer is the query
        s_i = RNN([E y_{i-1}; c_i], s_{i-1})

    `order: authors`, the default, as in their code, GroundHog, where a state has read y_{i-1} when it attends:

        s_i = RNN([E y_{i-1}; c_{i-1}], s_{i-1})             c_0 = 0
        c_i = attention(s_i)                                 s_i of the top layer is the query

    Where no state attends, as with the score `fixed`, c_i does not depend on the state, and s_i reads it in both. In
    both orders then, with s_i of the top layer:

        t̃_i = U_o s_i + V_o E y_{i-1} + C_o c_i + b          (2 × output_size,)
        t_i = [max(t̃_{i,2j-1}, t̃_{i,2j})]_j                   the vector that the output layer reads

    The readout of s_i is the paper's equation 4, p(y_i | s_i, y_{i-1}, c_i). The appendix has s_{i-1}, which is how
    GroundHog counts the state that has read y_{i-1}: there a state writes a word and then reads it. So it writes y_1
    from s_0; here y_0 is <s>, which s_1 has read. A.1.1 allows an LSTM in place of the gated unit.
    """

    def __init__(self, attention: Attention, shape: DecoderShape, *, order: OrderName) -> None:
        super().__init__(attention, shape)
        context_size, gates = attention.context_size, CELLS[shape.cell].gates * shape.size
        self.reads_first = order == "authors" and attention.score.aligns
        self.context_layer = StepLinear(context_size, gates, bias=False) if context_size else None
        self.readout = Linear(shape.size + shape.input_size + context_size, 2 * shape.output_size)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        if self.context_layer is not None:
            yield self.context_layer.weight, Weight(gates=self._cell(0).kind.gates)

    def start(self, layers: tuple[CellState, ...], memory: Memory) -> DecoderState:
        first = layers[0][0]
        fed = first.new_zeros(first.size(0), self.attention.context_size) if self.reads_first else None
        return super().start(layers, memory)._replace(fed=fed)

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, DecoderState]:
        if state.fed is not None:
            layers = self._read(from_input, state.fed, state, masks)
            context, weights, past = self.attention.step(self._output(layers), memory, state.past)
            return context, weights, DecoderState(layers, past, context)
        context, weights, past = self.attention.step(self._output(state.layers), memory, state.past)
        return context, weights, DecoderState(self._read(from_input, context, state, masks), past)

    def _read(
        self, from_input: Tensor, context: Tensor, state: DecoderState, masks: Sequence[Tensor]
    ) -> tuple[CellState, ...]:
        """The new states of all layers, the first of which reads the context."""
        if self.context_layer is not None:
            from_input = from_input + self.context_layer(context)
        return self._stack(self._cell(0)(from_input, state.layers[0]), state.layers, masks)

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        pairs = self.readout(torch.cat((top, embedded, context), dim=-1)).unflatten(-1, (self.output_size, 2))
        return pairs.amax(dim=-1)


class ConditionalGRUDecoder(ReadoutDecoder):
    """A cell that reads the word, attention with its state, a second cell that reads the context, then a tanh layer:

        s'_j = GRU_1(E y_{j-1}, s_{j-1})
        c_j  = attention(s'_j)
        s_j  = GRU_2(c_j, s'_j)
        t_j  = tanh(W [s_j; E y_{j-1}; c_j] + b)              the vector that the output layer reads

    Further layers are GRUs that each read the layer below; the readout is of the top one.
    """

    cell_names = ("gru", "gru_reset_first")
    without_context = False

    def __init__(self, attention: Attention, shape: DecoderShape) -> None:
        super().__init__(attention, shape)
        context_size = attention.context_size
        self.context_cell = build_cell(
            CELLS[shape.cell], context_size, shape.size, layer_normalization=shape.layer_normalization
        )
        self.readout = Linear(shape.size + shape.input_size + context_size, shape.output_size)

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, DecoderState]:
        between = self._cell(0)(from_input, state.layers[0])
        context, weights, past = self.attention.step(between[0], memory, state.past)
        bottom = self.context_cell(self.context_cell.project(context), between)
        return context, weights, DecoderState(self._stack(bottom, state.layers, masks), past)

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return tanh(self.readout(torch.cat((top, embedded, context), dim=-1)))


DECODERS: dict[str, type[Decoder]] = {
    "luong": LuongDecoder,
    "bahdanau": BahdanauDecoder,
    "conditional_gru": ConditionalGRUDecoder,
}
