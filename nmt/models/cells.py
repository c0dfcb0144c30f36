"""Recurrent cells of the decoder: weights around the functions of `nmt.ops.recurrence`.

The product with the input is separate from the step, because the inputs of a whole sentence are projected at once. A
state is a tuple of (rows, size) tensors whose first member is the cell's output.
"""

from typing import ClassVar

from torch import Tensor, nn

from nmt.ops.recurrence import gru_step, lstm_step

CellState = tuple[Tensor, ...]


class Cell(nn.Module):
    """What the two cells share: an input layer, a recurrent layer, and the number of gates and of state tensors."""

    gates: ClassVar[int]
    states: ClassVar[int]

    def __init__(self, input_size: int, size: int, *, recurrent_bias: bool) -> None:
        super().__init__()
        self.input_layer = nn.Linear(input_size, self.gates * size)
        self.recurrent_layer = nn.Linear(size, self.gates * size, bias=recurrent_bias)

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b for every gate: (…, input_size) → (…, gates × size)."""
        return self.input_layer(inputs)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        """The next state, given what `project` returned for this step."""
        raise NotImplementedError


class GRUCell(Cell):
    """Gated recurrent unit, Cho et al. (2014), in PyTorch's form; see `gru_step`."""

    gates = 3
    states = 1

    def __init__(self, input_size: int, size: int) -> None:
        # The bias of the recurrent product is a parameter of its own: the reset gate scales it.
        super().__init__(input_size, size, recurrent_bias=True)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        (hidden,) = state
        return (gru_step(from_input, self.recurrent_layer(hidden), hidden),)


class LSTMCell(Cell):
    """Long short-term memory, Hochreiter & Schmidhuber (1997) with forget gates; see `lstm_step`."""

    gates = 4
    states = 2

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size, recurrent_bias=False)

    def forward(self, from_input: Tensor, state: CellState) -> CellState:
        hidden, cell = state
        return lstm_step(from_input, self.recurrent_layer(hidden), cell)


CELLS: dict[str, type[GRUCell] | type[LSTMCell]] = {"gru": GRUCell, "lstm": LSTMCell}
