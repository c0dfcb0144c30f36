"""Word alignments for training: their links between pieces, and the mistakes that are told before it begins."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data.alignments import check_alignments, piece_links
from nmt.data.subwords import Subwords
from nmt.data.words import PieceWords, words_of_line
from nmt.decoding.text.alignment import soft_alignment
from nmt.errors import UserError

SOURCE = PieceWords(["the", "house", "of", "ours"], [0, 1, 1, 3, 3, 3], [0, 1, 1, 3, 3, 3])  # "of" has no piece
TARGET = PieceWords(["unser", "Haus", "!"], [0, 0, 1, 2], [0, 0, 1, 2])
LINES = ["The old man's dog ran", "a\u00a0b \ufb01eld … x", "  two   words ", "¿ 😀 zu\u0308rich", "ONE"]
KINDS = {
    "bpe": {"size": 71},
    "bytes": {"size": 330, "byte_fallback": True},
    "char": {"type": "char", "size": 40},
    "word": {"type": "word", "size": 9},
    "lowercase": {"size": 61, "lowercase": True},
}


def test_shares_by_hand() -> None:
    """Haus has two source words: the has one piece, house two. unser has ours, with three; of has none; ! no link."""
    links = list(piece_links([(1, 1), (3, 0), (0, 1), (2, 0)], SOURCE.places, TARGET.places))
    thirds = [(source, 1 / 3) for source in (3, 4, 5)]
    assert links == [
        *((0, source, share) for source, share in thirds),
        *((1, source, share) for source, share in thirds),
        (2, 0, 1 / 2),
        (2, 1, 1 / 4),
        (2, 2, 1 / 4),
    ]
    assert list(piece_links([], SOURCE.places, TARGET.places)) == []
    assert list(piece_links([(2, 2)], SOURCE.places, TARGET.places)) == []


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_merged_to_words_they_are_the_links(settings: dict[str, object]) -> None:
    """Attention that equals A gives, by the rule that merges attention, each link an equal share of its target word."""
    subwords = Subwords.train([*LINES, "the dog ran a field"] * 3, settings=SubwordsConfig.model_validate(settings))
    chance = random.Random(3)
    for source_line in LINES:
        for target_line in LINES:
            source, target = (words_of_line(line, subwords) for line in (source_line, target_line))
            every = [(s, t) for s in range(len(source.words)) for t in range(len(target.words))]
            links = [link for link in every if chance.random() < 0.4]
            attention = np.zeros((len(target.places), len(source.places)))
            for target_piece, source_piece, share in piece_links(links, source.places, target.places):
                assert attention[target_piece, source_piece] == 0
                attention[target_piece, source_piece] = share
            sums = attention.sum(1)
            assert all(np.isclose(total, 0) or np.isclose(total, 1) for total in sums)
            weights = np.pad(attention, ((0, 0), (0, 1)))  # none goes to the end of the source
            merged = soft_alignment(weights, source, target, end_links="none").weights[:, :-1]
            expected = np.zeros_like(merged)
            for s, t in links:
                if s in source.places and t in target.places:
                    expected[t, s] = 1
            counts = expected.sum(1, keepdims=True)
            np.testing.assert_allclose(merged, expected / np.maximum(counts, 1), atol=1e-12)


# ------------------------------------------------------------------------------------------------------------- the file


def files(folder: Path, alignments: str) -> tuple[tuple[Path, Path], Path]:
    for name, text in (("a.en", "one two three\n\nfour\n"), ("a.de", "eins zwei\nx\nvier fünf sechs\n")):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "a.align").write_text(alignments, encoding="utf-8")
    return (folder / "a.en", folder / "a.de"), folder / "a.align"


def mistakes(folder: Path, alignments: str) -> list[str]:
    pair, path = files(folder, alignments)
    with pytest.raises(UserError) as error:
        check_alignments(pair, path)
    return [message.removeprefix(f"{path}, ") for message in error.value.messages]


@pytest.mark.parametrize("alignments", ["2-1 0-0\n\n0-2\n", "\n\n\n", "0-0  0-0 \n\n0-1"])
def test_links_of_words_that_there_are(tmp_path: Path, alignments: str) -> None:
    pair, path = files(tmp_path, alignments)
    check_alignments(pair, path)
    packed = tmp_path / "a.align.gz"
    packed.write_bytes(gzip.compress(alignments.encode()))
    check_alignments(pair, packed)


def test_mistakes_are_told_with_their_lines(tmp_path: Path) -> None:
    rest = "expected source-target, counted from 0"
    assert mistakes(tmp_path, "0-0 0:1\n0-0\n0-3\n") == [
        "line 1: '0:1' is not a link; expected source-target, such as 0-2",
        f"line 2: 0-0 is beyond the words of the pair, 0 of the source and 1 of the target; {rest}",
        f"line 3: 0-3 is beyond the words of the pair, 1 of the source and 3 of the target; {rest}",
    ]
    assert mistakes(tmp_path, "0p0\n\n\n") == ["line 1: '0p0' is not a link; expected source-target, such as 0-2"]


def told_of_spaces(folder: Path, source: str, target: str, alignments: str = "0-0") -> list[str]:
    """What is told of one pair of lines."""
    for name, text in (("a.fr", source), ("a.en", target), ("a.align", alignments)):
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    try:
        check_alignments((folder / "a.fr", folder / "a.en"), folder / "a.align")
    except UserError as error:
        return [message.replace(f"{folder}/", "") for message in error.messages]
    return []


def test_white_space_at_which_aligners_differ(tmp_path: Path) -> None:
    """To fast_align, "Bonjour\u00a0!" is word 0 and "Ça" word 1; to `str.split()`, "Ça" is word 2."""
    (message,) = told_of_spaces(tmp_path, "Bonjour\u00a0! Ça va", "Hello ! How", "0-0 1-2")
    assert message == (
        "a.align, line 1: the links may count other words: a.fr has U+00A0 (NO-BREAK SPACE) in this line, which ends a "
        "word to some aligners, but not to fast_align; put a space in its place, and align the text again"
    )
    assert told_of_spaces(tmp_path, "a\u00a0b \u00a0 c", "c", "1-0")  # three words for both, but not the same
    (message,) = told_of_spaces(tmp_path, "Bonjour", "Hello \u2028 you", "0-9")  # nor is anything told of 9
    assert "a.en has U+2028 (LINE SEPARATOR) in" in message
    for space in "\u202f\u3000\u2009\x0b\x1c\x85":
        assert f"a.fr has U+{ord(space):04X} " in told_of_spaces(tmp_path, f"a{space}b", "c")[0]


@pytest.mark.parametrize(
    ("source", "alignments"),
    [
        ("Bonjour\u00a0! Ça", ""),  # without links
        ("Bonjour ! Ça\u00a0", "2-0"),  # at an end of a word, where it shifts nothing
        ("\u00a0Bonjour \u00a0! Ça", "2-0"),
        (" Bonjour\t!  Ça", "2-0"),
        ("Bon\u200bjour\ufeff", "0-0"),  # no white space to anybody
    ],
)
def test_white_space_that_makes_no_difference(tmp_path: Path, source: str, alignments: str) -> None:
    assert told_of_spaces(tmp_path, source, "Hello", alignments) == []


@pytest.mark.parametrize(("alignments", "lines"), [("", "0 lines"), ("\n", "1 line"), ("0-0\n\n0-0\n\n\n", "5 lines")])
def test_another_number_of_lines(tmp_path: Path, alignments: str, lines: str) -> None:
    (message,) = mistakes(tmp_path, alignments)
    assert f"a.align has {lines}, but {tmp_path / 'a.en'} has 3; line i must have the links of pair i" in message
