"""Which word each piece belongs to, in a line as it was given and in a text as it is written.

A word is what stands between white space: `line.split()`. Pieces are matched by the characters that they stand for, so
normalisation, unknown pieces and the type of the subword model make no difference. It knows subwords and text only.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.data.subwords import Subwords

UNKNOWN_MARK = "\ud800"  # stands for an unknown piece inside a text; half a surrogate pair, which no text can hold


class PieceWords(NamedTuple):
    """The words of a text, and for each of its pieces the place of its word, from 0; no words, no place counts."""

    words: list[str]
    places: list[int]


def words_of_line(line: str, subwords: Subwords) -> PieceWords:
    """The words of a line, for the pieces that `subwords` cuts it into."""
    return PieceWords(line.split(), word_places(line, subwords.spans(line)))


def words_of_tokens(tokens: Sequence[int], subwords: Subwords, *, mark: str | None = None) -> PieceWords:
    """The words of the text that `tokens` spell, in which `mark`, if given, stands for each unknown piece."""
    parts = subwords.text_parts(tokens, mark)
    text = "".join(parts)
    ends = list(accumulate(map(len, parts)))
    return PieceWords(text.split(), word_places(text, zip([0, *ends], ends, strict=False)))


def word_places(text: str, spans: Iterable[tuple[int, int]]) -> list[int]:
    """For each part [start, stop) of `text`, in order, the place of the first word that ends after its start.

    So white space belongs to the word behind it, and behind the last word to the last.
    """
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    places = []
    place = 0
    for start, _ in spans:
        while place < len(ends) - 1 and ends[place] <= start:
            place += 1
        places.append(place)
    return places
