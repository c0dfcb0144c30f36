"""What can be said of a single sentence: its words, where it differs from others, what it repeats, what is unknown.

A word is a run of letters, marks and digits; of scripts that are written without spaces (Chinese and Japanese) it is a
single character. What is neither a word nor white space is a sign. Pure functions of text; no metrics and no files.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

UNKNOWN_MARKS = ("⁇", "<unk>")  # what stands in a translation for a piece that is in no vocabulary
LARGEST_TABLE = 10**8  # pairs of places in two texts that are compared, a bit each

Span = tuple[int, int]  # [start, stop) in a text

_WORD, _ALONE, _SIGN, _SPACE = "was "
_TOKEN = re.compile(f"{_WORD}+|{_ALONE}|{_SIGN}")
_WORDS = re.compile(f"{_WORD}+|{_ALONE}")
_JOINERS = "_\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_UNSPACED = re.compile("[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


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


@cache
def _kind(character: str) -> str:
    if character.isspace():
        return _SPACE
    if _UNSPACED.match(character):
        return _ALONE
    return _WORD if unicodedata.category(character)[0] in "LMN" or character in _JOINERS else _SIGN


def spans(text: str) -> list[Span]:
    """Where the words and signs of a text stand."""
    return [match.span() for match in _TOKEN.finditer("".join(map(_kind, text)))]


def words(text: str) -> list[str]:
    """The words of a text, without its signs."""
    return [text[match.start() : match.end()] for match in _WORDS.finditer("".join(map(_kind, text)))]


def differing(texts: Sequence[str], others: Sequence[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """For each text the words and signs that stand in none of the others, and for each of the others likewise.

    What two sentences share is the longest common subsequence of their words and signs, as they are written.
    """
    places = [[spans(text) for text in side] for side in (texts, others)]
    ours, theirs = (
        [[text[start:stop] for start, stop in line] for text, line in zip(side, lines, strict=True)]
        for side, lines in zip((texts, others), places, strict=True)
    )
    shared: list[list[set[int]]] = [[set() for _ in texts], [set() for _ in others]]
    for one, of_one in zip(ours, shared[0], strict=True):
        for other, of_other in zip(theirs, shared[1], strict=True):
            for first, second in common_subsequence(one, other):
                of_one.add(first)
                of_other.add(second)
    left, right = (
        [
            [span for place, span in enumerate(line) if place not in same]
            for line, same in zip(lines, same_places, strict=True)
        ]
        for lines, same_places in zip(places, shared, strict=True)
    )
    return left, right


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """The places in both of a longest common subsequence; of equally long ones, that which begins first in `one`.

    length[i][j] = length[i + 1][j + 1] + 1 if one[i] = other[j], else max(length[i + 1][j], length[i][j + 1]).

    A row of lengths is a number whose bits say where length[i][j] > length[i][j + 1], the last j first, so that a long
    sentence takes few steps (Hyyrö, "Bit-Parallel LCS-length Computation Revisited", 2004). They take a bit for each
    pair of places; where more than LARGEST_TABLE are left between a common beginning and a common end, none is looked
    for there.
    """
    begin, end = 0, 0
    shorter = min(len(one), len(other))
    while begin < shorter and one[begin] == other[begin]:
        begin += 1
    while end < shorter - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    rows, columns = one[begin : len(one) - end], other[begin : len(other) - end]
    if len(rows) * len(columns) > LARGEST_TABLE:
        rows = columns = ()
    bits: dict[str, int] = {}  # where each token stands
    for place, token in enumerate(reversed(columns)):
        bits[token] = bits.get(token, 0) | 1 << place
    every = (1 << len(columns)) - 1
    flat, longer = every, []  # where lengths do not grow, and where they do, by row
    for token in reversed(rows):
        here = flat & bits.get(token, 0)
        flat = (flat + here | flat - here) & every
        longer.append(every - flat)
    longer.reverse()
    pairs = [(place, place) for place in range(begin)]
    i = j = 0
    while i < len(rows) and j < len(columns):
        if rows[i] == columns[j]:
            pairs.append((begin + i, begin + j))
            i, j = i + 1, j + 1
        elif longer[i] >> (len(columns) - 1 - j) & 1:
            i += 1
        else:
            j += 1
    pairs += [(len(one) - place, len(other) - place) for place in range(end, 0, -1)]
    return pairs


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
