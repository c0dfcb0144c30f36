"""Glossaries: how terms are to be translated, wherever they occur in a text.

A glossary is a table of terms and their translations, separated by tabs or as CSV. A term is found as whole words, of
several that begin at a word the longest, and its translation takes the place of the words that are aligned with it
(see `marks`). A dictionary has the translations of words that the vocabulary lacks (see `unknown_words`). It knows
text; it knows no subwords and no models.
"""

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import regex

from nmt.data.corpus import excerpt, read_lines
from nmt.data.pairs import places_of
from nmt.data.tables import rows
from nmt.data.words import WORD_OR_SIGN
from nmt.decoding.text.languages import CODE, code_of, name_of
from nmt.decoding.text.marks import Mark
from nmt.decoding.text.required import in_word
from nmt.errors import InputWarning, UserError, collected, counted, first_of, refuse, refuse_lines
from nmt.text_form import INVISIBLE

Words = tuple[str, ...]
Row = tuple[str, Any, Any]  # what messages call it, a term, and its translation

_MOST_REPEATED = 5  # terms that a warning names
_SIDES = (["source", "source term", "term"], ["target", "target term", "translation"])  # as headers call them
_HIDDEN = regex.compile(rf"[{INVISIBLE}\u0640]")  # with what stretches Arabic words


class Glossary:
    """Terms and their translations. `as_written`: a term is found only with its own capitals.

    Otherwise capitals make no difference, those of Turkish included, but a term that is written like the text is
    preferred.
    """

    def __init__(self, terms: Mapping[str, str], *, as_written: bool = False) -> None:
        """Of terms with the same words the first counts. Raises UserError where one, or its translation, has none."""
        problems: list[str] = []
        rows = (("glossary", term, translation) for term, translation in terms.items())
        self._translations = _by_words(rows, problems, [])
        refuse(problems)
        self.as_written = as_written
        self._folded: dict[Words, str] = {}
        self._longest: dict[str, int] = {}  # the words of the longest term with this first word, without capitals
        for words, translation in self._translations.items():
            for fold in _FOLDS:
                folded = tuple(map(fold, words))
                self._folded.setdefault(folded, translation)
                self._longest[folded[0]] = max(len(words), self._longest.get(folded[0], 0))
        self.all_translations = list(dict.fromkeys(self._translations.values()))  # each once

    def occurrences(self, text: str) -> list[Mark]:
        """The terms in a text, in their order, none within another; their translations stand apart as words do, also
        where two of them have been translated by one word."""
        words = [*_words(text)]
        found: list[Mark] = []
        place = 0
        while place < len(words):
            stop = place + 1
            longest = max(self._longest.get(fold(words[place].text), 0) for fold in _FOLDS)
            for length in range(longest, 0, -1):
                together = words[place : place + length]
                translation = self._translation(tuple(word.text for word in together))
                if translation is not None:
                    stop = place + length
                    span = (together[0].start, together[-1].stop)
                    before, after = in_word(translation[0]), in_word(translation[-1])
                    found.append(Mark(*span, before=before, after=after, instead=translation, place=span))
                    break
            place = stop
        return found

    def _translation(self, words: Words) -> str | None:
        translation = self._translations.get(words)
        if translation is not None or self.as_written:
            return translation
        candidates = (self._folded.get(tuple(map(fold, words))) for fold in _FOLDS)
        return next((candidate for candidate in candidates if candidate is not None), None)


def read_glossary(path: Path | str, languages: tuple[str | None, str | None], *, as_written: bool = False) -> Glossary:
    """Read a file of terms: UTF-8, plain or gzip, with tabs, commas, semicolons, or | between its columns.

    The first row is a header if it names a column for each side, as "source" and "target" or by the `languages` of the
    model; a warning says so, and rows without one of the two are left out. Otherwise there are two columns, or two more
    with the codes of languages, of which other rows are left out. Quotation marks are those of CSV; in a table with
    tabs, those around a whole cell. Blank lines are skipped, and so are lines that begin with "#" and have no tab.

    Warns of terms that have several translations, of which the first counts. Raises UserError with a message for each
    row that is no term.
    """
    problems: list[str] = []
    repeated: list[str] = []
    with collected(problems):
        translations = _by_words(_terms(Path(path), languages, problems), problems, repeated)
    refuse_lines(path, problems)
    if not translations:
        raise UserError(f"{path}: has no terms; expected lines with a term, a tab, and its translation")
    for message in first_of(repeated, _MOST_REPEATED, before=f"{path}: ", after=" terms have another translation"):
        warnings.warn(message, InputWarning, stacklevel=2)
    terms = {" ".join(words): translation for words, translation in translations.items()}
    return Glossary(terms, as_written=as_written)


