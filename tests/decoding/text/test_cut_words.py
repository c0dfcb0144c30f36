"""Text that was cut before, as by subword-nmt: translations, prefixes and alignments have whole words."""

import numpy as np
import pytest

from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.vocabulary import word_model
from nmt.data.words import UNKNOWN_MARK, PieceWords, words_of_line
from nmt.decoding.text.alignment import soft_alignment
from nmt.decoding.text.required import Required, as_given, encoded_prefix, word_continuations
from nmt.decoding.text.unknown_words import replacements
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.symbols import UNKNOWN
from tests.decoding.conftest import CopyModel, random_translator, words_of_tokens
from tests.translating import translate

PIECES = ["run@@", "n@@", "ing", "dog", "a", "."]


@pytest.fixture(scope="module")
def cut() -> Subwords:
    return Subwords(word_model(PIECES, "@@"))


@pytest.fixture(scope="module")
def translator(cut: Subwords) -> Translator:
    return random_translator(Vocabularies(cut, cut), scale=3.0, longest_segment=60)


def test_a_line_is_cut_between_words_only(cut: Subwords) -> None:
    """A model that copies: a cut inside a word would leave a space in it."""
    copies = Translator([CopyModel(cut.size)], Vocabularies(cut, cut), longest_segment=4)
    line = "dog run@@ n@@ ing run@@ n@@ ing a dog run@@ ing ."
    ((best,),) = translate(copies, [line])
    assert best.text == "dog running running a dog runing ."
    assert [piece.removeprefix("▁") for piece in best.tokens] == line.split()


@pytest.mark.parametrize(
    ("text", "whole", "complete"),
    [
        ("a run@@ n@@ ing", "a running", True),
        ("a run@@ n@@", "a runn", False),
        ("dog .", "dog .", False),
        ("a  Run@@ ing", "a Runing", True),
        ("", "", False),
    ],
)
def test_prefixes_are_cut_too(cut: Subwords, text: str, whole: str, complete: bool) -> None:
    parts = cut.line_parts(text)
    assert encoded_prefix(text, cut) == Required(whole, cut.encode(text), complete, parts=parts)
    assert not bool(word_continuations(cut).any())  # after a whole word every piece begins another


def test_translations_begin_with_the_whole_words_of_their_prefixes(translator: Translator) -> None:
    lines, prefixes = ["a dog", "dog .", "a"], ["a run@@ n@@", "Zoë", ""]
    forced = list(translate(translator, lines, prefixes=prefixes, alignments=True, beam_size=3, max_length_ratio=1.0))
    for several, start in zip(forced, ["a runn", "Zoë", ""], strict=True):
        (best,) = several
        assert best.text.startswith(start)
        assert best.soft_alignment is not None
        assert best.soft_alignment.target_words == best.text.split()
        assert not any(word.endswith("@@") for word in best.text.split())
    assert forced[0][0].tokens[:3] == ["▁a", "▁run@@", "▁n@@"]


@pytest.mark.parametrize("joiner", ["", "@@"])
def test_an_unknown_word_at_the_end_of_a_prefix(joiner: str) -> None:
    subwords = Subwords(word_model(PIECES, joiner))
    prefix = encoded_prefix("a Zoë", subwords)
    assert prefix.tokens == [*subwords.encode("a"), UNKNOWN]
    assert as_given(f"a {UNKNOWN_MARK} dog .", prefix, subwords) == "a Zoë dog ."


def test_constraints_are_refused(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"`constraints` do not go with .* \(subwords\.joiner: '@@'\)"):
        translator.translate(["a dog"], constraints=["dog"])


def test_unknown_words_are_replaced_by_whole_ones(cut: Subwords) -> None:
    source = words_of_line("a run@@ ing Zo@@ ë .", cut)
    assert source == PieceWords(["a", "runing", "Zoë", "."], [0, 1, 1, 2, 2, 3], [0, 1, 1, 2, 2, 3])
    weights = np.zeros((4, 7), dtype=np.float32)
    weights[2] = [0.3, 0.2, 0.0, 0.2, 0.2, 0.1, 0.0]  # 0.4 for the two pieces of Zoë
    tokens = [*cut.encode("dog run@@"), UNKNOWN, *cut.encode(".")]
    text = cut.decode_marked(tokens, UNKNOWN_MARK)
    alignment = soft_alignment(weights, source, words_of_tokens(tokens, cut, mark=UNKNOWN_MARK), end_links="best")
    ((mark, source_word),) = replacements(text, text, alignment, {"Zoë": "Zoe"})
    assert mark.replaces is not None
    assert (text[slice(*mark.replaces)], mark.instead, source_word) == (f"run{UNKNOWN_MARK}", "Zoe", 2)
