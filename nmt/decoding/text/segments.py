"""Segments, what is translated at once: a line, or one of the parts into which a line of many sentences is cut.

A recurrent model has seen sentences of some tens of pieces. Given a paragraph of thousands it translates the beginning
and loses the rest, and its time and memory grow with the square of the length. It knows pieces, no models.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from nmt.data.segmentation import WORD_START
from nmt.decoding.text.required import Required

LONGEST_SEGMENT = 250
"""Pieces of the longest segment: no sentence of the usual corpora is longer, since training leaves them out from some
100 pieces on (data.max_length)."""

LONGEST_POSSIBLE_SEGMENT = 500
"""Pieces beyond which every line is cut, whatever the model was trained on: time and memory must stay bounded."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]」』]*$")
# Scripts that write no space after a sentence; most subword models turn their ！ and ？ into ! and ?
_WITHOUT_SPACES = re.compile(r"([。！？]|[\u3000-\u9fff][!?])[”’」』]*$")


class Segment(NamedTuple):
    """A line, or a part of one, with what its translations must have."""

    source: list[int]  # the ids of its pieces, without END
    place: tuple[int, int]  # of the line in the text, of the segment in the line: what is drawn depends on it
    prefix: Required = Required()
    phrases: Sequence[Required] = ()  # not for sampling
    line: str = ""  # the whole of it
    first: int = 0  # the place of the first source piece in the line

    @property
    def required(self) -> list[int]:
        """The target ids that its prefix and phrases need."""
        return self.prefix.tokens + [token for phrase in self.phrases for token in phrase.tokens]


def longest_segment(max_length: int) -> int:
    """Pieces of the longest segment for a model trained on sentences of up to `max_length` pieces.

    What the model was trained on is not cut, within the limits of this module.
    """
    return min(max(LONGEST_SEGMENT, max_length), LONGEST_POSSIBLE_SEGMENT)


def segment(pieces: Sequence[str], longest: int) -> list[slice]:
    """The slices of `pieces` to translate one by one, each of at most `longest` pieces, which must be at least 1.

    A cut is made in the second half of what fits: after the last sentence there; if none ends there, before the last
    word; if no word starts there, after `longest` pieces.
    """
    slices = []
    start = 0
    while len(pieces) - start > longest:
        cuts = range(start + longest // 2 + 1, start + longest + 1)
        cut = max(cuts, key=lambda cut: (_quality(pieces, cut), cut))
        slices.append(slice(start, cut))
        start = cut
    return [*slices, slice(start, len(pieces))]


def _quality(pieces: Sequence[str], cut: int) -> int:
    """How good a cut before piece `cut` is. 2: a sentence ends there, 1: a word, 0: neither."""
    before = "".join(pieces[max(cut - 3, 0) : cut])  # the end of a sentence may be several pieces: . " )
    starts_word = pieces[cut].startswith(WORD_START)
    if _WITHOUT_SPACES.search(before) or (starts_word and _SENTENCE_END.search(before)):
        return 2
    return int(starts_word)
