import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.ops.computing import computing
from nmt.ops.recurrence import GRU, LSTM

ROWS, INPUT, SIZE = 2, 3, 5


def test_gru_by_hand() -> None:
    """r = σ(0) = 0.5, z = σ(0) = 0.5, n = tanh(0 + 0.5 · 2) = tanh(1), h' = 0.5 tanh(1) + 0.5 · 4."""
    (new,) = GRU.step(torch.zeros(1, 3), torch.tensor([[0.0, 0.0, 2.0]]), torch.tensor([[4.0]]))
    assert new.item() == pytest.approx(0.5 * np.tanh(1.0) + 2.0)


def test_lstm_by_hand() -> None:
    """All gates 0.5, g = tanh(1): c' = 0.5 · 6 + 0.5 tanh(1), h' = 0.5 tanh(c')."""
    hidden, cell = LSTM.step(torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.zeros(1, 4), torch.tensor([[6.0]]))
    assert cell.item() == pytest.approx(3.0 + 0.5 * np.tanh(1.0))
    assert hidden.item() == pytest.approx(0.5 * np.tanh(3.0 + 0.5 * np.tanh(1.0)))


def test_gru_equals_the_library() -> None:
    library = nn.GRUCell(INPUT, SIZE, dtype=torch.float64)
    x, h = torch.randn(ROWS, INPUT, dtype=torch.float64), torch.randn(ROWS, SIZE, dtype=torch.float64)
    (new,) = GRU.step(x @ library.weight_ih.T + library.bias_ih, h @ library.weight_hh.T + library.bias_hh, h)
    torch.testing.assert_close(new, library(x, h), rtol=0, atol=1e-12)


def test_lstm_equals_the_library() -> None:
    library = nn.LSTMCell(INPUT, SIZE, dtype=torch.float64)
    x = torch.randn(ROWS, INPUT, dtype=torch.float64)
    h, c = torch.randn(2, ROWS, SIZE, dtype=torch.float64)
    new = LSTM.step(x @ library.weight_ih.T + library.bias_ih, h @ library.weight_hh.T + library.bias_hh, c)
    torch.testing.assert_close(new, library(x, (h, c)), rtol=0, atol=1e-12)


def of_gru() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(4)
    shapes = ((ROWS, 3 * SIZE), (ROWS, 3 * SIZE), (ROWS, SIZE))
    return tuple(torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True) for shape in shapes)


def of_lstm() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(4)
    shapes = ((ROWS, 4 * SIZE), (ROWS, 4 * SIZE), (ROWS, SIZE))
    return tuple(torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True) for shape in shapes)


def test_gradients_against_finite_differences() -> None:
    assert torch.autograd.gradcheck(GRU.step, of_gru())
    assert torch.autograd.gradcheck(LSTM.step, of_lstm())


def test_which_step_is_computed() -> None:
    """The plain twin by autograd; ours with its own backward pass, and with none where gradients are off."""
    fused = (*LSTM.step(*of_lstm()), *GRU.step(*of_gru()))
    assert {state.grad_fn.name() for state in fused} == {"_StepBackward"}  # type: ignore[union-attr]
    with computing(fused=False):
        plain = (*LSTM.step(*of_lstm()), *GRU.step(*of_gru()))
    assert not any(state.grad_fn.name().startswith("_") for state in plain)  # type: ignore[union-attr]
    with torch.no_grad():
        without = (*LSTM.step(*of_lstm()), *GRU.step(*of_gru()))
    for states in (plain, without):
        torch.testing.assert_close(states, fused, rtol=0, atol=1e-12)
