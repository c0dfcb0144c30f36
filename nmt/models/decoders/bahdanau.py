"""The decoder of Bahdanau, Cho & Bengio (2014), arXiv 1409.0473."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from nmt.models.attention import Attention
from nmt.models.cells import CELLS
from nmt.models.decoders.base import DecoderShape, DecoderState, ReadoutDecoder, Step
from nmt.models.initialisation import Weight
from nmt.models.memory import Memory
from nmt.ops.linear import Linear
from nmt.ops.steps import StepLinear


class BahdanauDecoder(ReadoutDecoder):
    """Attention with the old state, then a cell that reads the context, then a maxout layer (section 3.1 and A.2.2):

        c_i = attention(s_{i-1})                             s_{i-1} of the top layer is the query
        s_i = RNN([E y_{i-1}; c_i], s_{i-1})
        t̃_i = U_o s_i + V_o E y_{i-1} + C_o c_i + b          (2 × output_size,)
        t_i = [max(t̃_{i,2j-1}, t̃_{i,2j})]_j                   the vector that the output layer reads

    The readout is of s_i, as in the paper's equation 4, p(y_i | s_i, y_{i-1}, c_i); its appendix writes s_{i-1}, which
    in the authors' code has read y_{i-1} already. A.1.1 allows an LSTM in place of the gated unit.
    """

    def __init__(self, attention: Attention, shape: DecoderShape) -> None:
        super().__init__(attention, shape)
        context_size, gates = attention.context_size, CELLS[shape.cell].gates * shape.size
        self.context_layer = StepLinear(context_size, gates, bias=False) if context_size else None
        self.readout = Linear(shape.size + shape.input_size + context_size, 2 * shape.output_size)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        if self.context_layer is not None:
            yield self.context_layer.weight, Weight(gates=self._cell(0).gates)

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Step, DecoderState]:
        context, weights, past = self.attention.step(state.layers[-1][0], memory, state.past)
        if self.context_layer is not None:
            from_input = from_input + self.context_layer(context)
        layers = self._stack(self._cell(0)(from_input, state.layers[0]), state.layers, masks)
        return Step(layers[-1][0], context, weights), DecoderState(layers, past)

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        pairs = self.readout(torch.cat((top, embedded, context), dim=-1)).unflatten(-1, (self.output_size, 2))
        return pairs.amax(dim=-1)
