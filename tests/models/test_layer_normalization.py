"""Layer normalization in the decoder's cells: over all gates together, the input's part and the state's part apart."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from nmt.models.cells import Cell
from nmt.ops.recurrence import GRU, LSTM


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_gru_by_hand() -> None:
    """One unit. W x = (1, 2, 3), whose mean is 2 and variance 2/3; U h = (4, -2, -2), mean 0 and variance 8."""
    cell = Cell(GRU, 1, 1, layer_normalization=True).double()
    with torch.no_grad():
        for parameter in (cell.input_layer.bias, cell.recurrent_layer.bias):
            nn.init.zeros_(parameter)
        cell.input_layer.weight.copy_(torch.tensor([[1.0], [2.0], [3.0]]))
        cell.recurrent_layer.weight.copy_(torch.tensor([[8.0], [-4.0], [-4.0]]))
    state = (torch.tensor([[0.5]], dtype=torch.float64),)
    (new_state,) = cell(cell.project(torch.tensor([[1.0]], dtype=torch.float64)), state)
    x, h = 1 / math.sqrt(2 / 3 + 1e-5), 2 / math.sqrt(8 + 1e-5)
    reset, update = sigmoid(-x + 2 * h), sigmoid(0 - h)
    candidate = math.tanh(x + reset * -h)
    assert new_state.item() == pytest.approx((1 - update) * candidate + update * 0.5, abs=1e-12)


def test_lstm_by_hand() -> None:
    """One unit. W x = (2, 0, 2, 0) becomes (1, -1, 1, -1), U h = (0, 0, 3, 3) becomes (-1, -1, 1, 1), over √(1 + ε)
    and √(1 + ε / 2.25); the biases of the two normalizations are added."""
    cell = Cell(LSTM, 1, 1, layer_normalization=True).double()
    norm_of_input: Any = cell.input_norm
    norm_of_state: Any = cell.recurrent_norm
    with torch.no_grad():
        nn.init.zeros_(cell.input_layer.bias)
        cell.input_layer.weight.copy_(torch.tensor([[2.0], [0.0], [2.0], [0.0]]))
        cell.recurrent_layer.weight.copy_(torch.tensor([[0.0], [0.0], [6.0], [6.0]]))
        norm_of_input.weight.fill_(2.0)
        norm_of_state.bias.fill_(0.25)
    state = tuple(torch.tensor([[value]], dtype=torch.float64) for value in (0.5, 0.75))
    h, c = cell(cell.project(torch.tensor([[1.0]], dtype=torch.float64)), state)
    x, u = 2 / math.sqrt(1 + 1e-5), 1.5 / math.sqrt(2.25 + 1e-5)
    enter, forget, candidate, leave = (a * x + b * u + 0.25 for a, b in ((1, -1), (-1, -1), (1, 1), (-1, 1)))
    expected = sigmoid(forget) * 0.75 + sigmoid(enter) * math.tanh(candidate)
    assert c.item() == pytest.approx(expected, abs=1e-12)
    assert h.item() == pytest.approx(sigmoid(leave) * math.tanh(expected), abs=1e-12)
