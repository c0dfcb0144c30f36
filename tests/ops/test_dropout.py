import pytest
import torch

from nmt.ops.dropout import dropout, dropout_mask


def test_mask_keeps_the_mean() -> None:
    torch.manual_seed(1)
    mask = dropout_mask((200, 500), 0.3, like=torch.zeros(1))
    assert sorted(set(mask.flatten().tolist())) == pytest.approx([0.0, 1 / 0.7])
    assert mask.mean().item() == pytest.approx(1.0, abs=0.01)
    assert (mask == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)


def test_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a rate of 1/4 a quarter of the numbers from 0 to just below 1 falls, and the rest is multiplied by 4/3."""
    monkeypatch.setattr(torch, "rand", lambda *shape, device: torch.tensor([0.0, 0.125, 0.25, 0.75]).view(shape))
    assert dropout_mask((2, 2), 0.25, like=torch.zeros(1)).flatten().tolist() == pytest.approx([0.0, 0.0, 4 / 3, 4 / 3])
    monkeypatch.setattr(torch, "rand", lambda *shape, device: torch.tensor([0.0, 0.5]))
    assert dropout(torch.tensor([3.0, 3.0]), 0.25, training=True).tolist() == pytest.approx([0.0, 4.0])


def test_the_mask_is_where_the_values_are() -> None:
    assert dropout_mask((2, 7), 0.5, like=torch.zeros(1, device="meta")).device.type == "meta"


def test_no_dropout_outside_training_and_at_rate_zero() -> None:
    values = torch.randn(3, 5)
    assert dropout(values, 0.9, training=False) is values
    assert dropout(values, 0.0, training=True) is values
    assert (dropout(values, 0.9, training=True) != values).any()


def test_mask_follows_type_and_seed() -> None:
    torch.manual_seed(3)
    first = dropout_mask((2, 7), 0.5, like=torch.zeros(1, dtype=torch.float64))
    torch.manual_seed(3)
    assert first.dtype == torch.float64
    assert torch.equal(first, dropout_mask((2, 7), 0.5, like=first))
