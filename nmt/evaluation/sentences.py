"""What can be said of a single sentence: its words, where it differs from others, what it repeats, what is unknown.

A word is a run of letters, marks and digits; of scripts that are written without spaces (Chinese and Japanese) it is a
single character. What is neither a word nor white space is a sign. Pure functions of text; no metrics and no files.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

import regex

from nmt.text_form import HAN_OR_KANA

UNKNOWN_MARKS = ("⁇", "<unk>")  # what stands in a translation for a piece that is in no vocabulary

Span = tuple[int, int]  # [start, stop) in a text

_UNSPACED = f"\u3005-\u3007{HAN_OR_KANA}"
_JOINERS = "_\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_WORD = rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}{_JOINERS}])+"
_WORDS, _WORDS_AND_SIGNS = regex.compile(_WORD), regex.compile(rf"{_WORD}|[^\s\x1c-\x1f]")
_LETTER = regex.compile(r"(?![\s\x1c-\x1f])\X")


class Share(NamedTuple):
    """How many of how many."""

    part: int
    whole: int

    @property
    def rate(self) -> float | None:
        """From 0 to 1; None of nothing."""
        return self.part / self.whole if self.whole else None


def total(shares: Iterable[Share]) -> Share:
    """The share of all together."""
    parts, wholes = zip((0, 0), *shares, strict=True)
    return Share(sum(parts), sum(wholes))


def words(text: str) -> list[str]:
    """The words of a text, without its signs."""
    return [match[0] for match in _WORDS.finditer(text)]


def spans(text: str, unit: "regex.Pattern[str]" = _WORDS_AND_SIGNS) -> list[Span]:
    """Where the words and signs, or other units, of a text stand."""
    return [match.span() for match in unit.finditer(text)]


def differing(
    texts: Sequence[str], others: Sequence[str], *, by_letters: bool = False
) -> tuple[list[list[Span]], list[list[Span]]]:
    """For each text the words and signs, or letters, that stand in none of the others; for each of the others likewise.

    What two sentences share is what Python's difflib finds: the longest common run of words and signs, and so on to
    both sides of it.
    """
    unit = _LETTER if by_letters else _WORDS_AND_SIGNS
    left, right = ([dict(enumerate(spans(text, unit))) for text in side] for side in (texts, others))
    for one, of_one in zip(texts, left, strict=True):
        for other, of_other in zip(others, right, strict=True):
            both = map(unit.findall, (one, other))
            for first, second, size in SequenceMatcher(None, *both).get_matching_blocks():
                for place in range(size):
                    of_one.pop(first + place, None)
                    of_other.pop(second + place, None)
    return [[*places.values()] for places in left], [[*places.values()] for places in right]


def repetition(sentence_words: Sequence[str]) -> Share:
    """Of the pairs of neighboring words, those that are one word twice, or that the sentence already had.

    Case is ignored. "the cat and the cat cat" has two of five: its second "the cat", and "cat cat".
    """
    lower = [word.casefold() for word in sentence_words]
    seen: set[tuple[str, str]] = set()
    count = 0
    for pair in pairwise(lower):
        count += pair in seen or pair[0] == pair[1]
        seen.add(pair)
    return Share(count, max(len(lower) - 1, 0))


def unknown(text: str) -> Share:
    """Of what stands between white space, the words with a mark for what is in no vocabulary."""
    parts = text.split()
    return Share(sum(any(mark in part for mark in UNKNOWN_MARKS) for part in parts), len(parts))


def unseen(sentence_words: Sequence[str], counts: dict[str, int]) -> Share:
    """Of the words, those that have no count: that never occur in the text in which `frequencies` counted."""
    return Share(sum(not counts.get(word.casefold()) for word in sentence_words), len(sentence_words))


def frequencies(lines: Iterable[str], chosen: Iterable[str]) -> dict[str, int]:
    """How often each of the `chosen` words occurs in the lines; case is ignored, and keys are case-folded."""
    counts = dict.fromkeys((word.casefold() for word in chosen), 0)
    for line in lines:
        for word in words(line.casefold()):
            if word in counts:
                counts[word] += 1
    return counts


def rarest(sentence_words: Sequence[str], counts: dict[str, int]) -> tuple[str, int] | None:
    """The word that occurs least often, the first of equals, and how often; None where there is no word."""
    return min(((word, counts[word.casefold()]) for word in sentence_words), key=lambda item: item[1], default=None)
