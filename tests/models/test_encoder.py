"""The order of reading; the equations are in tests/oracle."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

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
