import torch

from nmt.ops.masks import length_mask, masked_softmax


def test_mask_is_true_at_real_tokens() -> None:
    mask = length_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.tolist() == [[True, True, False], [False, False, False], [True, True, True]]


def test_the_mask_is_where_the_lengths_are() -> None:
    assert length_mask(torch.tensor([2, 3], device="meta"), 3).device.type == "meta"


def test_the_softmax_is_over_the_last_axis() -> None:
    """Of three: 2 × 2 × 3 scores, each row of 3 sums to 1."""
    scores = torch.arange(12.0).view(2, 2, 3)
    for mask in (None, torch.ones(2, 2, 3, dtype=torch.bool)):
        torch.testing.assert_close(masked_softmax(scores, mask).sum(2), torch.ones(2, 2))


def test_masked_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, 0.0, 99.0], [5.0, 5.0, 5.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_without_a_mask_it_is_the_softmax() -> None:
    scores = torch.tensor([[0.0, 0.0, 99.0], [5.0, 5.0, 5.0]])
    assert torch.equal(masked_softmax(scores, None), scores.softmax(1))


def test_fully_masked_rows_have_zero_gradient() -> None:
    scores = torch.randn(2, 3, requires_grad=True)
    masked_softmax(scores, torch.tensor([[True, False, True], [False, False, False]])).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[1].tolist() == [0.0, 0.0, 0.0]
