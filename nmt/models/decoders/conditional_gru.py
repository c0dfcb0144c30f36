"""The conditional GRU of dl4mt (Firat & Cho, docs/cgru.tex) and Nematus (Sennrich et al. 2017, arXiv 1703.04357)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.models.attention import Attention
from nmt.models.cells import GRUCell
from nmt.models.decoders.base import DecoderShape, DecoderState, ReadoutDecoder, Step
from nmt.models.memory import Memory
from nmt.ops.activations import tanh
from nmt.ops.linear import Linear


class ConditionalGRUDecoder(ReadoutDecoder):
    """A cell that reads the word, attention with its state, a second cell that reads the context, then a tanh layer:

        s'_j = GRU_1(E y_{j-1}, s_{j-1})
        c_j  = attention(s'_j)
        s_j  = GRU_2(c_j, s'_j)
        t_j  = tanh(W [s_j; E y_{j-1}; c_j] + b)              the vector that the output layer reads

    Further layers are GRUs that each read the layer below; the readout is of the top one.
    """

    cell_names = ("gru",)
    without_context = False

    def __init__(self, attention: Attention, shape: DecoderShape) -> None:
        super().__init__(attention, shape)
        context_size = attention.context_size
        self.context_cell = GRUCell(context_size, shape.size, layer_normalisation=shape.layer_normalisation)
        self.readout = Linear(shape.size + shape.input_size + context_size, shape.output_size)

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Step, DecoderState]:
        between = self._cell(0)(from_input, state.layers[0])
        context, weights, past = self.attention.step(between[0], memory, state.past)
        bottom = self.context_cell(self.context_cell.project(context), between)
        layers = self._stack(bottom, state.layers, masks)
        return Step(layers[-1][0], context, weights), DecoderState(layers, past)

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return tanh(self.readout(torch.cat((top, embedded, context), dim=-1)))
