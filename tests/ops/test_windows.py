"""Windows of sentences: which positions they have, and that taking them out and putting them back loses nothing."""

import pytest
import torch
from torch import Tensor

from nmt.ops.steps import weight_gradients_at_once
from nmt.ops.windows import Slice, Windows

LENGTH, SIZE = 11, 3


def test_positions_around_by_hand() -> None:
    """D = 2 of 11 positions: ⌈p⌉ - 2 and the four that follow; the first or the last five at the borders."""
    centres = torch.tensor([[0.0, 4.0], [4.25, 10.0]])
    windows = Windows.around(centres, 2, LENGTH)
    assert windows.positions.tolist() == [
        [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]],
        [[3, 4, 5, 6, 7], [6, 7, 8, 9, 10]],
    ]
    assert windows.rows.tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 17, 18, 19, 20, 21]


@pytest.mark.parametrize("centre", [float("nan"), float("inf"), float("-inf")])
def test_a_center_that_is_no_number_leads_nowhere_else(centre: float) -> None:
    """The windows of others are as they were, its own is somewhere in the sentence, and a slice is all of it."""
    centres = torch.tensor([[4.0, centre]])
    others, its_own = Windows.around(centres, 2, LENGTH).positions[0].tolist()
    assert others == [2, 3, 4, 5, 6]
    assert its_own == list(range(its_own[0], its_own[0] + 5))
    assert 0 <= its_own[0] <= LENGTH - 5
    for order in ([0, 1], [1, 0]):
        part = Slice.over(centres[:, order], 2, LENGTH)
        assert (part.start, part.stop) == (0, LENGTH)


def test_a_slice_over_centers_by_hand() -> None:
    """From the first window's beginning to the last one's end, within the sentence."""
    for centres, start, stop in (
        ([[4], [4]], 2, 7),
        ([[0], [3]], 0, 6),
        ([[9.5], [7.75]], 5, 11),
        ([[4.25], [4.0]], 2, 8),
    ):
        part = Slice.over(torch.tensor(centres), 2, LENGTH)
        assert (part.start, part.stop) == (start, stop)
        assert part.positions.tolist() == [[list(range(start, stop))]]


@pytest.mark.parametrize("half_width", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_position_that_is_near_is_there_once(half_width: int, dtype: torch.dtype) -> None:
    """For centers at, just before and just after whole numbers, and anywhere."""
    whole = torch.arange(LENGTH, dtype=dtype)
    ends = torch.tensor([-torch.inf, torch.inf], dtype=dtype)
    beside = [torch.nextafter(whole, end).clamp(0, LENGTH - 1) for end in ends]
    centres = torch.cat([whole, *beside, torch.rand(50, dtype=dtype) * (LENGTH - 1)]).view(1, -1)
    near = (torch.arange(LENGTH) - centres.unsqueeze(2)).abs() <= half_width
    windows = Windows.around(centres, half_width, LENGTH)
    marks = torch.zeros_like(near, dtype=torch.long).scatter_add_(
        2, windows.positions, torch.ones_like(windows.positions)
    )
    assert marks.max() == 1
    assert (marks[near] == 1).all()
    for centre, is_near in zip(centres[0], near[0], strict=True):
        part = Slice.over(centre.view(1, 1), half_width, LENGTH)
        assert set(is_near.nonzero().flatten().tolist()) <= set(range(part.start, part.stop))


def parts() -> dict[str, Slice | Windows]:
    centres = torch.tensor([[4.0, 1.5, 9.0], [0.0, 6.5, 5.0]])
    return {
        "a window a query": Windows.around(centres, 2, LENGTH),
        "a window a sentence": Windows.around(centres[:, :1], 2, LENGTH),
        "a slice": Slice.over(torch.tensor([[4], [5]]), 2, LENGTH),
    }


@pytest.mark.parametrize("name", parts())
def test_as_by_take_along_dim(name: str) -> None:
    """What is taken out of sentences and of what queries have, folded and put back."""
    part, values = parts()[name], torch.randn(2, LENGTH, SIZE)
    of_queries, filtered = torch.randn(2, 3, LENGTH), torch.randn(2, 3, LENGTH, 7)
    index = part.positions.expand(2, 3, -1)
    expected = values.unsqueeze(1).expand(-1, 3, -1, -1).take_along_dim(index.unsqueeze(3), dim=2)
    rows = part.of(values)
    queries = 3 // (len(rows) // 2)
    assert torch.equal(rows.repeat_interleave(queries, dim=0).view(expected.shape), expected)
    assert torch.equal(part.of_queries(of_queries), of_queries.take_along_dim(index, dim=2))
    assert torch.equal(part.of_queries(filtered), filtered.take_along_dim(index.unsqueeze(3), dim=2))
    weights = torch.randn(index.shape)
    assert torch.equal(part.fold(weights).flatten(), weights.flatten())
    assert part.fold(weights).shape[:2] == (len(rows), queries)
    whole = part.spread(weights)
    assert torch.equal(whole.take_along_dim(index, dim=2), weights)
    assert whole.count_nonzero() == weights.numel()


@pytest.mark.parametrize("name", parts())
def test_gradients_of_a_loop_are_added_up(name: str) -> None:
    """Of parts of one tensor in several steps: those of autograd, also of a second pass, and of one for some steps."""
    part, values = parts()[name], torch.randn(2, LENGTH, SIZE, dtype=torch.float64, requires_grad=True)
    factors = torch.randn(4, *part.of(values).shape, dtype=torch.float64)

    def outputs() -> Tensor:
        return torch.stack([(part.of(values).tanh() * factor).sum() for factor in factors])

    with weight_gradients_at_once() as loop:
        whole, *_ = loop.outputs(outputs())
    for total, expected in (
        (whole.sum(), outputs().sum()),
        (whole[:2].sum(), outputs()[:2].sum()),
        (whole.sum(), outputs().sum()),
    ):
        (gradient,) = torch.autograd.grad(total, values, retain_graph=True)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected, values)[0])


def test_windows_are_gathered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the backward pass, once for each time that they would have been kept; the gradients are the same."""
    values = torch.randn(2, LENGTH, SIZE, dtype=torch.float64, requires_grad=True)
    windows = parts()["a window a query"]
    gathered: list[Tensor] = []
    take = Windows.take

    def noted(part: Windows, source: Tensor) -> Tensor:
        gathered.append(source)
        return take(part, source)

    monkeypatch.setattr(Windows, "take", noted)
    rows = windows.of(values)
    expected = (rows @ rows.transpose(1, 2)).tanh().sum()
    torch.autograd.backward(expected, retain_graph=True)
    gradient, values.grad = values.grad, None
    assert len(gathered) == 1
    rows = windows.of(values)
    with windows.not_kept((values, rows)):
        recomputed = (rows @ rows.transpose(1, 2)).tanh().sum()
    recomputed.backward()
    torch.testing.assert_close(values.grad, gradient)
    assert len(gathered) == 2 + 2
