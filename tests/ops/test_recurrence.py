import numpy as np
import pytest
import torch
from torch import nn

from nmt.ops.recurrence import gru_step, lstm_step

ROWS, INPUT, SIZE = 2, 3, 5


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def test_gru_by_hand() -> None:
    """r = σ(0) = 0.5, z = σ(0) = 0.5, n = tanh(0 + 0.5 · 2) = tanh(1), h' = 0.5 tanh(1) + 0.5 · 4."""
    new = gru_step(torch.zeros(1, 3), torch.tensor([[0.0, 0.0, 2.0]]), torch.tensor([[4.0]]))
    assert new.item() == pytest.approx(0.5 * np.tanh(1.0) + 2.0)


def test_lstm_by_hand() -> None:
    """All gates 0.5, g = tanh(1): c' = 0.5 · 6 + 0.5 tanh(1), h' = 0.5 tanh(c')."""
    hidden, cell = lstm_step(torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.zeros(1, 4), torch.tensor([[6.0]]))
    assert cell.item() == pytest.approx(3.0 + 0.5 * np.tanh(1.0))
    assert hidden.item() == pytest.approx(0.5 * np.tanh(3.0 + 0.5 * np.tanh(1.0)))


def test_gru_equals_the_library() -> None:
    library = nn.GRUCell(INPUT, SIZE, dtype=torch.float64)
    x, h = torch.randn(ROWS, INPUT, dtype=torch.float64), torch.randn(ROWS, SIZE, dtype=torch.float64)
    new = gru_step(x @ library.weight_ih.T + library.bias_ih, h @ library.weight_hh.T + library.bias_hh, h)
    torch.testing.assert_close(new, library(x, h), rtol=0, atol=1e-12)


def test_lstm_equals_the_library() -> None:
    library = nn.LSTMCell(INPUT, SIZE, dtype=torch.float64)
    x = torch.randn(ROWS, INPUT, dtype=torch.float64)
    h, c = torch.randn(2, ROWS, SIZE, dtype=torch.float64)
    new = lstm_step(x @ library.weight_ih.T + library.bias_ih, h @ library.weight_hh.T + library.bias_hh, c)
    torch.testing.assert_close(new, library(x, (h, c)), rtol=0, atol=1e-12)
