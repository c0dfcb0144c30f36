"""Word alignments, on weights and links small enough to check by hand."""

import pytest
import torch

from nmt.config.schema import ModelConfig
from nmt.data.batching import make_batch
from nmt.decoding.text.alignment import (
    align,
    attention_weights,
    describe_alignment,
    hard_alignment,
    merge_to_words,
    words,
)
from nmt.evaluation.alignments import pharaoh
from nmt.models.seq2seq import Seq2Seq, build_model

SOURCE = ["▁the", "▁hou", "se"]
TARGET = ["▁Ha", "us", "▁da", "▁!"]
WEIGHTS = torch.tensor(
    [
        [0.5, 0.3, 0.2],
        [0.1, 0.2, 0.7],
        [0.8, 0.1, 0.1],
        [0.2, 0.4, 0.3],
    ]
)


@pytest.fixture
def model() -> Seq2Seq:
    torch.manual_seed(3)
    sizes = {"embedding_size": 5, "encoder": {"hidden_size": 3}, "decoder": {"hidden_size": 7, "dropout": 0.5}}
    return build_model(ModelConfig.model_validate(sizes), source_size=13, target_size=17)


def test_words_are_joined_pieces() -> None:
    assert words(SOURCE) == ["the", "house"]
    assert words(["▁", "a", "b", "▁", "c"]) == ["ab", "c"]
    assert words(["no", "▁mark"]) == ["no", "mark"]
    assert words([]) == []


def test_source_pieces_are_summed_and_target_pieces_averaged() -> None:
    merged = merge_to_words(WEIGHTS, SOURCE, TARGET)
    expected = torch.tensor([[0.3, 0.7], [0.8, 0.2], [0.2, 0.7]])
    torch.testing.assert_close(merged, expected)


def test_each_target_word_is_linked_to_the_source_word_it_attends_to_most() -> None:
    links = hard_alignment(merge_to_words(WEIGHTS, SOURCE, TARGET))
    assert links == [(1, 0), (0, 1), (1, 2)]
    assert pharaoh(links) == "1-0 0-1 1-2"


def test_nothing_to_align() -> None:
    assert hard_alignment(torch.zeros(0, 3)) == []
    assert hard_alignment(merge_to_words(torch.zeros(2, 0), [], ["▁a", "▁b"])) == []
    assert pharaoh([]) == ""


def test_a_readable_alignment() -> None:
    described = describe_alignment(["the", "house"], ["Haus", "da", "!"], [(1, 0), (0, 0), (1, 2)])
    assert described.splitlines() == ["Haus ← the house", "da   ←", "!    ← house"]


def test_attention_belongs_to_the_step_that_predicts_the_piece(model: Seq2Seq) -> None:
    source, target = [4, 5, 6, 7], [8, 9, 10]
    weights = attention_weights(model, source, target)
    assert weights.shape == (3, 4)
    model.eval()
    pair = make_batch([source], [target], torch.zeros(1).long().numpy())
    full = model(pair.source, pair.source_lengths, pair.target_input).weights[0].detach()
    assert full.shape == (4, 5)  # with END on both sides
    torch.testing.assert_close(weights, full[:3, :4])
    # the weights of the first piece do not depend on any piece of the target
    torch.testing.assert_close(attention_weights(model, source, [11])[0], weights[0])


def test_the_model_s_mode_is_left_as_it_was(model: Seq2Seq) -> None:
    model.train()
    assert torch.equal(attention_weights(model, [4, 5], [6]), attention_weights(model, [4, 5], [6]))  # no dropout
    assert model.training


def test_from_ids_and_pieces_to_links(model: Seq2Seq) -> None:
    links = align(model, ([4, 5, 6], SOURCE), ([7, 8, 9, 10], TARGET))
    assert [target for _, target in links] == [0, 1, 2]
    assert all(source in (0, 1) for source, _ in links)


def test_a_word_that_attends_to_nothing_has_no_link() -> None:
    assert hard_alignment(torch.tensor([[0.2, 0.7], [0.0, 0.0], [0.5, 0.5]])) == [(1, 0), (0, 2)]
