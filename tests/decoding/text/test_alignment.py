"""Word alignments, on weights and links small enough to check by hand."""

import pytest
import torch

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.data.words import PieceWords, words_of_line
from nmt.decoding.text.alignment import SoftAlignment, joined, soft_alignment
from nmt.pharaoh import pharaoh

SOURCE = PieceWords(["the", "house"], [0, 1, 1], [0, 1, 1])  # pieces: the hou se
TARGET = PieceWords(["Haus", "da", "!"], [0, 0, 1, 2], [0, 0, 1, 2])  # Ha us da !
NOTHING = PieceWords([], [], [])
WEIGHTS = torch.tensor(
    [
        [0.5, 0.3, 0.2],
        [0.1, 0.2, 0.7],
        [0.8, 0.1, 0.1],
        [0.2, 0.4, 0.3],
    ]
)


def test_source_pieces_are_summed_and_target_pieces_averaged() -> None:
    alignment = soft_alignment(WEIGHTS, SOURCE, TARGET)
    assert alignment[:2] == (["the", "house"], ["Haus", "da", "!"])
    torch.testing.assert_close(alignment.weights, torch.tensor([[0.3, 0.7], [0.8, 0.2], [0.2, 0.7]]))


def test_each_target_word_is_linked_to_the_source_word_it_attends_to_most() -> None:
    links = soft_alignment(WEIGHTS, SOURCE, TARGET).links
    assert links == [(1, 0), (0, 1), (1, 2)]
    assert pharaoh(links) == "1-0 0-1 1-2"


def test_nothing_to_align() -> None:
    for weights, source, target in (
        (torch.zeros(0, 3), SOURCE, NOTHING),
        (torch.zeros(4, 0), NOTHING, TARGET),
        (None, NOTHING, NOTHING),
        (None, PieceWords(["\ufeff"], [], []), PieceWords(["\ufeff"], [], [])),
    ):
        alignment = soft_alignment(weights, source, target)
        assert alignment.weights.shape == (len(target.words), len(source.words))
        assert alignment.links == []
    assert pharaoh([]) == ""


def test_a_word_that_attends_to_nothing_has_no_link() -> None:
    weights = torch.tensor([[0.2, 0.7], [0.0, 0.0], [0.5, 0.5]])
    assert SoftAlignment(["a", "b"], ["c", "d", "e"], weights).links == [(1, 0), (0, 2)]


def test_parts_of_a_line_are_put_together() -> None:
    words = ["the", "house", "fell"]
    parts = [
        SoftAlignment(words, ["Haus"], torch.tensor([[0.1, 0.8, 0.0]])),
        SoftAlignment(words, ["fiel", "um"], torch.tensor([[0.0, 0.2, 0.3], [0.0, 0.0, 0.4]])),
    ]
    assert joined(parts)[:2] == (words, ["Haus", "fiel", "um"])
    assert joined(parts).links == [(1, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_an_alignment_of_words_does_not_depend_on_the_pieces(kind: str) -> None:
    """Every piece of a word attends to the same word, whatever the pieces are."""
    subwords = Subwords.train(["the old house", "das alte Haus"], settings=SubwordsConfig(type=kind, size=30))
    source, target = (words_of_line(line, subwords) for line in ("the old house", "das alte Haus"))
    weights = torch.zeros(len(target.places), len(source.places))
    for row, place in enumerate(target.places):
        weights[row, [column for column, other in enumerate(source.places) if other == 2 - place]] = 0.1
    assert soft_alignment(weights, source, target).links == [(2, 0), (1, 1), (0, 2)]
