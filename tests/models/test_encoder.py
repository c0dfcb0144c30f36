"""The order of reading; the equations are in tests/oracle."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.models.encoder import Encoded
from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]


def encode(model: Seq2Seq, source: Tensor, lengths: Tensor) -> Encoded:
    encoded: Encoded = model.encoder(model.source_embedding(source), lengths)
    return encoded


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
