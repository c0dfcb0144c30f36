"""Which word each piece belongs to, whatever the text and the subword model."""

import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.vocabulary import word_model
from nmt.data.words import UNKNOWN_MARK, PieceWords, parts_of_line, words_of_line, words_of_parts
from nmt.decoding.translator import Translator
from tests.decoding.conftest import TEXT, network, words_of_tokens
from tests.decoding.test_translator import STRANGE
from tests.translating import translate

KINDS = {
    "bpe": {"size": 71},
    "bytes": {"size": 330, "byte_fallback": True},
    "char": {"type": "char", "size": 40},
    "word": {"type": "word", "size": 20},
    "as it is": {"size": 71, "normalization": "identity"},
}
CUT = [word if len(word) < 4 else f"{word[:2]}@@ {word[2:]}" for line in TEXT for word in line.split()]
LISTED = {"listed": (" ".join(TEXT).split(), ""), "cut": (" ".join([*CUT, "@@"]).split(), "@@")}  # words and joiner
LINES = [
    " ".join(CUT[:7]),
    "fi@@ @@ eld @@ fi@@",
    "@@",
    "ru@@ Q ru@@ ru@@",
    *STRANGE,
    *TEXT,
    "\u00a8 a\u00a0b \u2026 \ufb01eld",
    "\x1c a\x1cb \x1c",
    "\u2581 \ufeff",
]


@pytest.fixture(scope="module", params=[*KINDS, *LISTED])
def subwords(request: pytest.FixtureRequest) -> Subwords:
    if request.param in LISTED:
        words, joiner = LISTED[request.param]
        return Subwords(word_model(dict.fromkeys(words), joiner))
    return Subwords.train(TEXT, settings=SubwordsConfig.model_validate(KINDS[request.param]))


def test_white_space_belongs_to_the_word_behind_it() -> None:
    assert words_of_parts("ab  c ", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]).places == [0, 0, 1, 1, 1]
    assert words_of_parts(" ", [(0, 0), (0, 1)]) == PieceWords([], [0, 0], [0, 0])


def test_a_part_may_stand_for_several_words() -> None:
    assert words_of_parts("ab c d ef", [(0, 2), (2, 6), (6, 9)]) == PieceWords(
        ["ab", "c", "d", "ef"], [0, 1, 3], [0, 2, 3]
    )


def test_pieces_of_a_line_and_of_what_is_written() -> None:
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(type="char", size=40))
    line = "A dog\u3000Q"
    assert words_of_line(line, subwords) == _words("A dog Q", [0, 0, 1, 1, 1, 1, 2, 2])
    tokens = subwords.encode(line)
    assert subwords.pieces(tokens) == ["▁", "A", "▁", "d", "o", "g", "▁", "<unk>"]
    assert words_of_tokens(tokens, subwords) == _words("A dog ⁇", [0, 0, 1, 1, 1, 1, 2, 2])
    tokens = subwords.encode("dQg")  # sentencepiece writes an unknown piece as a word of its own
    assert words_of_tokens(tokens, subwords) == _words("d ⁇ g", [0, 0, 1, 2])
    assert words_of_tokens(tokens, subwords, mark=UNKNOWN_MARK) == _words(f"d{UNKNOWN_MARK}g", [0, 0, 0, 0])
    assert words_of_tokens([], subwords) == _words("", [])


def _words(text: str, places: list[int]) -> PieceWords:
    """Of pieces that stand for a word or a part of one."""
    return PieceWords(text.split(), places, places)


@pytest.mark.parametrize("line", LINES)
def test_any_line(subwords: Subwords, line: str) -> None:
    tokens = subwords.encode(line)
    parts = parts_of_line(line, subwords)
    assert len(parts) == len(tokens)
    if parts:
        assert "".join(parts).split() == subwords.whole_words(line).split()
        assert "".join(parts) == line or subwords.joiner
    for mapping, text in (
        (words_of_line(line, subwords), subwords.whole_words(line)),
        (words_of_tokens(tokens, subwords), subwords.decode(tokens)),
        (words_of_tokens(tokens, subwords, mark="¤"), subwords.decode_marked(tokens, "¤")),
    ):
        assert mapping.words == text.split()
        assert len(mapping.places) == len(tokens)
        assert mapping.places == sorted(mapping.places)
        assert not tokens or not mapping.words or mapping.places[-1] < len(mapping.words)


UNSPACED = [
    "我喜欢3只老狗。",
    "猫は犬を3匹好きです!学生は鳥を見ました。",
    "㍿ﾄﾞｯｸﾞ“Docker”的iPhone 15手机，好。",  # normalization makes it longer, and shorter
    "ใน สวนณะและกำลังเล่น",
    "The dog は 犬",
]


def test_finer_words_are_what_pieces_stand_for() -> None:
    text = "猫は犬 3匹 dogs好き"
    spans = [(0, 2), (2, 3), (3, 6), (6, 8), (8, 9), (9, 11), (11, 11), (11, 12), (12, 13)]
    expected = PieceWords(
        ["猫は", "犬", "3匹", "dogs", "好", "き"], [0, 1, 2, 3, 3, 3, 4, 4, 5], [0, 1, 2, 3, 3, 3, 4, 4, 5]
    )
    assert words_of_parts(text, spans, finer=True) == expected
    assert words_of_parts("ab 犬", [(0, 4)], finer=True) == PieceWords(["ab", "犬"], [0], [1])
    assert words_of_parts(" ", [(0, 1)], finer=True) == PieceWords([], [0], [0])
    spaced = ("the old dog.", [(0, 4), (4, 10), (10, 11), (11, 12)])
    assert words_of_parts(*spaced, finer=True) == words_of_parts(*spaced)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_finer_words_are_aligned(kind: str, replaced: bool) -> None:
    """With every subword model, in segments, after prefixes as they were given, and with unknown words replaced."""
    settings = SubwordsConfig.model_validate({**KINDS[kind], "size": {"bytes": 390, "word": 12}.get(kind, 130)})
    subwords = Subwords.train([*UNSPACED, *TEXT] * 2, settings=settings)
    model = network(source_size=subwords.size, target_size=subwords.size)
    translator = Translator([model], Vocabularies(subwords, subwords), longest_segment=8)
    options = {
        "beam_size": 2,
        "n_best": 2,
        "max_length_ratio": 1.0,
        "replace_unknown": {"dog": "老狗"} if replaced else None,
    }
    prefixes = ["", "猫は ﾄﾞ", "犬", "", "㍿鵺 ab"]
    finer = 0
    for line, several in zip(
        UNSPACED, translate(translator, UNSPACED, alignments=True, prefixes=prefixes, **options), strict=True
    ):
        for best in several:
            links = best.finer_alignment
            assert links is not None
            assert "".join(links.source_words) == "".join(line.split())
            assert "".join(links.target_words) == "".join(best.text.split())
            assert [target for _, target in links.links] == list(range(len(links.target_words)))
            assert {source for source, _ in links.links} <= set(range(len(links.source_words)))
            assert len(best.alignment) == len(best.soft_alignment.target_words)  # as without
            finer += len(links.target_words) > len(best.text.split())
    assert finer or kind == "word"


def test_scripts_with_spaces_have_no_finer_words(vocabularies: Vocabularies) -> None:
    model = network(source_size=vocabularies.source.size, target_size=vocabularies.target.size)
    ((best, *_),) = translate(Translator([model], vocabularies), ["A dog"], alignments=True)
    assert best.alignment
    assert best.finer_alignment is None