class Dictionary(dict[str, str]):
    """The translations of words, all of which have been checked."""


def read_dictionary(path: Path) -> Dictionary:
    """The translations of words: on each line a word, a tab or spaces, and its translation, which has several words
    only behind a tab; of several translations the first counts.

    Raises UserError with a message for each line that is no entry.
    """
    problems: list[str] = []
    dictionary = Dictionary()
    for number, line in enumerate(read_lines(path), 1):
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if len(cells) == 2 and all(cells) and len(cells[0].split()) == 1:
            dictionary.setdefault(cells[0], cells[1])
        elif cells:
            problems.append(f"{path}, line {number}: {excerpt(line)}; expected a word, a tab, and its translation")
    refuse_lines(path, problems)
    if not dictionary:
        raise UserError(f"{path}: has no words; expected lines with a word, a tab, and its translation")
    return dictionary


def _terms(path: Path, languages: tuple[str | None, str | None], problems: list[str]) -> Iterator[Row]:
    """The terms and translations of a file, and what messages call their rows."""
    columns: list[int] = []
    stripped = ((line, [cell.strip() for cell in cells]) for line, cells in rows(path, ",;|\t", of_terms=True))
    for place, (line, row) in enumerate((line, cells) for line, cells in stripped if any(cells)):
        name = f"{path}, line {line}"
        if place == 0 and (columns := _columns(row, languages)):
            names = " and ".join(f"{row[column]!r}" for column in columns)
            what = f"{name}: a header; terms and their translations are in the columns {names}"
            warnings.warn(what, InputWarning, stacklevel=4)
        elif columns:
            term, translation = ("".join(row[column : column + 1]) for column in columns)
            if term and translation:
                yield name, term, translation
        elif len(row) == 2 or _has_codes(row):
            of_row = zip(languages, row[2:], strict=False)
            if all(language is None or code_of(language) == code_of(code) for language, code in of_row):
                yield name, row[0], row[1]
        else:
            header = " (or a first row that names two columns: source and target, or by their languages)"
            expected = f"expected a term, a tab, and its translation{header if len(row) > 2 else ''}"
            problems.append(f"{name}: {counted(len(row), 'column')}; {expected}")


def _columns(row: Sequence[str], languages: tuple[str | None, str | None]) -> list[int]:
    """The columns of terms and of translations where a row names both: by the languages, or else as `_SIDES` does."""
    names = [
        [language, code := code_of(language), name_of(code), *side] if language else side
        for side, language in zip(_SIDES, languages, strict=True)
    ]
    columns = places_of(row, names)
    return [] if _has_codes(row) and sorted(columns) == [2, 3] else columns


def _has_codes(row: Sequence[str]) -> bool:
    """Whether a row has a term, its translation, and their languages, as DeepL writes it."""
    return len(row) == 4 and all(map(CODE.fullmatch, row[2:]))


def _by_words(rows: Iterable[Row], problems: list[str], repeated: list[str]) -> dict[Words, str]:
    """The translations of terms by their words; `repeated`: which have another one as well."""
    translations: dict[Words, str] = {}
    for name, term, translation in rows:
        if not (isinstance(term, str) and isinstance(translation, str)):  # possible from Python alone
            problems.append(f"{name}: {term!r} is to be {translation!r}; both must be strings")
            continue
        words, written = tuple(word.text for word in _words(term)), " ".join(translation.split())
        if not words or not written:
            problems.append(f"{name}: {term!r} is to be {translation!r}; expected words on both sides")
        elif (other := translations.setdefault(words, written)) != written:
            repeated.append(f"{name}: {term!r} is to be {written!r}, and before {other!r}, which counts")
    return translations


def count_words(phrase: str, text: str) -> int:
    """How often a text has a phrase, whatever its capitals, and not as a part of words."""
    words, several = ([word.text.casefold() for word in _words(one)] for one in (phrase, text))
    return sum(several[place : place + len(words)] == words for place in range(len(several)))


class _Word(NamedTuple):
    """A word, or what stands between words besides white space, and its characters [start, stop) in the text."""

    text: str  # composed, and without what is not to be seen, such as a soft hyphen
    start: int
    stop: int


def _words(text: str) -> Iterator[_Word]:
    """The words of a text and what stands between them, character by character.

    Of scripts without spaces every character is a word.
    """
    for match in WORD_OR_SIGN.finditer(text):
        seen = match[0] if match[0].isascii() else unicodedata.normalize("NFC", _HIDDEN.sub("", match[0]))
        if seen:
            yield _Word(seen, *match.span())


# A word is another one's if one of these makes both alike; in Turkish and Azerbaijani I is the capital of ı, and İ of i
_FOLDS = (str.casefold, lambda word: word.replace("I", "ı").replace("İ", "i").casefold())
