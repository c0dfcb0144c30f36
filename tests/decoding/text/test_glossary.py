"""Which terms occur in a text, and which files are glossaries."""

from pathlib import Path

import pytest

from nmt.decoding.text.glossary import Glossary, is_between_words, read_glossary, words_of
from nmt.errors import UserError

TERMS = {
    "dog": "Hund",
    "hot dog": "Wurst",
    "US": "USA",
    "us": "uns",
    "New  York": "NY",
    "C++": "C++",
    "狗": "Gou",
    "U.S.": "VSA",
    "Café": "Coffee",
}


@pytest.mark.parametrize(
    ("text", "translations", "as_written"),
    [
        ("a dog", ["Hund"], ["Hund"]),
        ("A Dog, a DOG!", ["Hund"], []),  # with any capitals, and once
        ("dogs hotdog dog2 dog_", ["Hund"], ["Hund"]),  # only whole words: the last is one, beside a mark
        ("a hot\u00a0 dog, dog", ["Wurst", "Hund"], ["Wurst", "Hund"]),  # the longest
        ("hot hot dog", ["Wurst"], ["Wurst"]),
        ("US us Us", ["USA", "uns"], ["USA", "uns"]),  # what is written so first
        ("new york, NEW YORK", ["NY"], []),
        ("New York", ["NY"], ["NY"]),
        ("in C++.", ["C++"], ["C++"]),
        ("in c+ +", ["C++"], []),
        ("我的狗很大", ["Gou"], ["Gou"]),  # no spaces
        ("the U.S. army", ["VSA"], ["VSA"]),
        ("dog-house", ["Hund"], ["Hund"]),
        ("a d\u00ado\u2060g", ["Hund"], ["Hund"]),  # a soft hyphen, and other characters that are not seen
        ("hot\u200bdog", ["Wurst"], ["Wurst"]),
        ("ein Cafe\u0301", ["Coffee"], ["Coffee"]),  # with the accent as a character of its own
        ("", [], []),
    ],
)
def test_terms_of_a_text(text: str, translations: list[str], as_written: list[str]) -> None:
    assert Glossary(TERMS).translations(text) == translations
    assert Glossary(TERMS, as_written=True).translations(text) == as_written


@pytest.mark.parametrize(
    ("term", "alike", "others"),
    [
        ("kırmızı", ["KIRMIZI", "Kırmızı"], ["kirmizi"]),
        ("ışık", ["Işık", "IŞIK"], ["işik"]),
        ("İstanbul", ["istanbul", "İSTANBUL"], ["ıstanbul"]),
        ("SIK", ["sık", "sik"], []),  # as in Turkish, or as everywhere else
        ("sık", ["SIK"], ["sik"]),  # two words of Turkish
        ("India", ["INDIA", "india"], []),
    ],
)
def test_capitals_of_turkish(term: str, alike: list[str], others: list[str]) -> None:
    """I is that of ı, and İ that of i, which no other language has; casefold alone knows neither."""
    glossary = Glossary({term: "yes"})
    assert [glossary.translations(f"bir {word} daha") for word in (term, *alike)] == [["yes"]] * (1 + len(alike))
    assert [glossary.translations(f"bir {word} daha") for word in others] == [[]] * len(others)
    assert Glossary({f"{term} daha": "yes"}).translations(f"{alike[0]} daha") == ["yes"]


def test_a_file(tmp_path: Path) -> None:
    (path := tmp_path / "terms.tsv").write_text(
        "# comment\n\n dog\tder  Hund \r\n#1\tNummer 1\ndog\tder Hund\nUS\tUSA\nus\tuns\n"
    )
    glossary = read_glossary(path)
    assert glossary.translations("The dog of us is #1") == ["der Hund", "uns", "Nummer 1"]
    assert read_glossary(str(path), as_written=True).translations("Dog") == []


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("dog", ["line 1: 1 column; expected a term, a tab, and its translation"]),
        (
            "a\tb\tc\n\td\ne\t ",
            [
                "line 1: 3 columns; ",
                "line 2: '' is to be 'd'; expected words",
                "line 3: 'e' is to be ''; expected words",
            ],
        ),
        (
            "dog\tHund\nx\ty\ndog \tKöter",
            ["line 3: 'dog' is to be 'Köter', and also 'Hund'; leave out one of the two"],
        ),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, messages: list[str]) -> None:
    (path := tmp_path / "terms.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        read_glossary(path)
    for message, expected in zip(error.value.messages, messages, strict=True):
        assert message.startswith(f"{path}, {expected}")


def test_a_file_without_terms(tmp_path: Path) -> None:
    (path := tmp_path / "terms.tsv").write_text("# nothing\n")
    with pytest.raises(UserError, match=r"has no terms; expected lines with a term, a tab, and its translation$"):
        read_glossary(path)
    with pytest.raises(UserError, match=r"^glossary: 'dog' is to be ' '; expected words on both sides$"):
        Glossary({"dog": " "})
    with pytest.raises(UserError, match=r"^glossary: 'dog' is to be None; both must be strings$"):
        Glossary({"dog": None})  # type: ignore[dict-item]


def test_where_a_text_must_not_be_cut() -> None:
    """Words are counted from 0, and what stands between them, too; a term of one word is no matter."""
    glossary = Glossary({"Panic! At the Disco": "Hund", "hot dog": "Wurst", "dog": "Katze"})
    assert glossary.places_within("A dog hears Panic! At the Disco, hot  dog.") == {4, 5, 6, 7, 10}
    assert glossary.places_within("A hot, dog.") == set()


def test_a_term_with_two_translations() -> None:
    why = r"^glossary: 'hot  dog' is to be 'Hund', and also 'Wurst'; leave out one of the two$"
    with pytest.raises(UserError, match=why):
        Glossary({"hot dog": "Wurst", "hot  dog": "Hund"})
    different = Glossary({"hot dog": "heiße  Wurst", "hot  dog": "heiße Wurst", "Hot dog": "Hund"})
    assert different.translations("hot dog, Hot dog") == ["heiße Wurst", "Hund"]


def test_where_words_end() -> None:
    """As if whatever stands before each of these places was counted from the beginning."""
    spaced = ["A hot, dog's (x) — Panic! At", "co\u00adop cafe\u0301", "a\u200bb \u200d c"]
    for text in (*spaced, "犬が3匹！ ok", "か\u3099き", "ไทยดี กา"):
        for place in range(len(text) + 1):
            together = words_of(text[:place]) + words_of(text[place:])
            if is_between_words(text, place):
                assert together == words_of(text), (text, place)
            elif text[place].isalpha() and text[place - 1].isalpha():
                assert together != words_of(text), (text, place)


def test_a_term_is_told_of_once() -> None:
    """Unless another process has told of it."""
    told: list[str] = []
    glossary = Glossary(TERMS, warn=told.append, is_news=lambda translation: translation != "Wurst")
    for translation in ("Hund", "Hund", "Wurst", "uns"):
        glossary.tell(translation, f"no {translation}")
    assert told == [f"glossary: '{term}' is left out, which is said once: no {term}" for term in ("Hund", "uns")]
