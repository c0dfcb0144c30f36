"""Glossaries: how terms are to be translated, wherever they occur in a text.

A glossary is a file with a term and its translation on each line, separated by a tab. A term is found as whole words,
of several that begin at a word the longest, and its translation takes the place of the words that are aligned with it
(see `marks`). It knows text; it knows no subwords and no models.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.corpus import read_lines
from nmt.decoding.text.required import in_word
from nmt.errors import UserError, counted, refuse, refuse_lines

Words = tuple[str, ...]


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
        """Raises UserError where a term or its translation has no words, or where one term has two translations."""
        self.as_written = as_written
        problems: list[str] = []
        rows = (("glossary", term, translation) for term, translation in terms.items())
        self._translations = _by_words(rows, problems)
        refuse(problems)
        self._folded: dict[Words, str] = {}
        lengths: dict[str, set[int]] = {}  # of the terms, by their first words without capitals
        for words, translation in self._translations.items():
            for fold in _FOLDS:
                self._folded.setdefault(tuple(map(fold, words)), translation)
                lengths.setdefault(fold(words[0]), set()).add(len(words))
        self._lengths = lengths
        self.all_translations = list(dict.fromkeys(self._translations.values()))  # each once

    def occurrences(self, text: str) -> list[Occurrence]:
        """The terms in a text, in their order, none within another."""
        words = [*_words(text)]
        found: list[Occurrence] = []
        place = 0
        while place < len(words):
            stop = place + 1
            for length in self._lengths_from(words[place].text):
                together = words[place : place + length]
                translation = self._translation(tuple(word.text for word in together))
                if translation is not None:
                    stop = place + length
                    found.append(Occurrence(together[0].start, together[-1].stop, translation))
                    break
            place = stop
        return found

    def _lengths_from(self, word: str) -> list[int]:
        """Of the terms that begin with a word, the longest first."""
        return sorted({length for fold in _FOLDS for length in self._lengths.get(fold(word), ())}, reverse=True)

    def _translation(self, words: Words) -> str | None:
        translation = self._translations.get(words)
        if translation is not None or self.as_written:
            return translation
        candidates = (self._folded.get(tuple(map(fold, words))) for fold in _FOLDS)
        return next((candidate for candidate in candidates if candidate is not None), None)


def read_glossary(path: Path | str, *, as_written: bool = False) -> Glossary:
    """Read a file of terms: UTF-8, plain or gzip, a term, a tab and its translation on each line.

    Blank lines are skipped, and so are lines that begin with "#" and have no tab. Raises UserError with a message for
    each line that is no term, or that gives a term another translation than an earlier line.
    """
    rows: list[tuple[str, str, str]] = []
    problems: list[str] = []
    for number, line in enumerate(read_lines(Path(path)), start=1):
        columns = line.split("\t")
        if not line.strip() or (line.startswith("#") and len(columns) == 1):
            continue
        where = f"{path}, line {number}"
        if len(columns) == 2:
            rows.append((where, columns[0].strip(), columns[1].strip()))
        else:
            count = counted(len(columns), "column")
            problems.append(f"{where}: {count}; expected a term, a tab, and its translation")
    _by_words(rows, problems)
    refuse_lines(path, problems)
    if not rows:
        raise UserError(f"{path}: has no terms; expected lines with a term, a tab, and its translation")
    terms = {term: translation for _, term, translation in rows}
    return Glossary(terms, as_written=as_written)


def _by_words(rows: Iterable[tuple[str, Any, Any]], problems: list[str]) -> dict[Words, str]:
    """The translations of terms by their words, from rows of a place for messages, a term, and its translation."""
    translations: dict[Words, str] = {}
    for where, term, translation in rows:
        given = f"{where}: {term!r} is to be {translation!r}"
        if not (isinstance(term, str) and isinstance(translation, str)):  # possible from Python alone
            problems.append(f"{given}; both must be strings")
            continue
        words, written = tuple(word.text for word in _words(term)), " ".join(translation.split())
        if not words or not written:
            problems.append(f"{given}; expected words on both sides")
        elif (other := translations.setdefault(words, written)) != written:
            problems.append(f"{given}, and also {other!r}; leave out one of the two")
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
