"""Glossaries: how terms are to be translated, wherever they occur in a text.

A glossary is a table of terms and their translations, separated by tabs or as CSV. A term is found as whole words, of
several that begin at a word the longest, and its translation takes the place of the words that are aligned with it
(see `marks`). It knows text; it knows no subwords and no models.
"""

import csv
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.corpus import LONGEST_LINE, read_lines
from nmt.decoding.text.languages import NAMES
from nmt.decoding.text.required import in_word
from nmt.errors import InputWarning, UserError, counted, first_of, refuse, refuse_lines

Words = tuple[str, ...]
Row = tuple[int, Any, Any]  # the number of its line, a term, and its translation

_MOST_REPEATED = 5  # terms that a warning names
_SIDES = ({"source", "source term", "term"}, {"target", "target term", "translation"})  # as headers call them
_CODES = {name.lower(): code for code, name in NAMES.items()}


class Occurrence(NamedTuple):
    """A term in a text: the characters [start, stop), and their translation."""

    start: int
    stop: int
    translation: str


class Glossary:
    """Terms and their translations. `as_written`: a term is found only with its own capitals.

    Otherwise capitals make no difference, those of Turkish included, but a term that is written like the text is
    preferred.
    """

    def __init__(self, terms: Mapping[str, str], *, as_written: bool = False) -> None:
        """Of terms with the same words the first counts. Raises UserError where one, or its translation, has none."""
        problems: list[str] = []
        rows = ((0, term, translation) for term, translation in terms.items())
        translations = _by_words(rows, problems, [], name="glossary")
        refuse(problems)
        self._index(translations, as_written)

    def _index(self, translations: dict[Words, str], as_written: bool) -> None:
        self.as_written = as_written
        self._translations = translations
        self._folded: dict[Words, str] = {}
        self._longest: dict[str, int] = {}  # the words of the longest term with this first word, without capitals
        for words, translation in translations.items():
            has_turkish = any("I" in word or "İ" in word for word in words)
            for fold in _FOLDS if has_turkish else _FOLDS[:1]:
                folded = tuple(map(fold, words))
                self._folded.setdefault(folded, translation)
                self._longest[folded[0]] = max(len(words), self._longest.get(folded[0], 0))
        self.all_translations = list(dict.fromkeys(self._translations.values()))  # each once

    def occurrences(self, text: str) -> list[Occurrence]:
        """The terms in a text, in their order, none within another."""
        words = [*_words(text)]
        found: list[Occurrence] = []
        place = 0
        while place < len(words):
            stop = place + 1
            longest = max(self._longest.get(fold(words[place].text), 0) for fold in _FOLDS)
            for length in range(longest, 0, -1):
                together = words[place : place + length]
                translation = self._translation(tuple(word.text for word in together))
                if translation is not None:
                    stop = place + length
                    found.append(Occurrence(together[0].start, together[-1].stop, translation))
                    break
            place = stop
        return found

    def _translation(self, words: Words) -> str | None:
        translation = self._translations.get(words)
        if translation is not None or self.as_written:
            return translation
        candidates = (self._folded.get(tuple(map(fold, words))) for fold in _FOLDS)
        return next((candidate for candidate in candidates if candidate is not None), None)


def read_glossary(
    path: Path | str, *, as_written: bool = False, languages: tuple[str | None, str | None] = (None, None)
) -> Glossary:
    """Read a file of terms: UTF-8, plain or gzip, with tabs, commas, semicolons, or | between its columns.

    With tabs or as CSV, a text in quotation marks may have these as well. A header may say which columns have the terms
    and their translations: as "source" and "target", or as the codes or names of the `languages`, or of two that are
    not known; rows without one of the two are left out. Without a header there are two columns, or further ones with
    the codes of the languages. Blank lines are skipped, and so are lines that begin with "#" and have no tab.

    Warns of terms that have several translations, of which the first counts. Raises UserError with a message for each
    line that is no term.
    """
    problems: list[str] = []
    repeated: list[str] = []
    rows = _rows(Path(path), languages, problems)
    translations = _by_words(rows, problems, repeated, name=f"{path}, line")
    refuse_lines(path, problems)
    if not translations:
        raise UserError(f"{path}: has no terms; expected lines with a term, a tab, and its translation")
    if repeated:
        for message in first_of(repeated, _MOST_REPEATED, before=f"{path}: ", after=" terms have another translation"):
            warnings.warn(message, InputWarning, stacklevel=2)
    glossary = Glossary({})
    glossary._index(translations, as_written)
    return glossary


