"""Which words each piece stands for, in a line as it was given and in a text as it is written.

A word is what stands between white space: `line.split()`, joined where the text was cut before (`Subwords.joiner`).
Pieces are matched by the characters that they stand for, so normalization, unknown pieces and the type of the subword
model make no difference. It knows subwords and text only.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from nmt.data.subwords import Subwords

UNKNOWN_MARK = "\ud800"  # stands for an unknown piece inside a text; half a surrogate pair, which no text can hold


class PieceWords(NamedTuple):
    """The words of a text, and for each piece the places of its first and last word, from 0; 0 if the text has none."""

    words: list[str]
    places: list[int]
    lasts: list[int]

    def part(self, first: int, pieces: int) -> "PieceWords":
        """The same for `pieces` pieces from piece `first` on; the words stay those of the whole text."""
        chosen = slice(first, first + pieces)
        return PieceWords(self.words, self.places[chosen], self.lasts[chosen])


def words_of_line(line: str, subwords: Subwords, *, sentences: Iterable[tuple[str, int]] | None = None) -> PieceWords:
    """The words of a line, for the pieces that `subwords` cuts it into.

    `sentences`: the parts of the line that are cut into pieces by themselves, and where they begin; with a `joiner`
    they consist of whole words.
    """
    if subwords.joiner:
        return _words_of(subwords.line_parts(line))
    parts = [(line, 0)] if sentences is None else sentences
    spans = ((begin + start, begin + stop) for text, begin in parts for start, stop in subwords.spans(text))
    return words_of_parts(line, spans)


def words_of_tokens(
    tokens: Sequence[int],
    subwords: Subwords,
    *,
    mark: str | None = None,
    marked: int | None = None,
    beginning: Sequence[str] = (),
) -> PieceWords:
    """The words of the text that `tokens` spell, in which `mark`, if given, stands for each unknown piece, or for each
    among the first `marked`.

    `beginning`: what the text begins with instead of what the first pieces spell, as a part for each of these pieces.
    """
    parts = subwords.text_parts(tokens, mark, marked)
    spelled, rest = "".join(parts[: len(beginning)]), parts[len(beginning) :]
    if rest and spelled.strip():
        rest[0] = spelled[len(spelled.rstrip()) :] + rest[0]  # the white space between the two
    return _words_of([*beginning, *rest])


def parts_of_line(line: str, subwords: Subwords) -> list[str]:
    """What each piece of a line stands for: together they are the line, with whole words; none of one without pieces.

    What no piece stands for belongs to the piece after it, and after the last piece to that.
    """
    if subwords.joiner:
        return subwords.line_parts(line)
    stops = [stop for _, stop in subwords.spans(line)]
    return [line[start:stop] for start, stop in pairwise([0, *stops[:-1], len(line)])] if stops else []


def _words_of(parts: Sequence[str]) -> PieceWords:
    """The words of the text that its parts spell."""
    return words_of_parts("".join(parts), pairwise(accumulate(map(len, parts), initial=0)))


def words_of_parts(text: str, spans: Iterable[tuple[int, int]]) -> PieceWords:
    """The words of `text` for its parts [start, stop), which are in order.

    A part's first word is the first that ends after its start, its last word the last that begins before its stop. So
    white space belongs to the word after it, and after the last word to the last.
    """
    words = list(re.finditer(r"\S+", text))
    places, lasts = [], []
    place = 0
    for start, stop in spans:
        while place < len(words) - 1 and words[place].end() <= start:
            place += 1
        last = place
        while last < len(words) - 1 and words[last + 1].start() < stop:
            last += 1
        places.append(place)
        lasts.append(last)
    return PieceWords([word[0] for word in words], places, lasts)
