"""Recurrent cells of the decoder: weights around the functions of `nmt.ops.recurrence`.

The product with the input is separate from the step, because the inputs of a whole sentence are projected at once. A
state is a tuple of (rows, size) tensors whose first member is the cell's output.
"""

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor, nn

from nmt.config.schema import CellName
from nmt.models.initialisation import Role, Weight
from nmt.ops.recurrence import gru_step, lstm_step
from nmt.ops.sequence import gru_sequence, lstm_sequence
from nmt.ops.steps import StepLinear

CellState = tuple[Tensor, ...]


class Cell(nn.Module):
    """What the two cells share: an input layer, a recurrent layer, and the number of gates and of state tensors.

    With layer normalization (Ba, Kiros & Hinton 2016, arXiv 1607.06450, equations 20 and 27) the two products become
    LN(W x + b) and LN(U h [+ b]), each over all its gates together, with gains and biases of their own. `forward`
    normalizes its argument `from_input`, so that a caller may first add to what `project` returned.
    """

    gates: ClassVar[int]
    states: ClassVar[int]
    recurrent_bias: ClassVar[bool]  # whether U h has a bias of its own, besides that of W x

    def __init__(self, input_size: int, size: int, *, layer_normalisation: bool = False) -> None:
        super().__init__()
        self.layer_normalisation = layer_normalisation
        self.input_layer = StepLinear(input_size, self.gates * size)
        self.recurrent_layer = StepLinear(size, self.gates * size, bias=self.recurrent_bias)
        self.input_norm, self.recurrent_norm = (
            nn.LayerNorm(self.gates * size) if layer_normalisation else nn.Identity() for _ in range(2)
        )

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.input_layer.weight, Weight(gates=self.gates)
        yield self.recurrent_layer.weight, Weight(Role.RECURRENT, self.gates)

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b for every gate: (…, input_size) → (…, gates × size)."""
        return self.input_layer(inputs)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        """The next state, given what `project` returned for this step."""
        raise NotImplementedError

    def sequence(self, from_inputs: Tensor, first: CellState) -> Tensor:
        """The outputs (steps, rows, size) of all steps, given what `project` returned for them, without normalization.

        The same as `forward` step by step.
        """
        raise NotImplementedError


class GRUCell(Cell):
    """Gated recurrent unit, Cho et al. (2014), in PyTorch's form; see `gru_step`."""

    gates = 3
    states = 1
    recurrent_bias = True  # the reset gate scales it

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        (hidden,) = state
        from_hidden = self.recurrent_norm(self.recurrent_layer(hidden))
        return (gru_step(self.input_norm(from_input), from_hidden, hidden),)

    def sequence(self, from_inputs: Tensor, first: CellState) -> Tensor:
        layer = self.recurrent_layer
        states = gru_sequence(
            from_inputs.unsqueeze(1), layer.weight.unsqueeze(0), layer.bias.unsqueeze(0), first[0].unsqueeze(0), None
        )
        return states.squeeze(1)


class LSTMCell(Cell):
    """Long short-term memory, Hochreiter & Schmidhuber (1997) with forget gates; see `lstm_step`."""

    gates = 4
    states = 2
    recurrent_bias = False

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        hidden, cell = state
        from_hidden = self.recurrent_norm(self.recurrent_layer(hidden))
        return lstm_step(self.input_norm(from_input), from_hidden, cell)

    def sequence(self, from_inputs: Tensor, first: CellState) -> Tensor:
        weight, (hidden, cell) = self.recurrent_layer.weight.unsqueeze(0), (part.unsqueeze(0) for part in first)
        states, _ = lstm_sequence(from_inputs.unsqueeze(1), weight, (hidden, cell), None)
        return states.squeeze(1)


CELLS: dict[CellName, type[Cell]] = {"gru": GRUCell, "lstm": LSTMCell}
