"""The order of reading, how the directions are joined, and the normalized annotations."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.models.encoder import Encoded, reversed_words
from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]


def encode(model: Seq2Seq, source: Tensor, lengths: Tensor) -> Encoded:
    encoded: Encoded = model.encoder(model.source_embedding(source), lengths)
    return encoded


def test_reversed_order_by_hand() -> None:
    """Words turn around, END and padding stay: a b c END _ _ is read as c b a END _ _."""
    order = reversed_words(torch.tensor([5, 3, 1, 0]), 6)
    assert order.tolist() == [[4, 3, 2, 1, 0, 5], [2, 1, 0, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]


@torch.no_grad()
@pytest.mark.parametrize("bidirectional", [False, True])
def test_reversed_source_gives_annotations_in_the_order_of_the_text(make_model: MakeModel, bidirectional: bool) -> None:
    """a b c END read backwards: the annotations are those of c b a END, the words' turned around again."""
    settings = {"bidirectional": bidirectional, "layers": 2, "cell": "lstm"}
    plain, reverse = (make_model(encoder={**settings, "reverse_source": backwards}) for backwards in (False, True))
    reverse.load_state_dict(plain.state_dict())
    lengths = torch.tensor([4, 3])
    read = encode(plain, torch.tensor([[7, 6, 5, 3], [9, 8, 3, 0]]), lengths)
    encoded = encode(reverse, torch.tensor([[5, 6, 7, 3], [8, 9, 3, 0]]), lengths)
    torch.testing.assert_close(encoded.annotations[0], read.annotations[0, [2, 1, 0, 3]], rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.annotations[1, :3], read.annotations[1, [1, 0, 2]], rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.summary, read.summary, rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.final, read.final, rtol=0, atol=1e-12)


@torch.no_grad()
def test_without_the_end_mark_only_words_are_read(make_model: MakeModel, batch: Batch) -> None:
    """Another token in the place of END changes nothing, and it gets no attention; END alone is read all the same."""
    model = make_model(encoder={"end_mark": False})
    source, lengths, target = (part[batch[1] > 1] for part in batch)
    assert model.encoder.tokens_read(torch.tensor([6, 2, 1])).tolist() == [5, 1, 1]
    other = source.scatter(1, lengths.unsqueeze(1) - 1, 11)
    outputs, same = model(source, lengths, target), model(other, lengths, target)
    torch.testing.assert_close(outputs, same, rtol=0, atol=0)
    assert not outputs.weights.take_along_dim((lengths - 1).view(-1, 1, 1), dim=2).any()
    torch.testing.assert_close(outputs.weights.sum(2), torch.ones_like(target, dtype=torch.float64))


@torch.no_grad()
def test_reversed_source_is_read_from_its_last_word(make_model: MakeModel) -> None:
    """In one direction the first word, read last of the words, is known to itself and to END only."""
    model = make_model(encoder={"bidirectional": False, "reverse_source": True})
    one, other = (
        encode(model, torch.tensor([[first, 6, 7, 8, 3]]), torch.tensor([5])).annotations[0] for first in (4, 5)
    )
    assert (one != other).any(1).tolist() == [True, False, False, False, True]


@torch.no_grad()
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_sum_adds_the_two_directions(make_model: MakeModel, batch: Batch, cell: str) -> None:
    """Annotations and the last states of every layer, from the same weights; between layers both are side by side."""
    settings = {"cell": cell, "layers": 2}
    both, summed = (
        make_model(encoder={**settings, "directions": directions}, attention={"score": "none"})
        for directions in ("concatenate", "sum")
    )
    summed.encoder.load_state_dict(both.encoder.state_dict())
    summed.source_embedding.load_state_dict(both.source_embedding.state_dict())
    side_by_side, sums = encode(both, *batch[:2]), encode(summed, *batch[:2])
    assert sums.annotations.shape == (3, 13, 10)
    torch.testing.assert_close(sums.annotations, added(side_by_side.annotations), rtol=0, atol=1e-12)
    assert len(sums.final) == 2
    for layer, expected in zip(sums.final, side_by_side.final, strict=True):
        for part, other in zip(layer, expected, strict=True):
            assert part.shape == (3, 10)
            torch.testing.assert_close(part, added(other), rtol=0, atol=1e-12)
    assert torch.equal(sums.summary, side_by_side.summary)


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, {"bidirectional": False}, {"directions": "sum", "reverse_source": True}])
def test_a_residual_layer_without_weights_hands_on_what_it_reads(
    make_model: MakeModel, batch: Batch, settings: dict[str, Any]
) -> None:
    """Its states are 0, and so are those that a decoder may copy; the annotations, and the last of them, are those of
    the layer below."""
    one, two = (make_model(encoder={"layers": layers, "residual": layers > 1, **settings}) for layers in (1, 2))
    two.load_state_dict(one.state_dict(), strict=False)
    for name, weight in two.encoder.named_parameters():
        if "_l1" in name:
            nn.init.zeros_(weight)
    expected, encoded = encode(one, *batch[:2]), encode(two, *batch[:2])
    torch.testing.assert_close(encoded.summary, expected.summary, rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.final[0], expected.final[0], rtol=0, atol=1e-12)
    assert not encoded.final[1][0].any()
    for row, length in enumerate(batch[1].tolist()):
        torch.testing.assert_close(
            encoded.annotations[row, :length], expected.annotations[row, :length], rtol=0, atol=1e-12
        )


def added(side_by_side: Tensor) -> Tensor:
    forward, backward = side_by_side.chunk(2, dim=-1)
    return forward + backward


@torch.no_grad()
@pytest.mark.parametrize("directions", ["concatenate", "sum"])
def test_normalized_annotations(make_model: MakeModel, batch: Batch, directions: str) -> None:
    """With gain 1 and bias 0 every annotation has mean 0 and variance v / (v + 1e-5), v its variance before; the last
    states are not normalized."""
    plain, normalized = (
        make_model(encoder={"directions": directions, "layer_normalization": normalize}) for normalize in (False, True)
    )
    norm: Any = normalized.encoder.norm
    assert norm.eps == 1e-5
    normalized.load_state_dict(plain.state_dict(), strict=False)
    nn.init.ones_(norm.weight)
    nn.init.zeros_(norm.bias)
    before, after = encode(plain, *batch[:2]), encode(normalized, *batch[:2])
    for row, length in enumerate(batch[1].tolist()):
        annotations = after.annotations[row, :length]
        variance = before.annotations[row, :length].var(dim=1, correction=0)
        torch.testing.assert_close(annotations.mean(1), torch.zeros(length).double(), rtol=0, atol=1e-12)
        torch.testing.assert_close(annotations.var(dim=1, correction=0), variance / (variance + 1e-5))
    assert torch.equal(before.summary, after.summary)
    torch.testing.assert_close(before.final, after.final, rtol=0, atol=0)
    norm.weight[:] = 3.0
    norm.bias[:] = 0.5
    torch.testing.assert_close(
        encode(normalized, *batch[:2]).annotations[0], 3 * after.annotations[0] + 0.5, rtol=0, atol=1e-12
    )
