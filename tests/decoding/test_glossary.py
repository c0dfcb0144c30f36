"""Translations with a glossary: the same as with the constraints that it stands for, and without those that fail."""

import pickle

import pytest

from nmt.config.schema import SamplingConfig
from nmt.decoding.text import segments
from nmt.decoding.text.glossary import Glossary, words_of
from nmt.decoding.text.sentences import Line, Sentence
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import UserError
from tests.random_model import save_random_model

LINES = ["a dog runs .", "two men are reading", "", "the boy is playing with the ball . a DOG"]
TERMS = {"dog": "green field", "boy": "ball"}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator.load(save_random_model(tmp_path_factory.mktemp("model") / "model.safetensors"))


def texts(translator: Translator, lines: list[str], glossary: Glossary | None, **beside: list[str]) -> list[str]:
    options = TranslationOptions(glossary=glossary, max_length_ratio=3.0)
    return [best.text for best, *_ in translator.translate(lines, options, **beside)]  # type: ignore[arg-type]


def test_terms_are_constraints_of_their_lines(translator: Translator) -> None:
    constraints = ["green field", "", "", "ball\tgreen field"]
    expected = texts(translator, LINES, None, constraints=constraints)
    assert texts(translator, LINES, Glossary(TERMS)) == expected
    assert all(phrase in text for text, line in zip(expected, constraints, strict=True) for phrase in line.split("\t"))
    assert expected != texts(translator, LINES, None)
    assert texts(translator, LINES, Glossary(TERMS, as_written=True))[3] != expected[3]


def test_together_with_constraints_and_prefixes(translator: Translator) -> None:
    constraints, prefixes = ["men", "men", "", "ball"], ["", "two", "", "is a"]
    expected = texts(
        translator, LINES, None, constraints=["men\tgreen field", "men", "", "ball\tgreen field"], prefixes=prefixes
    )
    assert texts(translator, LINES, Glossary(TERMS), constraints=constraints, prefixes=prefixes) == expected


def test_a_term_belongs_to_its_sentence(translator: Translator) -> None:
    pytest.importorskip("sentencex", reason="pip install 'nmt-toolkit[text]'")
    options = TranslationOptions(glossary=Glossary(TERMS), split_sentences="en", max_length_ratio=3.0)
    first, second = "Two men are reading.", "A dog runs."
    [[best]] = translator.translate([f"{first} {second}"], options)
    apart = texts(translator, [first, second], Glossary(TERMS))
    assert best.text == " ".join(apart)
    assert "green field" in apart[1]


def test_a_term_in_a_part_of_a_long_line(translator: Translator) -> None:
    short = Translator(translator.models, translator.vocabularies, decoding=translator.decoding, longest_segment=9)
    line = "two men are reading . " * 3 + "a dog runs ."
    ids = translator.vocabularies.source.encode(line)
    assert len(ids) > 18
    (text,) = texts(short, [line], Glossary(TERMS))
    assert text.count("green field") == 1
    assert "green field" not in texts(short, ["two men are reading . " * 3], Glossary(TERMS))[0]


def test_what_cannot_be_written_is_left_out_with_a_warning(translator: Translator) -> None:
    told: list[str] = []
    glossary = Glossary({"dog": "Übergröße", "men": "field " * 99, "boy": "ball", "two": "green"}, warn=told.append)
    assert texts(translator, LINES, glossary) == texts(translator, LINES, Glossary({"boy": "ball", "two": "green"}))
    first, second = told
    assert first.startswith(
        "glossary: 'Übergröße' is left out, which is said once: the constraint 'Übergröße' of line 1 "
    )
    assert second.startswith(
        "glossary: 'field field field field field field field [...]' is left out, which is said once: "
    )
    assert "of line 2 need " in second


def test_a_warning_of_python(translator: Translator) -> None:
    with pytest.warns(
        UserWarning, match=r"^glossary: 'Ü' is left out, which is said once: the constraint 'Ü' of line 1 cannot"
    ):
        texts(translator, LINES, Glossary({"dog": "Ü"}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": SamplingConfig()}, "`glossary` does not go with `sampling`"),
        ({"diversity": 0.5, "n_best": 2}, "`diversity` does not go with `glossary`"),
        (
            {"glossary": {"dog": "Hund"}},
            "`glossary` is {'dog': 'Hund'}; Input should be an instance of Glossary",
        ),
    ],
)
def test_contradictions(translator: Translator, options: dict[str, object], message: str) -> None:
    settings: dict[str, object] = {"glossary": Glossary(TERMS), **options}
    with pytest.raises(UserError) as error:
        list(translator.translate(LINES, TranslationOptions(**settings)))  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_document(translator: Translator) -> None:
    pytest.importorskip("sentencex", reason="pip install 'nmt-toolkit[text]'")
    from nmt.documents.document import translate_document

    options = TranslationOptions(glossary=Glossary(TERMS), max_length_ratio=3.0)
    html = translate_document(translator, "<p>Two men are reading. A <b>dog</b>.</p>", format="html", options=options)
    assert "green field" in html.replace("<b>", "").replace("</b>", "")


def test_pickled() -> None:
    options = pickle.loads(pickle.dumps(TranslationOptions(glossary=Glossary(TERMS))))
    assert options.glossary.translations("a dog") == ["green field"]


def test_a_sentence_does_not_end_within_a_term(translator: Translator) -> None:
    """As sentencex has it; the others end where they did."""
    pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")
    line = "A dog runs. A boy sees Panic! At the Disco. Two men."
    glossary = Glossary({"Panic! At the Disco": "green field"})
    options = TranslationOptions(glossary=glossary, split_sentences="en", max_length_ratio=3.0)
    apart = ["A dog runs.", "A boy sees Panic! At the Disco.", "Two men."]
    together = [best.text for best, *_ in translator.translate([line], options)]
    assert together == [" ".join(texts(translator, apart, glossary))]
    assert together[0].count("green field") == 1
    usual = TranslationOptions(split_sentences="en", max_length_ratio=3.0)
    parts = ["A dog runs.", "A boy sees Panic!", "At the Disco.", "Two men."]
    assert [best.text for best, *_ in translator.translate([line], usual)] == [" ".join(texts(translator, parts, None))]


def test_a_very_long_line_is_read_once(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once more for each of its cuts."""
    read = 0

    def counting(text: str) -> list[str]:
        nonlocal read
        read += len(text)
        return words_of(text)

    monkeypatch.setattr(segments, "words_of", counting)
    line = "a dog sees the green field . " * 100
    source = translator.vocabularies.source
    glossary = Glossary({"green field": "boy"})
    some = segments.segments_of(
        Line(line, [Sentence(line)]), [source.encode(line)], source, longest=20, number=0, glossary=glossary
    )
    assert len(some) > 50
    assert read <= len(line)


@pytest.mark.parametrize("before", range(7, 17))
def test_a_long_line_is_not_cut_within_a_term(translator: Translator, before: int) -> None:
    """Wherever it stands; nor does the shorter term in it count."""
    short = Translator(translator.models, translator.vocabularies, longest_segment=16)
    glossary = Glossary({"green field": "boy", "field": "ball", "green": "ball"})
    (text,) = texts(short, ["a " * before + "green field" + " a" * 16], glossary)
    assert "boy" in text
    assert "ball" not in text
