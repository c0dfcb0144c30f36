"""Translations with a glossary: a term takes the place of the words that are aligned with it."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.decoding.text.glossary import Glossary
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import UserError

LINES = ["a dog runs .", "two men are reading", "", "the boy is playing with the ball . a DOG"]
TERMS = {"dog": "Übergröße Nr. 1", "boy": "ball"}


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model)


def texts(translator: Translator, lines: list[str], glossary: Glossary | None, **options: object) -> list[str]:
    how = TranslationOptions(glossary=glossary, **options)  # type: ignore[arg-type]
    return [translation.text for several in translator.translate(lines, how) for translation in several]


@pytest.mark.parametrize(
    "options",
    [{}, {"beam_size": 1}, {"n_best": 3}, {"n_best": 2, "diversity": 0.5}, {"sampling": {"seed": 3}}],
)
def test_every_translation_has_the_terms_of_its_line(translator: Translator, options: dict[str, object]) -> None:
    """Whatever a model with random weights writes, also what its vocabulary lacks; other lines stay as they are."""
    how = TranslationOptions(**options)  # type: ignore[arg-type]
    usual = [[one.text for one in several] for several in translator.translate(LINES, how)]
    found = [
        [one.text for one in several] for several in translator.translate(LINES, replace(how, glossary=Glossary(TERMS)))
    ]
    assert found[1:3] == usual[1:3]
    assert all(text.count("Übergröße Nr. 1") == 1 for text in (*found[0], *found[3]))
    assert all("ball" in text for text in found[3])
    unused = texts(translator, LINES, Glossary({"Dog": "Hund"}, as_written=True), **options)
    assert unused == [text for several in usual for text in several]


def test_terms_stand_apart(translator: Translator) -> None:
    """Also where the model writes fewer words than there are terms."""
    for line in ("a dog field", "boy , dog"):
        (text,) = texts(translator, [line], Glossary({"dog": "Hund", "field": "Wiese", "boy": "Kind"}))
        assert len({"Hund", "Wiese", "Kind"} & {*text.replace(",", " ").split()}) == 2


def test_what_is_there_already_stays(translator: Translator) -> None:
    (usual,) = texts(translator, LINES[:1], None)
    word = usual.split()[0]
    assert texts(translator, LINES[:1], Glossary({"runs": word})) == [usual]


def test_a_prefix_stays(translator: Translator) -> None:
    [[best]] = translator.translate(["a dog"], TranslationOptions(glossary=Glossary(TERMS)), prefixes=["the boy is"])
    assert best.text.startswith("the boy is")
    assert best.text.count(TERMS["dog"]) == 1


def test_a_mapping_is_a_glossary() -> None:
    assert isinstance(TranslationOptions(glossary={"dog": "Hund"}).glossary, Glossary)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"^`glossary` is \{'dog': ''\}; glossary: 'dog' is to be ''; expected words"):
        TranslationOptions(glossary={"dog": ""})  # type: ignore[arg-type]


def test_a_sentence_does_not_end_within_a_term(translator: Translator) -> None:
    """The others end where they did."""
    pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")
    glossary = Glossary({"Panic! At the Disco": "Hund"})
    apart = ["A dog runs.", "A boy sees Panic! At the Disco.", "Two men."]
    (together,) = texts(translator, [" ".join(apart)], glossary, split_sentences="en")
    assert together == " ".join(texts(translator, apart, glossary))
    assert together.count("Hund") == 1


@pytest.mark.parametrize("before", range(7, 17))
def test_a_long_line_is_not_cut_within_a_term(translator: Translator, before: int) -> None:
    """Wherever it stands; nor does the shorter term in it count."""
    short = Translator(translator.models, translator.vocabularies, longest_segment=16)
    glossary = Glossary({"green field": "Wiese", "field": "Feld", "green": "grün"})
    (text,) = texts(short, ["a " * before + "green field" + " a" * 16], glossary)
    assert "Wiese" in text
    assert "Feld" not in text
    assert "grün" not in text


def test_a_term_inside_what_is_kept_is_a_part_of_it(translator: Translator) -> None:
    glossary = Glossary({"dog": "Hund", "name": "Name"})
    line = "see https://example.com/dog or dog@example.com and {name} and {n, plural, other {# dog}}"
    (text,) = texts(translator, [line], glossary)
    assert "Hund" not in text
    assert "Name" not in text
    for kept in line.split(" or ")[1].split(" and "):
        assert text.count(kept) == 1


@pytest.mark.parametrize(
    ("line", "term"),
    [
        ("1. FC a dog", "1. FC"),
        ("a dog 24/7", "24/7"),
        ("24/7", "24/7"),
        ("a dog at www.example.com now", "at www.example.com"),
        ("a dog {x} → {y}", "→"),
        ("a man sees 12 dogs", "12 dogs"),
        ("a man 3.5 → 4", "→ 4"),
        ("a ☃ dog", "☃"),
    ],
)
def test_a_term_is_the_user_s_word_before_that_of_a_pattern(translator: Translator, line: str, term: str) -> None:
    protect = ["placeholders", "addresses", "symbols", "numbers"]
    (text,) = texts(translator, [line], Glossary({term: "Übergröße"}), protect=protect)
    assert text.count("Übergröße") == 1
    assert term not in text
    assert all(text.count(kept) == 1 for kept in ("{x}", "{y}", "3.5") if kept in line)


@pytest.mark.parametrize("line", ["dog ", "dog {x} runs dog", "{x} dog", "the dog {x} dog runs {y} dog"])
def test_word_scores_and_alignments_with_terms(translator: Translator, line: str) -> None:
    """What a term has taken the place of counts for it: the sum stays."""
    options = TranslationOptions(glossary=Glossary(TERMS), word_scores=True, alignments=True, n_best=3)
    for one in next(iter(translator.translate([line], options))):
        assert one.word_scores is not None
        assert one.word_scores.words == one.text.split()
        usual = translator.models  # the score is the model's, whatever is written in place of its words
        assert usual
        penalized = (sum(one.word_scores.scores) + one.word_scores.end) / (len(one.ids) + 1)
        assert penalized == pytest.approx(one.score, abs=1e-5)


def test_terms_of_a_sentence_in_capitals_are_found_as_they_are_written(translator: Translator) -> None:
    (text,) = texts(translator, ["THE NASA IS A DOG"], Glossary({"NASA": "Nasa"}, as_written=True))
    assert "NASA" in text
