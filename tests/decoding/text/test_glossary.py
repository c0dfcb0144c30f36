"""Which terms occur in a text, and which files are glossaries."""

import re
import time
from pathlib import Path

import pytest

from nmt.decoding.text.glossary import Glossary, count_words, read_dictionary, read_glossary
from nmt.errors import InputWarning, UserError

EN_DE = ("en", "de")
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


def translations(glossary: Glossary, text: str) -> list[str]:
    return [str(term.instead) for term in glossary.occurrences(text)]


@pytest.mark.parametrize(
    ("text", "expected", "as_written"),
    [
        ("a dog", ["Hund"], ["Hund"]),
        ("A Dog, a DOG!", ["Hund", "Hund"], []),  # with any capitals
        ("dogs hotdog dog2 dog_", ["Hund"], ["Hund"]),  # only whole words: the last is one, beside a mark
        ("a hot\u00a0 dog, dog", ["Wurst", "Hund"], ["Wurst", "Hund"]),  # the longest
        ("hot hot dog", ["Wurst"], ["Wurst"]),
        ("US us Us", ["USA", "uns", "USA"], ["USA", "uns"]),  # what is written so first
        ("new york, NEW YORK", ["NY", "NY"], []),
        ("New York", ["NY"], ["NY"]),
        ("in C++.", ["C++"], ["C++"]),
        ("in c+ +", ["C++"], []),
        ("我的狗很大", ["Gou"], ["Gou"]),  # no spaces
        ("the U.S. army", ["VSA"], ["VSA"]),
        ("dog-house", ["Hund"], ["Hund"]),
        ("a d\u00ado\u2060\u0640g", ["Hund"], ["Hund"]),  # a soft hyphen, and other characters that are not seen
        ("hot\u200bdog", ["Wurst"], ["Wurst"]),
        ("\u3164狗\U000e0100\u034f", ["Gou"], ["Gou"]),  # a form of the character, and what fills or joins
        ("a d\u06ddog", [], []),  # a sign that is seen
        ("ein Cafe\u0301", ["Coffee"], ["Coffee"]),  # with the accent as a character of its own
        ("", [], []),
    ],
)
def test_terms_of_a_text(text: str, expected: list[str], as_written: list[str]) -> None:
    assert translations(Glossary(TERMS), text) == expected
    assert translations(Glossary(TERMS, as_written=True), text) == as_written


@pytest.mark.parametrize("term", ["❤", "❤\ufe0f"])
def test_an_emoji_is_a_term_in_both_of_its_forms(term: str) -> None:
    """And as large as what is kept otherwise, so that it is the term that counts."""
    found = Glossary({term: "Herz"}).occurrences("a ❤\ufe0f, ❤")
    assert [mark.place for mark in found] == [(2, 4), (6, 7)]


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
    assert [translations(glossary, f"bir {word} daha") for word in (term, *alike)] == [["yes"]] * (1 + len(alike))
    assert [translations(glossary, f"bir {word} daha") for word in others] == [[]] * len(others)
    assert translations(Glossary({f"{term} daha": "yes"}), f"{alike[0]} daha") == ["yes"]


