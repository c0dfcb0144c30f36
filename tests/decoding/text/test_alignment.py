"""Word alignments, on weights and links small enough to check by hand."""

import numpy as np
import pytest

from nmt.config.schema import EndLinks, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.data.words import PieceWords, words_of_line
from nmt.decoding.text.alignment import (
    Block,
    SoftAlignment,
    WordScores,
    in_words_of,
    joined,
    joined_scores,
    soft_alignment,
)
from nmt.pharaoh import Link, pharaoh

SOURCE = PieceWords(["the", "house"], [0, 1, 1], [0, 1, 1])  # pieces: the hou se
TARGET = PieceWords(["Haus", "da", "!"], [0, 0, 1, 2], [0, 0, 1, 2])  # Ha us da !
LETTERS = PieceWords(["a", "b", "c"], [0, 1, 2], [0, 1, 2])
NOTHING = PieceWords([], [], [])
WEIGHTS = np.array(  # the last column is the end of the source
    [
        [0.4, 0.3, 0.2, 0.1],
        [0.2, 0.1, 0.6, 0.1],
        [0.8, 0.1, 0.1, 0.0],
        [0.1, 0.2, 0.1, 0.6],
    ]
)


def test_source_pieces_are_summed_and_target_pieces_averaged() -> None:
    alignment = soft_alignment(WEIGHTS, SOURCE, TARGET, end_links="last")
    assert (alignment.source_words, alignment.target_words) == (["the", "house"], ["Haus", "da", "!"])
    expected = [[0.3, 0.6, 0.1], [0.8, 0.2, 0.0], [0.1, 0.3, 0.6]]
    np.testing.assert_allclose(alignment.weights, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("end_links", "links"),
    [("last", "1-0 0-1 1-2"), ("none", "1-0 0-1"), ("best", "1-0 0-1 1-2")],
)
def test_each_target_word_is_linked_to_the_source_word_it_attends_to_most(end_links: EndLinks, links: str) -> None:
    assert pharaoh(soft_alignment(WEIGHTS, SOURCE, TARGET, end_links=end_links).links) == links


@pytest.mark.parametrize(
    ("end_links", "links"),
    [("last", [(2, 0), (0, 1), (2, 2)]), ("none", [(0, 1)]), ("best", [(1, 0), (0, 1)])],
)
def test_a_word_that_attends_to_the_end(end_links: EndLinks, links: list[Link]) -> None:
    """More than to any word, though less than to all together; as much as to a word is not more."""
    source = PieceWords(["the", "house", "fell", "down"], [0, 1, 2], [0, 1, 2])  # "down" is of the next segment
    weights = np.array([[0.1, 0.3, 0.2, 0.4], [0.4, 0.1, 0.1, 0.4], [0.0, 0.0, 0.0, 1.0]])
    assert soft_alignment(weights, source, LETTERS, end_links=end_links).links == links


def test_nothing_to_align() -> None:
    for weights, source, target in (
        (np.zeros((0, 4)), SOURCE, NOTHING),
        (np.ones((4, 1)), NOTHING, TARGET),
        (None, NOTHING, NOTHING),
        (None, PieceWords(["\ufeff"], [], []), PieceWords(["\ufeff"], [], [])),
    ):
        alignment = soft_alignment(weights, source, target, end_links="last")
        assert alignment.weights.shape == (len(target.words), len(source.words) + 1)
        assert alignment.links == []
    assert pharaoh([]) == ""


def test_a_word_that_attends_to_nothing_has_no_link() -> None:
    weights = np.array([[0.2, 0.7, 0.0], [0.0, 0.0, 0.0], [0.4, 0.4, 0.2]])
    source = PieceWords(["a", "b"], [0, 1], [0, 1])
    assert soft_alignment(weights, source, LETTERS, end_links="last").links == [(1, 0), (0, 2)]


