"""Random words in the place of some that are read: which, how many, and which they become."""

import numpy as np
import pytest
import torch

from nmt.config.schema import WordReplacement
from nmt.data.batching import make_batch
from nmt.training.word_replacement import replaced, with_replaced_words


def test_how_many_are_replaced_and_by_what() -> None:
    """Of 40,000 words 30 % are drawn anew, of which one in 7 is the same: 25.7 %, within 4 standard deviations."""
    torch.manual_seed(0)
    words = torch.randint(4, 11, (200, 200))
    others = replaced(words, 0.3, size=11)
    share, expected = float((others != words).double().mean()), 0.3 * 6 / 7
    assert share == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 40_000) ** 0.5)
    became = torch.bincount(others[others != words], minlength=11)
    assert became[:4].tolist() == [0, 0, 0, 0]
    assert became[4:].double().numpy() / became.sum().item() == pytest.approx(np.full(7, 1 / 7), abs=0.015)


def test_special_symbols_and_what_is_predicted_stay() -> None:
    """An unknown word, too; nearly all others are replaced, of both sides by themselves."""
    torch.manual_seed(1)
    batch = make_batch([[4, 1, 4], [4]], [[4, 4], [1, 4, 4, 4]], np.arange(2))
    changed = with_replaced_words(batch, WordReplacement(source=0.99, target=0.99), sizes=(10**6, 10**9))
    assert torch.equal(changed.source != batch.source, batch.source == 4)
    assert torch.equal(changed.target_input != batch.target_input, batch.target_input == 4)
    assert int(changed.source.max()) < 10**6 < int(changed.target_input.max())
    assert torch.equal(changed.target_output, batch.target_output)
    one_side = with_replaced_words(batch, WordReplacement(source=0.99), sizes=(10**6, 10**9))
    assert torch.equal(one_side.target_input, batch.target_input)


def test_what_is_fed_goes_with_its_rows() -> None:
    batch = make_batch([[4], [5]], [[6], [7, 8]], np.arange(2))
    batch = batch._replace(fed=torch.tensor([[2, 9, 0], [2, 10, 11]]))
    assert [half.target_input.tolist() for half in batch.halves()] == [[[2, 9]], [[2, 10, 11]]]
    assert batch.to("cpu").doubled().target_input.tolist() == [[2, 9, 0], [2, 10, 11]] * 2
    assert batch.doubled().target_output.tolist() == [[6, 3, 0], [7, 8, 3]] * 2