def test_a_file(tmp_path: Path) -> None:
    (path := tmp_path / "terms.tsv").write_text(
        "# comment\n\n dog\tder  Hund \r\n#1\tNummer 1\ndog\tder Hund\nUS\tUSA\nus\tuns\n"
    )
    glossary = read_glossary(path, EN_DE)
    assert translations(glossary, "The dog of us is #1") == ["der Hund", "uns", "Nummer 1"]
    assert translations(read_glossary(str(path), EN_DE, as_written=True), "Dog") == []


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
            'dog,Hund,x\n"hot,dog\n',
            [
                "line 1: 3 columns; ",
                "line 2: cannot be read as a table (unexpected end of data); where cells are in quotes",
            ],
        ),
        ('dog;Hund\n"hot\ndog";Wurst\nhot;dog;Wurst', ["line 4: 3 columns; expected a term"]),  # a cell of two lines
        (
            "en,pl,fr\ndog,pies,chien",
            ["line 1: 3 columns; expected a term, a tab, and its translation (or a first row that names", "line 2: 3 "],
        ),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, messages: list[str]) -> None:
    (path := tmp_path / "terms.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        read_glossary(path, EN_DE)
    for message, expected in zip(error.value.messages, messages, strict=True):
        assert message.startswith(f"{path}, {expected}")


def test_a_file_without_terms(tmp_path: Path) -> None:
    (path := tmp_path / "terms.tsv").write_text("# nothing\n")
    with pytest.raises(UserError, match=r"has no terms; expected lines with a term, a tab, and its translation$"):
        read_glossary(path, EN_DE)
    with pytest.raises(UserError, match=r"^glossary: 'dog' is to be ' '; expected words on both sides$"):
        Glossary({"dog": " "})
    with pytest.raises(UserError, match=r"^glossary: 'dog' is to be None; both must be strings$"):
        Glossary({"dog": None})  # type: ignore[dict-item]


def test_where_a_term_is() -> None:
    text = "A dog hears Pa\u00adnic! At the  Disco, cafe\u0301, 狗."
    glossary = Glossary({"Panic! At the Disco": "1", "dog": "2", "café": "3", "狗": "4"})
    found = [text[slice(*term.place)] for term in glossary.occurrences(text)]
    assert found == ["dog", "Pa\u00adnic! At the  Disco", "cafe\u0301", "狗"]


def test_how_often_a_text_has_a_phrase() -> None:
    assert [count_words(phrase, "Hot dog, HOT  dog; dogs") for phrase in ("hot dog", "dog", "cat")] == [2, 2, 0]


def test_a_term_with_two_translations(tmp_path: Path) -> None:
    """The first counts."""
    glossary = Glossary({"hot dog": "heiße  Wurst", "hot  dog": "Wurst", "Hot dog": "Hund"})
    assert translations(glossary, "hot dog, Hot dog") == ["heiße Wurst", "Hund"]
    (path := tmp_path / "terms.tsv").write_text("dog\tHund\nx\ty\ndog \tKöter\nx\ty\n" + "y\t1\ny\t2\n" * 6)
    with pytest.warns(InputWarning) as found:
        glossary = read_glossary(path, EN_DE)
    assert translations(glossary, "dog x y") == ["Hund", "y", "1"]
    assert [str(one.message) for one in found] == [
        f"{path}, line 3: 'dog' is to be 'Köter', and before 'Hund', which counts",
        *(f"{path}, line {line}: 'y' is to be '2', and before '1', which counts" for line in (6, 8, 10, 12)),
        f"{path}: 2 more terms have another translation",
    ]


EXPORTED = {
    "two languages": "Entry ID;Note;English;German;German info\n1;;dog;Hund;m\n2;a pet;cat;;\n\n3;;hot dog;Wurst;f\n",
    "source and target": '"context","source","target"\n"a, b","dog","Hund"\n"","hot dog","Wurst"\n',
    "with tabs": 'Term\tTranslation\tPart of speech\n"dog"\tHund\tnoun\nhot dog\tWurst\n',
    "by the codes of many": "id|de-DE|fr|en_US\n1|Hund|chien|dog\n2|Wurst||hot dog\n",
    "the other way round": "de,en\nHund,dog\nWurst,hot dog\n",
    "of several regions": "en,de-AT,de\ndog,Hunderl,Hund\nhot dog,Würstel,Wurst\n",
    "of Excel": 'sep=;\nterm;translation\ndog;Hund\n"hot\ndog";Wurst\n',
    "with separators in quotes": '"source";"a, b, c";"target"\n"dog";;"Hund"\n"hot dog";;"Wurst"\n',
}


@pytest.mark.parametrize("text", EXPORTED.values(), ids=EXPORTED)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_programs_export(tmp_path: Path, text: str, mark: str) -> None:
    """With quotes, a byte order mark, and a header that says which columns count."""
    (path := tmp_path / "terms").write_bytes((mark + text).replace("\n", "\r\n").encode())
    with pytest.warns(InputWarning, match="terms, line [12]: a header; terms and their translations are in the col"):
        glossary = read_glossary(path, EN_DE)
    assert translations(glossary, "dog, cat, hot dog, id, term, source, English") == ["Hund", "Wurst"]


def test_words_that_are_codes_of_other_languages_are_no_header(tmp_path: Path) -> None:
    """Only what names the languages of the model is one, and that is said."""
    (path := tmp_path / "terms").write_text("it\tes\nher\tsie\n")
    assert translations(read_glossary(path, EN_DE), "it, her") == ["es", "sie"]
    with pytest.warns(InputWarning, match="line 1: a header; terms and their translations are in the columns 'it' and"):
        assert translations(read_glossary(path, ("it", "es")), "it, her") == ["sie"]
    path.write_text("gsw;de\nGrüezi;Guten Tag\n")  # of a language without a name here
    with pytest.warns(InputWarning, match="a header"):
        assert translations(read_glossary(path, ("de", "gsw")), "Guten Tag") == ["Grüezi"]


def test_rows_with_their_languages(tmp_path: Path) -> None:
    """As DeepL has them; those of others are left out."""
    (path := tmp_path / "terms.csv").write_text(
        '# terms, of DeepL\ndog,Hund,en,de\n"Mr. ""X"", PhD",Herr X,EN,DE\nHund,dog,de,en\ncat,chat,en,fr\n'
    )
    glossary = read_glossary(path, ("en-GB", "de"))
    assert translations(glossary, 'dog, Mr. "X", PhD, Hund, cat') == ["Hund", "Herr X"]
    with pytest.raises(UserError, match="has no terms; expected lines with a term, a tab, and its translation"):
        read_glossary(path, ("en", "pl"))


def test_quotation_marks_in_a_table_with_tabs(tmp_path: Path) -> None:
    """They are text, but for those around a whole cell."""
    (path := tmp_path / "terms").write_text('5" disk\t5-Zoll-Diskette\n"Go" button\tTaste\n"a ""b"""\tc; d, e\n"x\ty\n')
    glossary = read_glossary(path, EN_DE)
    assert translations(glossary, 'a 5" disk, the "Go" button, a "b", "x') == [
        "5-Zoll-Diskette",
        "Taste",
        "c; d, e",
        "y",
    ]


@pytest.mark.parametrize("text", ['"' + "a,b\n" * 1000, '"\n' * 5, ",\n", "|||\n", "\t\n", '"",""\n'])
def test_hostile_files(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "terms.csv").write_text(text)
    with pytest.raises(UserError, match=str(path)):
        read_glossary(path, EN_DE)


@pytest.mark.slow
def test_many_terms(tmp_path: Path) -> None:
    """In proportion: a million take a minute, and a line takes no longer than with a few."""
    path = tmp_path / "terms.tsv"
    path.write_text("".join(f"term {number} of ours\tBegriff {number}\n" for number in range(50_000)))
    began = time.process_time()
    glossary = read_glossary(path, EN_DE)
    assert time.process_time() - began < 10
    began = time.process_time()
    for _ in range(1000):
        assert translations(glossary, "Term 77 of ours, and term 49999 of ours") == ["Begriff 77", "Begriff 49999"]
    assert time.process_time() - began < 5


def test_a_dictionary_has_words_as_they_stand(tmp_path: Path) -> None:
    """Separated by spaces too, as in the dictionaries of Luong, Pham & Manning."""
    path = tmp_path / "words"
    path.write_text("\ufeffO'Neil\tO'Neil \n\nNeujahr\tNew Year\nBank bank\nBank\tbench\n#\tnumber\n", encoding="utf-8")
    assert read_dictionary(path) == {"O'Neil": "O'Neil", "Neujahr": "New Year", "Bank": "bank", "#": "number"}


@pytest.mark.parametrize(
    "line", ["Hund\t", "\tdog", "Hund", "Hund dog 0.5", "Hund\tdog\tde\ten", "guten Morgen\tgood morning"]
)
def test_a_line_that_is_no_entry_of_a_dictionary(tmp_path: Path, line: str) -> None:
    path = tmp_path / "words"
    path.write_text(f"Katze\tcat\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"words, line 2: {re.escape(repr(line))}; expected a word, a tab, and its tr"):
        read_dictionary(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match="has no words; expected lines with"):
        read_dictionary(path)
