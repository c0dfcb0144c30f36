"""What training and search rely on, for every two of a decoder, a score, and a scope that go together: padding has no
weight and is not read, a sentence does not notice its neighbors, and search may stop, copy, and reorder a state at any
step.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.seq2seq import Seq2Seq
from tests.models.conftest import COMBINATIONS, EVERY_TWO_PARTS

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]


@pytest.fixture(scope="module", params=EVERY_TWO_PARTS)
def combination(request: pytest.FixtureRequest) -> Changes:
    return COMBINATIONS[request.param]


@pytest.fixture(scope="module")
def model(make_model: MakeModel, combination: Changes) -> Seq2Seq:
    return make_model(**combination)


@torch.no_grad()
def test_padding(model: Seq2Seq, batch: Batch, combination: Changes) -> None:
    """Weights are exactly 0 at padding, never negative, and of the sum that the scope promises; other ids at padding
    change no bit."""
    source, lengths, target_input = batch
    together = model(*batch)
    weights, sums = together.weights, together.weights.sum(-1)
    assert (weights >= 0).all()
    for row, length in enumerate(lengths.tolist()):
        assert not weights[row, :, length:].any()
    attention = combination["attention"]
    if attention["score"] == "none":
        assert not weights.any()
    elif attention["scope"] == "local-p" and not attention["renormalize"]:
        assert (sums[:2] < 1).all()
        assert (sums[2] == 1).all()  # the sentence of one token: p_t is that token, where the Gaussian is 1
    else:
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-12)
    other = source.masked_fill(source == 0, 7)
    assert not torch.equal(other, source)
    again = model(other, lengths, target_input)
    assert torch.equal(again.vectors, together.vectors)
    assert torch.equal(again.weights, together.weights)


@torch.no_grad()
def test_a_mask_that_is_not_there_is_true_everywhere(model: Seq2Seq, batch: Batch) -> None:
    """Where nothing is padded there is none, and nothing depends on it."""
    longest = batch[1].argmax().repeat(2)
    bare = model.start(batch[0][longest], batch[1][longest])
    assert bare.memory.mask is None
    masked = bare._replace(memory=bare.memory._replace(mask=torch.ones_like(batch[0][longest], dtype=torch.bool)))
    for tokens in (torch.tensor([2, 2]), torch.tensor([5, 9])):
        log_probabilities, bare = model.step(tokens, bare)
        expected, masked = model.step(tokens, masked)
        torch.testing.assert_close(log_probabilities, expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_select_expands_reorders_and_drops(model: Seq2Seq, batch: Batch) -> None:
    """A beam of 2 is made, reordered, and the middle sentence dropped; each row goes on like a sentence of its own.

    Two words are read before the selection, so that what a score remembers differs between the rows.
    """
    source, lengths, _ = batch
    state = model.start(source, lengths).select(torch.tensor([[0, 0], [1, 1], [2, 2]]))
    assert state.memory.values.size(0) == 3  # the memory is not copied a hypothesis
    for tokens in ([2, 9, 2, 9, 2, 9], [4, 8, 5, 5, 7, 6]):
        _, state = model.step(torch.tensor(tokens), state)
    state = state.select(torch.tensor([[1, 0], [5, 5]]))
    for tokens in ([10, 11, 12, 13], [14, 15, 16, 17]):
        log_probabilities, state = model.step(torch.tensor(tokens), state)
    sentences, histories = [0, 0, 2, 2], [[9, 8, 10, 14], [2, 4, 11, 15], [9, 6, 12, 16], [9, 6, 13, 17]]
    alone = model.start(source[sentences], lengths[sentences])
    for of_step in torch.tensor(histories).unbind(1):
        expected, alone = model.step(of_step, alone)
    torch.testing.assert_close(log_probabilities, expected, rtol=0, atol=1e-12)