def _rows(path: Path, languages: tuple[str | None, str | None], problems: list[str]) -> Iterator[Row]:
    """The rows of a file that have something in the columns of terms and translations."""
    lines = read_lines(path)
    before = 0
    first = ""
    for first in lines:
        if first.strip() and not (first.startswith("#") and "\t" not in first):
            break
        before += 1
    delimiter = "\t" if "\t" in first else max(",;|", key=first.count)
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    columns = None
    try:
        for row in reader:
            number = before + reader.line_num
            if reader.line_num == 1 and (columns := _columns(row, languages, f"{path}, line {number}")) is not None:
                continue
            if not any(map(str.strip, row)) or (row[0].startswith("#") and (delimiter != "\t" or len(row) == 1)):
                continue
            cells = row if columns is None else [(row[place : place + 1] or [""])[0] for place in columns]
            if columns is None and not (len(row) == 2 or (len(row) > 2 and all(map(_is_language, row[2:])))):
                what = f"{counted(len(row), 'column')}; expected a term, a tab, and its translation"
                problems.append(f"{path}, line {number}: {what}")
            elif columns is None or all(map(str.strip, cells)):
                yield number, cells[0].strip(), cells[1].strip()
    except csv.Error as error:
        problems.append(f"{path}, line {before + reader.line_num}: not as in CSV: {error}")


def _columns(row: Sequence[str], languages: tuple[str | None, str | None], where: str) -> tuple[int, int] | None:
    """The columns of terms and of translations by the names in a header; None where the row is none.

    Raises UserError where the header has other languages, or does not say which two are meant.
    """
    names = [cell.strip().lower().replace("_", "-") for cell in row]
    sides = [
        [place for place, name in enumerate(names) if name in side or (language and _is_language(name, language))]
        for side, language in zip(_SIDES, languages, strict=True)
    ]
    if all(sides):
        return sides[0][0], sides[1][0]
    of_languages = [place for place, name in enumerate(names) if _is_language(name)]
    if len(of_languages) < 2 or (len(row) == 4 and of_languages == [2, 3]):  # or a term with its languages
        return None
    if len(of_languages) > 2 or all(languages):
        wanted = " and ".join(language for language in languages if language) or "two languages"
        raise UserError(f"{where}: a header, of {', '.join(row)}; expected columns of {wanted}, or source and target")
    return of_languages[0], of_languages[1]


def _is_language(name: str, language: str = "") -> bool:
    """Whether a text is the code of a language, such as EN or en-US, or its English name; or of this one."""
    code = re.split("[-_]", name.strip().lower())[0]
    code = _CODES.get(code, code)
    return code in NAMES and language.lower().split("-")[0] in ("", code)


def _by_words(rows: Iterable[Row], problems: list[str], repeated: list[str], *, name: str) -> dict[Words, str]:
    """The translations of terms by their words; `repeated`: which have another one as well; `name` is for messages."""
    translations: dict[Words, str] = {}
    for number, term, translation in rows:
        where = f"{name} {number}" if number else name
        if not (isinstance(term, str) and isinstance(translation, str)):  # possible from Python alone
            problems.append(f"{where}: {term!r} is to be {translation!r}; both must be strings")
            continue
        words, written = tuple(word.text for word in _words(term)), " ".join(translation.split())
        if not words or not written:
            problems.append(f"{where}: {term!r} is to be {translation!r}; expected words on both sides")
        elif (other := translations.setdefault(words, written)) != written:
            repeated.append(f"{where}: {term!r} is to be {written!r}, and before {other!r}, which counts")
    return translations


def count_words(phrase: str, text: str) -> int:
    """How often a text has a phrase, whatever its capitals, and not as a part of words."""
    words, several = ([word.text.casefold() for word in _words(one)] for one in (phrase, text))
    return sum(several[place : place + len(words)] == words for place in range(len(several)))


_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")


class _Word(NamedTuple):
    """A word, or what stands between words besides white space, and its characters [start, stop) in the text."""

    text: str  # composed, and without what is not to be seen, such as a soft hyphen
    start: int
    stop: int


def _words(text: str) -> Iterator[_Word]:
    """The words of a text and what stands between them, character by character.

    Of scripts without spaces every character is a word.
    """
    if text.isascii():  # as below, and ten times as fast
        yield from (_Word(match[0], *match.span()) for match in _ASCII_WORD.finditer(text))
        return
    start = 0
    for kind, characters in groupby(text, _kind):
        together = "".join(characters)
        if kind == "word":
            seen = "".join(character for character in together if unicodedata.category(character) != "Cf")
            if seen:
                yield _Word(unicodedata.normalize("NFC", seen), start, start + len(together))
        elif kind == "single":
            yield from (_Word(character, place, place + 1) for place, character in enumerate(together, start))
        start += len(together)


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> str:
    if character.isspace() or character == "\u200b":  # which allows a line break, as a space does
        return "space"
    is_hidden = unicodedata.category(character) == "Cf"  # which is a part of the word that it is in
    return "word" if is_hidden or in_word(character) else "single"


def _folded_as_turkish(word: str) -> str:
    """Without capitals, where I is that of ı, and İ that of i, as in Turkish and Azerbaijani."""
    return word.replace("I", "ı").replace("İ", "i").casefold()


_FOLDS = (str.casefold, _folded_as_turkish)  # a word is another one's if one of them makes both alike
