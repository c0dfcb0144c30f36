import pytest
import torch

from nmt.ops.masks import dropout, dropout_mask, length_mask, masked_softmax


def test_mask_is_true_at_real_tokens() -> None:
    mask = length_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.tolist() == [[True, True, False], [False, False, False], [True, True, True]]


def test_the_mask_is_where_the_lengths_are() -> None:
    assert length_mask(torch.tensor([2, 3], device="meta"), 3).device.type == "meta"


def test_masked_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, 0.0, 99.0], [5.0, 5.0, 5.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_fully_masked_rows_have_zero_gradient() -> None:
    scores = torch.randn(2, 3, requires_grad=True)
    masked_softmax(scores, torch.tensor([[True, False, True], [False, False, False]])).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[1].tolist() == [0.0, 0.0, 0.0]


def test_a_dropout_mask_keeps_the_mean() -> None:
    torch.manual_seed(1)
    mask = dropout_mask((200, 500), 0.3, like=torch.zeros(1))
    assert sorted(set(mask.flatten().tolist())) == pytest.approx([0.0, 1 / 0.7])
    assert mask.mean().item() == pytest.approx(1.0, abs=0.01)
    assert (mask == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)


def test_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a rate of 1/4 a quarter of the numbers from 0 to just below 1 falls, and the rest is multiplied by 4/3."""
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.tensor([0.0, 0.125, 0.25, 0.75]).view(shape))
    assert dropout_mask((2, 2), 0.25, like=torch.zeros(1)).flatten().tolist() == pytest.approx([0.0, 0.0, 4 / 3, 4 / 3])
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.tensor([0.0, 0.5]))
    assert dropout(torch.tensor([3.0, 3.0]), 0.25, training=True).tolist() == pytest.approx([0.0, 4.0])


def test_whole_words_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sentences of three words: all numbers of a word or none, and what is left is multiplied by 4/3."""
    drawn = torch.tensor([[[0.0], [0.25], [0.75]], [[0.9], [0.1], [0.24]]])
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: drawn.view(shape))
    embedded = torch.arange(1.0, 13.0).view(2, 3, 2)
    factors = torch.tensor([[0.0, 4 / 3, 4 / 3], [4 / 3, 0.0, 0.0]]).unsqueeze(2)
    torch.testing.assert_close(dropout(embedded, 0.25, training=True, locked=2), embedded * factors)


def test_a_dropout_mask_is_where_the_values_are() -> None:
    assert dropout_mask((2, 7), 0.5, like=torch.zeros(1, device="meta")).device.type == "meta"


def test_no_dropout_outside_training_and_at_rate_zero() -> None:
    values = torch.randn(3, 5)
    assert dropout(values, 0.9, training=False) is values
    assert dropout(values, 0.0, training=True) is values
    assert (dropout(values, 0.9, training=True) != values).any()


def test_a_locked_mask_is_the_same_along_its_axis() -> None:
    torch.manual_seed(2)
    dropped = dropout(torch.ones(3, 5, 7), 0.5, training=True, locked=1)
    assert sorted(set(dropped.flatten().tolist())) == [0.0, 2.0]
    assert (dropped == dropped[:, :1]).all()
    assert (dropped != dropped[:1]).any()


def test_a_dropout_mask_follows_type_and_seed() -> None:
    torch.manual_seed(3)
    first = dropout_mask((2, 7), 0.5, like=torch.zeros(1, dtype=torch.float64))
    torch.manual_seed(3)
    assert first.dtype == torch.float64
    assert torch.equal(first, dropout_mask((2, 7), 0.5, like=first))
