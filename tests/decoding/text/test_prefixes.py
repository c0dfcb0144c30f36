"""Forced prefixes: what of a text is forced, and what the translator does with it."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pytest
import torch

from nmt.config.schema import SamplingConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.words import UNKNOWN_MARK, parts_of_line, words_of_line
from nmt.decoding.forced import forced_decoding
from nmt.decoding.text.alignment import Weights
from nmt.decoding.text.lines import chunks_with
from nmt.decoding.text.required import Required, as_given, encoded_prefix, word_continuations
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from nmt.symbols import UNKNOWN
from tests.decoding.conftest import TEXT, random_translator
from tests.translating import translate

GIVEN = ["An old man", "", "dancing!", "The", "Zo\u00eb A", "A dog runs across the"]


@pytest.fixture(scope="module")
def translator(vocabularies: Vocabularies) -> Translator:
    """A random network in float64."""
    return random_translator(vocabularies, scale=3.0, longest_segment=60)


@pytest.fixture(scope="module")
def forgetful(vocabularies: Vocabularies) -> Translator:
    """The same, but that it likes to write unknown words."""
    translator = random_translator(vocabularies, scale=3.0, longest_segment=60)
    with torch.no_grad():
        translator.models[0].output_weight[UNKNOWN] *= 6
    return translator


def texts(translations: list[list[Translation]]) -> list[list[str]]:
    return [[translation.text for translation in several] for several in translations]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("A dog", True),
        ("3", True),
        ("e\u0301", True),  # a letter with its accent as a mark
        ("A dog ", True),
        ("A dog.", False),
        ("A well-", False),
        ("He says: \u201c", False),
        ("\u72ac", False),  # Chinese has no spaces between words
        ("\u30c9\u30c3\u30b0", False),
        ("", False),
        ("  ", False),
    ],
)
def test_whether_the_last_word_is_complete(vocabularies: Vocabularies, text: str, complete: bool) -> None:
    """Of the text without the space around it, which its reader takes away."""
    prefix = encoded_prefix(text.strip(), vocabularies.target)
    target = vocabularies.target
    assert prefix == Required(text.strip(), target.encode(text), complete, parts=parts_of_line(text.strip(), target))


def test_the_pieces_that_make_a_word_longer() -> None:
    text = ["A dog, a dogs' dog; 12 dogs \u72ac\u72ac"]
    subwords = Subwords.train(text, settings=SubwordsConfig(byte_fallback=True, size=282))
    continuing = word_continuations(subwords).tolist()
    pieces = dict(zip(subwords.pieces(range(subwords.size)), continuing, strict=True))
    assert {name: pieces[name] for name in ("s", "d", "1", "<0x41>")} == dict.fromkeys(("s", "d", "1", "<0x41>"), True)
    assert pieces["<unk>"]
    others = (",", "'", ";", "\u2581", "\u2581dog", "\u72ac", "</s>")
    assert {name: pieces[name] for name in others} == dict.fromkeys(others, False)


def test_the_text_is_as_it_was_given() -> None:
    subwords = Subwords.train(["a dog runs"], settings=SubwordsConfig(lowercase=True, size=14))
    prefix = encoded_prefix("A Dog\u00ff", subwords)
    text = f"a dog{UNKNOWN_MARK} runs"
    assert text == subwords.decode_marked([*prefix.tokens, *subwords.encode("runs")], UNKNOWN_MARK)
    assert as_given(text, prefix, subwords) == "A Dog\u00ff runs"
    dots = encoded_prefix("a\u00a8dog", subwords)  # which is normalized to a space and a mark
    spelled = subwords.decode_marked(dots.tokens, UNKNOWN_MARK)
    assert spelled == f"a {UNKNOWN_MARK}dog"
    assert as_given(spelled, dots, subwords) == "a\u00a8dog"
    assert as_given("other", prefix, subwords) == "other"
    assert as_given(text, Required(), subwords) == text


MORE_OR_FEWER = {  # beginnings whose words are not those that their pieces spell, with the pieces of each word
    "A dog\u00b4s": [[0], [1, 2, 3, 4, 5]],  # the accent becomes a space and a mark
    "\u00b4 \u00a8": [[0, 1], [2, 3]],
    "A\ufeffdog runs\u00a8": [[0, 1, 2], [3, 4, 5, 6, 7, 8]],  # the first mark becomes a space
    "A \ufeff dog": [[0], [1], [1, 2]],  # nothing is written for the mark
    "\ufeff A dog \ufeff": [[0], [0], [1, 2], [2]],
    "A\x1fdog red": [[0], [1, 2, 3], [4, 5]],  # a space for Python alone
}


@pytest.mark.parametrize(
    ("beginning", "replaced"),
    list(zip(MORE_OR_FEWER, cycle([None, dict.fromkeys(" ".join(TEXT).split(), "this or that")]))),
)
def test_words_that_are_more_or_fewer_as_they_were_given(forgetful, text, beginning, replaced) -> None:
    """They stand in the text, with alignments and without; rows and links are of these words."""
    options = {"beam_size": 2, "n_best": 2, "max_length_ratio": 0.4, "replace_unknown": replaced}
    given, text = [beginning, f"{beginning} \u017b", f"{beginning}-", ""], text[:4]
    plain, aligned = (
        list(translate(forgetful, text, prefixes=given, alignments=alignments, **options))
        for alignments in (False, True)
    )
    assert texts(plain) == texts(aligned)
    assert replaced is None or any("this or that" in one for several in texts(aligned) for one in several)
    for line, start, several in zip(text, given, aligned, strict=True):
        for best in several:
            soft, words = best.soft_alignment, best.text.split()
            assert best.text.startswith(start)
            assert soft.target_words == words
            assert soft.weights.sum(1).tolist() == pytest.approx([1.0] * len(words))
            assert [place for _, place in best.alignment] == list(range(len(words)))
            by_piece = weights_of_pieces(forgetful, line, best.ids)
            for word, pieces in enumerate(MORE_OR_FEWER[beginning][:-1] if start else []):
                assert soft.weights[word].tolist() == pytest.approx(by_piece[pieces].mean(0).tolist())


def weights_of_pieces(translator: Translator, line: str, ids: Sequence[int]) -> Weights:
    """The attention of each piece of a translation to each word of its line, and to its end."""
    source = words_of_line(line, translator.vocabularies.source)
    pair = (translator.vocabularies.source.encode(line), ids)
    (forced,) = forced_decoding(translator.scorer, [pair], batch_tokens=100, attention=True)
    weights = np.zeros((len(ids), len(source.words) + 1))
    np.add.at(weights.T, [*source.places, len(source.words)], forced.weights.T)
    return weights


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"n_best": 3}, {"n_best": 3, "sampling": SamplingConfig()}], ids=str
)
def test_translations_begin_with_their_prefixes(translator, text, options) -> None:
    options = {"max_length_ratio": 0.6, **options}
    free = list(translate(translator, text, **options))
    forced = list(translate(translator, text, prefixes=GIVEN, **options))
    assert texts(forced)[1] == texts(free)[1]  # an empty prefix forces nothing
    for beginning, several in zip(GIVEN, forced, strict=True):
        prefix = encoded_prefix(beginning, translator.vocabularies.target)
        for translation in several:
            assert translation.text.startswith(beginning)
            pieces = translator.vocabularies.target.pieces(prefix.tokens)
            assert translation.tokens[: len(pieces)] == pieces
            following = translation.text[len(beginning) : len(beginning) + 1]
            assert not (prefix.complete and following.isalnum())


def test_a_line_that_is_cut_begins_with_its_prefix_once(translator, text) -> None:
    line = " ".join(text)
    (best,) = next(translate(translator, [line], prefixes=["The old dog"], max_length_ratio=0.3))
    assert best.text.startswith("The old dog")
    assert best.text.count("The old dog") == 1


def test_prefixes_are_read_as_lines_are() -> None:
    some = {"prefixes": iter("xyz"), "others": None}
    assert list(chunks_with(["a", "b", "c"], some, characters=4)) == [
        [["a", "b"], ["x", "y"], ["", ""]],
        [["c"], ["z"], [""]],
    ]
    with pytest.raises(UserError, match="fewer prefixes than lines of text: line 3 has none"):
        list(chunks_with(["a", "b", "c"], {"others": [*"123"], "prefixes": [*"xy"]}, characters=4))
    with pytest.raises(UserError, match="more prefixes than lines: line 1 of the prefixes has no line"):
        list(chunks_with([], {"prefixes": ["x"]}, characters=4))


def test_a_prefix_that_no_translation_can_have(translator) -> None:
    with pytest.raises(UserError, match=r"line 2 is blank and is to have 'A'"):
        list(translator.translate(["a", " "], prefixes=["", "A"]))
    assert texts(translator.translate(["", " "], prefixes=["", " "])) == [[""], [""]]


@pytest.mark.parametrize("prefix", ["\u2581", "\ufeff", "\u2581 \u200b"])
def test_a_prefix_of_which_nothing_can_be_written(translator, prefix) -> None:
    """It is not left out without a word, as a constraint is not."""
    with pytest.raises(UserError) as error:
        list(translator.translate(["a", "a dog", " "], prefixes=["A", prefix, prefix]))
    assert error.value.messages == (
        f"the prefix {prefix!r} of line 2 cannot be written: the model's subword model leaves nothing of it",
        f"line 3 is blank and is to have {prefix!r}; do the files go together?",
    )