def test_a_target_piece_may_stand_for_several_words() -> None:
    weights = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    source, target = PieceWords(["a", "b"], [0, 1], [0, 1]), PieceWords(["w", "x", "y", "z"], [0, 1, 3], [1, 1, 3])
    alignment = soft_alignment(weights, source, target, end_links="best")
    assert alignment.weights.tolist() == [[0.25, 0.75, 0.0], [0.625, 0.375, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]
    assert alignment.links == [(1, 0), (0, 1), (0, 3)]


def test_parts_of_a_line_are_put_together() -> None:
    words = ["the", "house", "fell"]
    parts = [
        SoftAlignment(words, ["Haus"], [Block(np.array([[0.1, 0.8, 0.1]]), 0)], [(1, 0)]),
        SoftAlignment(words, ["fiel", "um"], [Block(np.array([[0.3, 0.7], [0.4, 0.6]]), 2)], [(2, 1)]),
    ]
    whole = in_words_of(joined(parts), "Haus fiel um", "last")
    assert (whole.source_words, whole.target_words) == (words, ["Haus", "fiel", "um"])
    assert whole.links == [(1, 0), (2, 2)]
    expected = np.array([[0.1, 0.8, 0.0, 0.1], [0, 0, 0.3, 0.7], [0, 0, 0.4, 0.6]], dtype=np.float32)
    assert np.array_equal(whole.weights, expected)
    assert SoftAlignment([], [], [], []).weights.shape == (0, 1)


def test_words_of_two_parts_without_a_space_between_them_are_one() -> None:
    """As Chinese sentences are, which stand for one word each."""
    words = ["A", "dog.", "A", "cat."]
    parts = [
        SoftAlignment(
            words, ["狗", "。"], [Block(np.array([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]]), 0)], [(0, 0), (1, 1)]
        ),
        SoftAlignment(words, ["猫。"], [Block(np.array([[0.0, 0.75, 0.25]]), 2)], [(3, 0)]),
    ]
    whole = in_words_of(joined(parts), "狗 。猫。", "best")
    assert (whole.target_words, whole.links) == (["狗", "。猫。"], [(0, 0), (1, 1)])
    assert whole.weights.tolist() == [[0.5, 0.25, 0.0, 0.0, 0.25], [0.0, 0.375, 0.0, 0.375, 0.25]]
    assert joined(parts).target_words == ["狗", "。", "猫。"]
    scores = joined_scores([WordScores(["狗", "。"], [-1, -2], -3), WordScores(["猫。"], [-4], -5)], "狗 。猫。")
    assert scores == WordScores(["狗", "。猫。"], [-1, -6], -8)


def test_other_words_of_parts_keep_their_blocks_and_links() -> None:
    """Which is where the memory of a long line stays small, and where the end of a part is that of its own words."""
    words = ["Dogs.", "A", "dog.", "A", "cat."]
    ends = np.array([[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    parts = [
        SoftAlignment(words, ["x"], [Block(np.array([[0.25, 0.75]]))], [(0, 0)]),
        SoftAlignment(words, ["狗", "。"], [Block(ends, 1)], [(2, 0), (2, 1)]),
        SoftAlignment(words, ["。"], [Block(ends[1:], 3)], [(4, 0)]),
    ]
    whole = in_words_of(joined(parts), "x 狗 。。", "last")
    assert whole.links == [(0, 0), (2, 1), (2, 2)]
    assert [block.weights.shape for block in whole.blocks] == [(1, 2), (1, 3), (1, 5)]
    assert whole.weights.tolist() == [[0.25, 0, 0, 0, 0, 0.75], [0, 0.25, 0.25, 0, 0, 0.5], [0, 0, 0.5, 0, 0.5, 0]]


def test_a_part_of_a_line_has_links_between_the_words_of_the_line() -> None:
    """Its block has the columns of its own words only, so that the memory of a long line stays small."""
    line = PieceWords(["the", "house", "fell", "down"], [0, 1, 1, 2, 3], [0, 1, 1, 2, 3])
    weights = np.array([[0.25, 0.5, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5]])
    target = PieceWords(["fiel", "um"], [0, 1], [0, 1])
    alignment = soft_alignment(weights, line.part(2, 3), target, end_links="last")
    ((block, first),) = alignment.blocks
    assert (first, block.tolist()) == (1, weights.tolist())
    assert alignment.links == [(2, 0), (3, 1)]
    assert alignment.weights.tolist() == [[0.0, 0.25, 0.5, 0.125, 0.125], [0.0, 0.0, 0.25, 0.25, 0.5]]


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_an_alignment_of_words_does_not_depend_on_the_pieces(kind: str) -> None:
    """Every piece of a word attends to the same word, whatever the pieces are."""
    subwords = Subwords.train(["the old house", "das alte Haus"], settings=SubwordsConfig(type=kind, size=30))
    source, target = (words_of_line(line, subwords) for line in ("the old house", "das alte Haus"))
    weights = np.zeros((len(target.places), len(source.places) + 1))
    for row, place in enumerate(target.places):
        weights[row, [column for column, other in enumerate(source.places) if other == 2 - place]] = 0.1
    assert soft_alignment(weights, source, target, end_links="last").links == [(2, 0), (1, 1), (0, 2)]
