"""Lexical constraints on text: phrases as lines of a file have them, and translations that contain them."""

import re

import pytest
import torch

from nmt.config.schema import DecodingConfig, SamplingConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.text.required import encoded_constraints, encoded_prefix
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from tests.decoding.conftest import TEXT, network
from tests.translating import translate

LINES = [*TEXT, ""]
CONSTRAINTS = ["dog", "", "red dress\tboy", "ball", "", "old man\tmarket\tcold water of the", ""]


@pytest.fixture(scope="module")
def translator(vocabularies) -> Translator:
    size = vocabularies.source.size
    model = network("luong", source_size=size, target_size=size)
    with torch.no_grad():  # its translations end, and have words of the text
        model.output_weight[3] *= 0.5
    return Translator([model], vocabularies, decoding=DecodingConfig(max_length_ratio=1.0, max_length_extra=4))


def words(text: str) -> str:
    return f" {' '.join(re.findall(r'[A-Za-z]+', text))} "


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam_size": 1},
        {"beam_size": 12, "n_best": 5, "length_penalty": "none"},
        {"no_repeat_ngram_size": 1, "minimum_length": 9, "coverage_penalty": 0.2},
        {"replace_unknown": {}, "alignments": True},
    ],
    ids=str,
)
def test_every_translation_contains_the_phrases_as_words(translator, options) -> None:
    results = list(translate(translator, LINES, constraints=CONSTRAINTS, **options))
    assert len(results) == len(LINES)
    if "replace_unknown" in options:
        assert any("<unk>" in best.tokens for best, *_ in results)
    for best, line in zip(results, CONSTRAINTS, strict=True):
        for translation in best:
            for phrase in filter(None, line.split("\t")):
                assert f" {phrase} " in words(translation.text), translation.text
    options = {name: value for name, value in options.items() if name != "replace_unknown"}
    free = [best.text for best, *_ in translate(translator, LINES, **options)]
    assert not any(f" {phrase} " in words(text) for text in free for phrase in ("dog", "red dress", "ball", "market"))
    assert results[-1][0].text == ""


def test_lines_without_constraints_are_translated_as_ever(translator) -> None:
    free = list(translator.translate(LINES, n_best=3))
    constrained = list(translator.translate(LINES, n_best=3, constraints=CONSTRAINTS))
    for one, other, line in zip(free, constrained, CONSTRAINTS, strict=True):
        assert (one == other) == (line == "")
    assert list(translator.translate(LINES, constraints=[""] * len(LINES))) == [best[:1] for best in free]


def test_with_a_prefix_and_an_ensemble(translator) -> None:
    both = [*translator.models, *translator.models]
    ensemble = Translator(both, translator.vocabularies, decoding=translator.decoding)
    prefixes = ["Two men", "", "The woman in the red", "", "", "An old", ""]
    options = {"constraints": CONSTRAINTS, "prefixes": prefixes}
    texts = [best.text for best, *_ in translate(translator, LINES, **options)]
    assert texts == [best.text for best, *_ in translate(ensemble, LINES, **options)]
    for text, prefix, line in zip(texts, prefixes, CONSTRAINTS, strict=True):
        assert text.startswith(prefix)
        assert all(f" {phrase} " in words(text) for phrase in filter(None, line.split("\t")))


def test_a_line_that_is_cut(translator) -> None:
    short = Translator(translator.models, translator.vocabularies, longest_segment=40)
    (best,) = next(short.translate([" ".join(TEXT)], constraints=["ball\told man"]))
    assert " ball " in words(best.text)
    assert " old man " in words(best.text)


def test_phrases_of_a_line(vocabularies) -> None:
    target = vocabularies.target
    phrases = encoded_constraints(" red   dress \t\tdog\tred dress\t \t, as", target)
    assert [phrase.text for phrase in phrases] == ["red dress", "dog", ", as"]
    assert [phrase.tokens for phrase in phrases[:2]] == [target.encode("red dress"), target.encode("dog")]
    assert target.decode(target.encode("fruit") + phrases[2].tokens) == "fruit, as"  # no space before a comma
    one, other = encoded_constraints("ball\tball?", target)
    assert [one.complete, other.complete] == [True, False]
    assert encoded_constraints("", target) == encoded_constraints(" \t ", target) == []


def test_constraints_that_cannot_be_met(translator) -> None:
    def constrained(lines: list[str], constraints: list[str], **options: object) -> list[list[Translation]]:
        return list(translate(translator, lines, constraints=constraints, **options))

    with pytest.raises(UserError, match="the constraint 'Ж' of line 1 cannot be written: it has characters"):
        constrained(["A dog"], ["dog\tЖ"])
    with pytest.raises(UserError, match="line 2 is blank and is to have 'dog', 'man'; do the files go together"):
        constrained(["A dog", ""], ["", "dog\tman"])
    with pytest.raises(UserError, match="`constraints` do not go with `sampling`"):
        constrained(["A dog"], ["dog"], sampling=SamplingConfig())
    with pytest.raises(UserError) as caught:  # all that is wrong
        constrained(["", "A dog"], ["dog\tЖ", "Ж"])
    assert len(caught.value.messages) == 2


def test_words_as_pieces() -> None:
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(type="word", size=50))
    model = network("bahdanau", source_size=subwords.size, target_size=subwords.size)
    translator = Translator([model], Vocabularies(subwords, subwords))
    for best, phrase in zip(translator.translate(TEXT, constraints=["old man"] * 6), ["old man"] * 6, strict=True):
        assert phrase in best[0].text
    with pytest.raises(UserError, match="cannot be written"):
        list(translator.translate(["A dog"], constraints=["submarine"]))


def test_phrases_of_the_same_pieces_are_one() -> None:
    subwords = Subwords.train(["a park"], settings=SubwordsConfig(lowercase=True, type="char", size=12))
    park, plural = encoded_constraints("Park\tpark\tparka\tPARK", subwords)
    assert (park.text, plural.text) == ("Park", "parka")


def test_there_is_room_for_what_is_required(translator) -> None:
    """However short a translation must be."""
    phrases, short = "Two men\tred dress\told man", {"max_length_ratio": 0, "max_length_extra": 2, "beam_size": 8}
    ((best, *_),) = translate(translator, ["A dog"], prefixes=["the old"], constraints=[phrases], **short)
    assert best.text.startswith("the old")
    assert all(phrase in best.text for phrase in phrases.split("\t"))


def test_there_is_not_room_for_everything(translator) -> None:
    """Or a line of a file would take seconds."""
    with pytest.raises(UserError, match=r"^line 1: 2\d\d pieces are required of its translation; it may be 200$"):
        list(translate(translator, ["A dog"], prefixes=["the old " * 30], constraints=["red dress " * 40]))


def test_a_complete_prefix_that_begins_a_phrase(translator) -> None:
    """Its pieces are no part of the phrase: a complete "dog" does not become "dogs"."""
    target = translator.vocabularies.target
    (longer,) = encoded_constraints("dogs", target)
    prefix = encoded_prefix("dog", target)
    assert longer.tokens[: len(prefix.tokens)] == prefix.tokens
    assert prefix.complete
    ((best,),) = translate(translator, ["dog"], prefixes=["dog"], constraints=["dogs"], max_length_ratio=0)
    assert best.text.startswith("dog ")
    assert "dogs" in best.text
