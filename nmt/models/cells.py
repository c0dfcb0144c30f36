"""Recurrent cells of the decoder: weights around a `Recurrence` of `nmt.ops.recurrence`, or one of its kin.

The product with the input is separate from the step, because the inputs of a whole sentence are projected at once.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.models.initialization import Role, Weight
from nmt.ops.recurrence import GRU, LSTM, CellState, Recurrence
from nmt.ops.reset_first import RESET_FIRST, ResetFirst, reset_first_sequence, reset_first_step
from nmt.ops.sequence import sequence
from nmt.ops.steps import StepLinear


class Cell(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) or a long short-term memory (Hochreiter & Schmidhuber 1997).

    With layer normalization (Ba, Kiros & Hinton 2016, arXiv 1607.06450, equations 20 and 27) the two products become
    LN(W x + b) and LN(U h [+ b]), each over all its gates together, with gains and biases of their own. `forward`
    normalizes its argument `from_input`, so that a caller may first add to what `project` returned.
    """

    def __init__(self, kind: Recurrence, input_size: int, size: int, *, layer_normalization: bool = False) -> None:
        super().__init__()
        self.kind, self.layer_normalization = kind, layer_normalization
        self.input_layer = StepLinear(input_size, kind.gates * size)
        self.recurrent_layer = StepLinear(size, kind.gates * size, bias=kind.recurrent_bias)
        self.input_norm, self.recurrent_norm = (
            nn.LayerNorm(kind.gates * size) if layer_normalization else nn.Identity() for _ in range(2)
        )

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.input_layer.weight, Weight(gates=self.kind.gates)
        yield self.recurrent_layer.weight, Weight(Role.RECURRENT, self.kind.gates)
        if self.kind is LSTM:  # of what is added last: b is normalized with W x
            last = self.input_norm if isinstance(self.input_norm, nn.LayerNorm) else self.input_layer
            yield last.bias, Weight(Role.LSTM_BIAS)

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b for every gate: (…, input_size) → (…, gates × size)."""
        return self.input_layer(inputs)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        """The next state, given what `project` returned for this step."""
        from_hidden = self.recurrent_norm(self.recurrent_layer(state[0]))
        return self.kind.step(self.input_norm(from_input), from_hidden, state[-1])

    def sequence(self, from_inputs: Tensor, first: CellState) -> Tensor:
        """The outputs (steps, rows, size) of all steps, given what `project` returned for them, without normalization.

        The same as `forward` step by step.
        """
        layer, first = self.recurrent_layer, tuple(part.unsqueeze(0) for part in first)
        weight, bias = layer.weight.unsqueeze(0), layer.bias.unsqueeze(0) if self.kind.recurrent_bias else None
        return sequence(self.kind, from_inputs.unsqueeze(1), weight, bias, first, None)[0].squeeze(1)


class ResetFirstCell(nn.Module):
    """A gated recurrent unit whose reset gate comes before the product with the last state: see `nmt.ops.reset_first`.

    It has the methods of a `Cell`. Layer normalization is not defined for it: Ba et al. (2016) have the other form.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.kind, self.layer_normalization = RESET_FIRST, False
        self.input_layer = StepLinear(input_size, 3 * size)
        self.recurrent_layer = StepLinear(size, 2 * size, bias=False)  # of r and z
        self.candidate_layer = StepLinear(size, size, bias=False)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.input_layer.weight, Weight(gates=3)
        yield self.recurrent_layer.weight, Weight(Role.RECURRENT, 2)
        yield self.candidate_layer.weight, Weight(Role.RECURRENT)

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b for r, z and g: (…, input_size) → (…, 3 × size)."""
        return self.input_layer(inputs)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        """The next state, given what `project` returned for this step."""
        return reset_first_step(from_input, state[0], self.recurrent_layer, self.candidate_layer)

    def sequence(self, from_inputs: Tensor, first: CellState) -> Tensor:
        """The outputs (steps, rows, size) of all steps, given what `project` returned for them."""
        weight = torch.cat((self.recurrent_layer.weight, self.candidate_layer.weight)).unsqueeze(0)
        return reset_first_sequence(from_inputs.unsqueeze(1), weight, first[0].unsqueeze(0), None).squeeze(1)


def build_cell(
    kind: Recurrence | ResetFirst, input_size: int, size: int, *, layer_normalization: bool
) -> Cell | ResetFirstCell:
    """The cell of this kind."""
    if isinstance(kind, ResetFirst):
        assert not layer_normalization, "combinations.py refuses it"
        return ResetFirstCell(input_size, size)
    return Cell(kind, input_size, size, layer_normalization=layer_normalization)


CELLS: dict[str, Recurrence | ResetFirst] = {"gru": GRU, "gru_reset_first": RESET_FIRST, "lstm": LSTM}
