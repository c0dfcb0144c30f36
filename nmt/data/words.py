"""Which words each piece stands for, in a line as it was given and in a text as it is written.

A word is what stands between white space: `line.split()`, joined where the text was cut before (`Subwords.joiner`).
With `finer`, it is cut further in scripts without spaces: into single characters, or what a piece has several of.
Pieces are matched by the characters that they stand for, so normalization, unknown pieces and the type of the subword
model make no difference. It knows subwords and text only.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import regex

from nmt.data.subwords import Subwords
from nmt.text_form import UNSPACED

Span = tuple[int, int]  # characters [start, stop)

# With the punctuation of kana and Han
ALONE = f"{UNSPACED}\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f"
_ALONE = re.compile(f"[{ALONE}]")
# With the characters inside of words that nobody sees, but no zero-width space, which allows a line break
WORD_OR_SIGN = regex.compile(rf"[{ALONE}]|(?:(?![{ALONE}\u200b])[\p{{L}}\p{{M}}\p{{N}}\p{{Cf}}])+|\S\p{{VS}}*")
_WORD, _FINER = re.compile(r"\S+"), re.compile(rf"[{ALONE}]|[^\s{ALONE}]+")
CLOSING = ".,;:!?…)]}»”’、。〉》」』】〕〗〙〞〟！），．：；？］｝｠｡｣､،؛؟۔।"  # belongs to the word before
# What parts words there as white space does: letters, and what belongs to the word before it
_BEHIND = regex.compile(rf"(?V1)[\s[{ALONE}--[\p{{P}}\p{{S}}]]]")
_BEFORE = regex.compile(rf"(?V1)[\s[{ALONE}--[[\p{{P}}\p{{S}}]--[{re.escape(CLOSING)}]]]]")
OPENING_SIGNS = "([{«„‘“¿¡〈《「『【〔〖〘〝（［｛｟｢"
CLOSING_SIGNS = re.escape(f"{CLOSING}%％·･・〜～")
_LEADING = "\u0e40-\u0e44\u0ec0-\u0ec4\u1039\u17d2"  # Thai and Lao vowels before their consonant; what stacks one below
_TRAILING = (  # vowels and signs behind their consonant, by script; small kana and repetition marks
    "\u0e2f-\u0e3a\u0e45-\u0e4e\u0eaf-\u0ebd\u0ec6-\u0ece\u0f0b-\u0f14\u102b-\u103e\u104a\u104b\u17b6-\u17da\u17dd"
    "々〻ぁぃぅぇぉっゃゅょゎゕゖ\u3099-\u309eァィゥェォッャュョヮヵヶー-ヾｧ-ｰﾞﾟ"
)
_HIRAGANA, _KATAKANA = "\u3041-\u3096", "\u30a1-\u30fa\u30fc\uff66-\uff9d"
# Two characters, one behind the other, between which a line is not broken; Japanese grammar is in hiragana, behind the
# Han or katakana it belongs to
_TOGETHER = re.compile(
    rf"[{OPENING_SIGNS}{_LEADING}].|.[{CLOSING_SIGNS}{_TRAILING}]"
    rf"|[{_KATAKANA}]{{2}}|[\u3400-\u9fff々{_KATAKANA}][{_HIRAGANA}]"
    r"|\d\d|[\"'].|.[\"']|.[\u1000-\u1021]\u1037?\u103a"  # numbers; quotes, of which one side is open; a Burmese final
    r"|[^\u0f0b-\u0f14][\u0f00-\u0fff]"  # a Tibetan syllable
)
UNKNOWN_MARK = "\ud800"  # stands for an unknown piece inside a text; half a surrogate pair, which no text can hold


def are_apart(before: str, behind: str) -> tuple[bool, bool]:
    """Whether a text with spaces between words has one between what stands by itself and each of the characters beside
    it: where they are white space, or of a script without spaces. "" is none."""
    return _BEFORE.match(before) is not None, _BEHIND.match(behind) is not None


class PieceWords(NamedTuple):
    """The words of a text, and for each piece the places of its first and last word, from 0; 0 if the text has none."""

    words: list[str]
    places: list[int]
    lasts: list[int]

    def part(self, first: int, pieces: int) -> "PieceWords":
        """The same for `pieces` pieces from piece `first` on; the words stay those of the whole text."""
        chosen = slice(first, first + pieces)
        return PieceWords(self.words, self.places[chosen], self.lasts[chosen])


def are_together(text: str, place: int) -> bool:
    """Whether a line is better not broken between the character at `place` and the next, as before a closing bracket.

    It follows the classes of Unicode's line breaking (UAX #14), and for what those leave to a dictionary, as in Thai,
    at least no letter loses its vowels.
    """
    return _TOGETHER.match(text, place) is not None


def has_finer(text: str) -> bool:
    """Whether a text has words that are cut with `finer`."""
    return _ALONE.search(text) is not None


def words_of(text: str) -> list[Span]:
    """The words of a text, of which every character of a script without spaces is one."""
    return [match.span() for match in _FINER.finditer(text)]


def overlapping(spans: Sequence[Span], span: Span) -> range:
    """Which of the spans, in order, have some of the characters of another one; of an empty one, that around it."""
    first = bisect_right(spans, span[0], key=lambda other: other[1])
    return range(first, max(bisect_left(spans, span[1], key=lambda other: other[0]), first))


def words_of_line(line: str, subwords: Subwords) -> PieceWords:
    """The words of a line, for the pieces that `subwords` cuts it into."""
    if not subwords.joiner:
        return words_of_parts(line, subwords.spans(line))
    text = subwords.whole_words(line)
    return words_of_parts(text, spans_of_parts(subwords.line_parts(line), text))


def spans_of_parts(parts: Iterable[str], text: str) -> list[Span]:
    """The characters of a text that each of its parts is, without white space, which may be another in the text.

    What the text does not have at its end, as the period of a title, is none of them.
    """
    solid = [place for place, character in enumerate(text) if not character.isspace()]
    solid.append(len(text))
    spans: list[Span] = []
    first = 0
    for part in parts:
        last = min(first + len("".join(part.split())), len(solid) - 1)
        spans.append((solid[first], solid[last - 1] + 1 if first < last else solid[first]))
        first = last
    return spans


def parts_of_line(line: str, subwords: Subwords) -> list[str]:
    """What each piece of a line stands for: together they are the line, with whole words; none of one without pieces.

    What no piece stands for belongs to the piece after it, and after the last piece to that.
    """
    if subwords.joiner:
        return subwords.line_parts(line)
    stops = [stop for _, stop in subwords.spans(line)]
    return [line[start:stop] for start, stop in pairwise([0, *stops[:-1], len(line)])] if stops else []


def words_of_parts(text: str, spans: Iterable[Span], *, finer: bool = False) -> PieceWords:
    """The words of `text` for its parts [start, stop), which are in order.

    A part's first word is the first that ends after its start, its last word the last that begins before its stop. So
    white space belongs to the word after it, and after the last word to the last.
    """
    words = words_of(text) if finer else [match.span() for match in _WORD.finditer(text)]
    places, lasts = [], []
    place = 0
    for start, stop in spans:
        while place < len(words) - 1 and words[place][1] <= start:
            place += 1
        last = place
        while last < len(words) - 1 and words[last + 1][0] < stop:
            last += 1
        places.append(place)
        lasts.append(last)
    if finer:
        words, places, lasts = _joined(words, places, lasts)
    return PieceWords([text[start:stop] for start, stop in words], places, lasts)


def _joined(
    words: Sequence[Span], places: Sequence[int], lasts: Sequence[int]
) -> tuple[list[Span], list[int], list[int]]:
    """The words, joined where a piece has several with no white space between them; and the places among these."""
    joined: list[Span] = []
    numbers: list[int] = []  # which of the joined ones each word is in
    inside = {word for place, last in zip(places, lasts, strict=True) for word in range(place + 1, last + 1)}
    for word, (start, stop) in enumerate(words):
        if word in inside and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, stop))
        numbers.append(len(joined) - 1)
    numbers = numbers or [0]
    return joined, [numbers[place] for place in places], [numbers[last] for last in lasts]
