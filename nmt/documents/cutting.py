"""Translations cut as their source was: among the cues that a sentence goes on over, and into rows on the screen.

A cut is made near the same share of the text, rather where speech pauses, and where few word alignments cross. It knows
lines, words and alignments; it knows nothing of cues, tags and times.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from nmt.data.words import ALONE, CLOSING_SIGNS, OPENING_SIGNS, Span, are_together, has_finer, words_of
from nmt.decoding.text.alignment import weighted_links
from nmt.decoding.text.marks import Weighted
from nmt.decoding.text.sentences import ENDS
from nmt.decoding.writing import Translation

Cut = tuple[str, list[Weighted]]
"""What a text gets of a translation, on one line, with the attention of its words."""

PAUSE = 2.0  # what a cut at a pause may cost, in words away from the same share and alignments that it crosses
CHARACTER = 0.5  # words that one of a script without spaces counts there
ROW_PAUSE = 6.0  # what a row's end at a pause may cost, in columns away from the middle

# As in « Non ! »; dots by themselves may begin what follows
_OPENING_WORD = re.compile(f"[{OPENING_SIGNS}]+")
_CLOSING_WORD = re.compile(rf"(?![.…]+\Z)[{CLOSING_SIGNS}]+")
_PAUSE = re.compile(rf"[{ENDS},;:，、；：،؛–—][\"'”’»)\]」』]*$")
_SPACED = re.compile(rf"[{ALONE}]\s+[{ALONE}]")  # what such scripts often have in place of a comma
_PHRASE_END = re.compile(r"[\u3041-\u3096][\u30a1-\u30fa\u3400-\u9fff]")  # grammar, in hiragana, and a word


def unbroken(text: str) -> list[Span]:
    """Words of a text joined where a line is better not broken between them, as before a closing bracket."""
    joined: list[Span] = []
    for start, stop in words_of(text):
        if joined and (
            (joined[-1][1] == start and are_together(text, start - 1))
            or _OPENING_WORD.fullmatch(text, *joined[-1])
            or _CLOSING_WORD.fullmatch(text, start, stop)
        ):
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


def uncut(lines: Sequence[str], translations: Sequence[Translation]) -> Iterator[Cut]:
    """The translations of the lines, each as a whole."""
    return (cut_among([line], translation)[0] for line, translation in zip(lines, translations, strict=True))


def cut_among(texts: Sequence[str], translation: Translation) -> list[Cut]:
    """The part of the translation for each of the texts.

    A cut is made where the words before it are as large a share of the characters as in the source. It may be moved:
    each word costs one, so does the attention of each that it crosses, and a pause is worth PAUSE. Every text gets a
    word, if there are enough.
    """
    line = " ".join(translation.text.split())
    units = unbroken(line)
    starts = [*(start for start, _ in units), len(line) + 1]
    sizes = [0.0, *accumulate(CHARACTER if has_finer(line[start]) else 1.0 for start, _ in units)]
    words = [*(start for start, _ in words_of(line)), len(line)]
    firsts = [bisect_left(words, min(start, len(line))) for start in starts]  # word of each unit
    counts = [0, *accumulate(len(words_of(text)) for text in texts)]
    characters = [0, *accumulate(len(text) + 1 for text in texts)]
    alignment = translation.finer_alignment or translation.soft_alignment
    links = weighted_links(alignment, " ".join(texts), line)
    cuts = [0]
    for number in range(1, len(texts)):
        share = characters[number] / characters[-1] * starts[-1]
        usual = bisect_left(starts, share)
        usual -= usual > 0 and share - starts[usual - 1] < starts[usual] - share
        crossed = _crossed(counts[number], len(words), links)
        first, last = cuts[-1] + 1, len(units) - (len(texts) - number)
        if last < first:
            first = last = min(cuts[-1] + 1, len(units))
        costs = {
            place: abs(sizes[place] - sizes[usual]) + crossed[firsts[place]] - PAUSE * _pause(line, units, place)
            for place in range(first, last + 1)
        }
        cuts.append(min(costs, key=lambda place: costs[place]))
    cuts.append(len(units))
    parts = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        span = slice(units[first][0], units[last - 1][1]) if first < last else slice(0)
        inside = [
            (source - counts[number], target - firsts[first], weight)
            for source, target, weight in links
            if counts[number] <= source < counts[number + 1] and firsts[first] <= target < firsts[last]
        ]
        parts.append((line[span], inside))
    return parts


def _crossed(boundary: int, words: int, links: Sequence[Weighted]) -> list[float]:
    """How much attention a cut before each of the target words crosses, if the source is cut before word `boundary`."""
    changes = [0.0] * (words + 1)
    for source, target, weight in links:
        changes[0] += weight * (source < boundary)
        changes[target + 1] += -weight if source < boundary else weight
    return list(accumulate(changes))


def _pause(text: str, units: Sequence[Span], place: int) -> float:
    """How well speech may pause before the unit at `place`: 1 after punctuation, less after a Japanese phrase."""
    if not place:
        return 0.0
    start, stop = units[place - 1]
    if _PAUSE.search(text[start:stop]) or _SPACED.match(text, stop - 1):
        return 1.0
    return 0.5 * bool(_PHRASE_END.match(text, stop - 1))


def columns(text: str) -> int:
    """The width of a text on the screen, where a character of Chinese takes two columns and a vowel sign none."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) == "Mn" for character in text)


def in_rows(text: str, *, most: int, longest: int) -> list[str]:
    """The text in rows of about the same width: `most` at most, and no more than rows of `longest` columns need."""
    units = unbroken(text)
    starts = [*(start for start, _ in units), len(text)]
    places = [0, *accumulate(columns(text[start:stop]) for start, stop in pairwise(starts))]  # where each unit begins
    rows: list[str] = []
    first = 0
    for rest in range(min(most, -(-places[-1] // max(longest, 1))), 1, -1):
        share = (places[-1] - places[first]) / rest
        last = bisect_left(places, places[first] + 2 * share)  # what comes later is too long a row
        costs = {
            place: abs(places[place] - places[first] - share) - ROW_PAUSE * _pause(text, units, place)
            for place in range(first + 1, min(last + 1, len(units)))
        }
        if not costs:
            break
        cut = min(costs, key=lambda place: costs[place])
        rows.append(text[units[first][0] : units[cut - 1][1]])
        first = cut
    return [*rows, text[starts[first] :]]
