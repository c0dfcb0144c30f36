"""Glossaries: how terms are to be translated, wherever they occur in a text.

A glossary is a file with a term and its translation on each line, separated by a tab. A term is found as whole words,
of several that begin at a word the longest, and its translation becomes a constraint of the sentence (see `required`).
It knows text; it knows no subwords and no models.
"""

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from nmt.data.corpus import read_lines
from nmt.decoding.text.required import in_word
from nmt.errors import UserError, counted, refuse, refuse_lines

Words = tuple[str, ...]


class _Occurrence(NamedTuple):
    """A term in a text: the words [start, stop), and their translation."""

    start: int
    stop: int
    translation: str


class Glossary:
    """Terms and their translations. `as_written`: a term is found only with its own capitals.

    Otherwise capitals make no difference, those of Turkish included, but a term that is written like the text is
    preferred. `warn` is told, once for each term, of one whose translation cannot be required of a line; `is_news` is
    asked before, for the translation of each term, whether no other process has told of it.
    """

    def __init__(
        self,
        terms: Mapping[str, str],
        *,
        as_written: bool = False,
        warn: Callable[[str], None] = warnings.warn,
        is_news: Callable[[str], bool] | None = None,
    ) -> None:
        """Raises UserError where a term or its translation has no words, or where one term has two translations."""
        self.as_written = as_written
        self._warn, self._is_news = warn, is_news
        self._told: set[str] = set()
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

    def translations(self, text: str) -> list[str]:
        """The translations of the terms in a text, in their order, without repetitions."""
        return list(dict.fromkeys(term.translation for term in self._terms(text)))

    def places_within(self, text: str) -> set[int]:
        """The words of a text, counted from 0, before which it must not be cut, since they go on with a term."""
        return {place for term in self._terms(text) for place in range(term.start + 1, term.stop)}

    def _terms(self, text: str) -> Iterator[_Occurrence]:
        words = words_of(text)
        place = 0
        while place < len(words):
            stop = place + 1
            for length in self._lengths_from(words[place]):
                translation = self._translation(tuple(words[place : place + length]))
                if translation is not None:
                    stop = place + length
                    yield _Occurrence(place, stop, translation)
                    break
            place = stop

    def _lengths_from(self, word: str) -> list[int]:
        """Of the terms that begin with a word, the longest first."""
        return sorted({length for fold in _FOLDS for length in self._lengths.get(fold(word), ())}, reverse=True)

    def _translation(self, words: Words) -> str | None:
        translation = self._translations.get(words)
        if translation is not None or self.as_written:
            return translation
        candidates = (self._folded.get(tuple(map(fold, words))) for fold in _FOLDS)
        return next((candidate for candidate in candidates if candidate is not None), None)

    def tell(self, translation: str, reason: str) -> None:
        """Warn that a translation is left out, unless it has been said before."""
        if translation in self._told:
            return
        self._told.add(translation)
        if self._is_news is None or self._is_news(translation):
            self._warn(f"glossary: {shorten(translation, 50)!r} is left out, which is said once: {reason}")


def read_glossary(
    path: Path | str,
    *,
    as_written: bool = False,
    warn: Callable[[str], None] = warnings.warn,
    is_news: Callable[[str], bool] | None = None,
) -> Glossary:
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
    return Glossary(terms, as_written=as_written, warn=warn, is_news=is_news)


def _by_words(rows: Iterable[tuple[str, Any, Any]], problems: list[str]) -> dict[Words, str]:
    """The translations of terms by their words, from rows of a place for messages, a term, and its translation."""
    translations: dict[Words, str] = {}
    for where, term, translation in rows:
        given = f"{where}: {term!r} is to be {translation!r}"
        if not (isinstance(term, str) and isinstance(translation, str)):  # possible from Python alone
            problems.append(f"{given}; both must be strings")
            continue
        words, written = tuple(words_of(term)), " ".join(translation.split())
        if not words or not written:
            problems.append(f"{given}; expected words on both sides")
        elif (other := translations.setdefault(words, written)) != written:
            problems.append(f"{given}, and also {other!r}; leave out one of the two")
    return translations


def words_of(text: str) -> list[str]:
    """The words of a text and what stands between them besides white space, character by character.

    Of scripts without spaces every character is a word. Accents may be characters of their own or not, and what is not
    to be seen, such as a soft hyphen, does not count.
    """
    return list(_words(text))


def is_between_words(text: str, place: int) -> bool:
    """Whether the words before the character at `place` and those from it on are, together, the words of the text."""
    if not 0 < place < len(text) or text[place - 1].isspace() or text[place].isspace():
        return True
    return not unicodedata.combining(text[place]) and "single" in (_kind(text[place - 1]), _kind(text[place]))


def _words(text: str) -> Iterator[str]:
    seen = (character for character in unicodedata.normalize("NFC", text) if _kind(character) != "nothing")
    for kind, characters in groupby(seen, _kind):
        if kind == "word":
            yield "".join(characters)
        elif kind == "single":
            yield from characters


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> str:
    if character.isspace() or character == "\u200b":  # which allows a line break, as a space does
        return "space"
    if unicodedata.category(character) == "Cf":
        return "nothing"
    return "word" if in_word(character) else "single"


def _folded_as_turkish(word: str) -> str:
    """Without capitals, where I is that of ı, and İ that of i, as in Turkish and Azerbaijani."""
    return word.replace("I", "ı").replace("İ", "i").casefold()


_FOLDS = (str.casefold, _folded_as_turkish)  # a word is another one's if one of them makes both alike
