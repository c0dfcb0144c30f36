"""Random words in the place of some that are read: which, how many, and which they become."""

from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, TrainingConfig, WordReplacement
from nmt.data.batch import make_batch
from nmt.models.seq2seq import build_model
from nmt.training.objective import training_loss
from nmt.training.word_replacement import replaced, with_replaced_words


def test_how_many_are_replaced_and_by_what() -> None:
    """Of 40,000 words 30% are drawn anew, of which one in 7 is the same: 25.7%, within 4 standard deviations."""
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
    one_side = with_replaced_words(batch, WordReplacement(source=0.99, target=0.0), sizes=(10**6, 10**9))
    assert torch.equal(one_side.target_input, batch.target_input)


def test_what_is_fed_goes_with_its_rows() -> None:
    batch = make_batch([[4], [5]], [[6], [7, 8]], np.arange(2))
    batch = batch._replace(fed=torch.tensor([[2, 9, 0], [2, 10, 11]]))
    assert [half.target_input.tolist() for half in batch.halves()] == [[[2, 9]], [[2, 10, 11]]]
    assert batch.to("cpu").doubled().target_input.tolist() == [[2, 9, 0], [2, 10, 11]] * 2
    assert batch.doubled().target_output.tolist() == [[6, 3, 0], [7, 8, 3]] * 2


@pytest.mark.parametrize("regularized", [{}, {"r_drop": {"weight": 5.0}}])
def test_what_the_model_reads_in_training(regularized: dict[str, Any]) -> None:
    """Nearly all of 60 words of each side are others, drawn anew every time; both passes of R-Drop read the same."""
    sizes = {"embedding_size": 2, "encoder": {"hidden_size": 2}, "decoder": {"hidden_size": 2}}
    model = build_model(ModelConfig.model_validate(sizes), source_size=500, target_size=500)
    reads: list[tuple[torch.Tensor, torch.Tensor]] = []
    model.register_forward_pre_hook(lambda _, inputs: reads.append((inputs[0], inputs[2])))
    config = TrainingConfig.model_validate({"word_replacement": {"source": 0.999, "target": 0.999}, **regularized})
    torch.manual_seed(2)
    batch = make_batch([[4] * 20] * 3, [[5] * 20] * 3, np.arange(3))
    for _ in range(2):
        training_loss(model, batch, config)
    for source, fed in reads:
        assert int((source[:3] != batch.source).sum()) > 57
        assert int((fed[:3] != batch.target_input).sum()) > 57
        assert len(source) == len(fed) == (6 if regularized else 3)
        assert torch.equal(source[3:], source[:3][: len(source) - 3])
        assert torch.equal(fed[3:], fed[:3][: len(fed) - 3])
    assert not torch.equal(reads[0][0], reads[1][0])
