"""Segments, what is translated at once: a line or a sentence, or one of the parts into which a long one is cut.

A recurrent model has seen sentences of some tens of pieces. Given a paragraph of thousands it translates the beginning
and loses the rest, and its time and memory grow with the square of the length. It knows pieces, no models.
"""

import re
from collections.abc import Container, Sequence
from itertools import compress
from typing import NamedTuple

from nmt.data.segmentation import WORD_START
from nmt.data.subwords import Subwords
from nmt.data.words import Span, overlapping
from nmt.decoding.text.glossary import count_words
from nmt.decoding.text.protect import Seen
from nmt.decoding.text.required import Required
from nmt.decoding.text.sentences import ENDS, spaces_around
from nmt.text_form import DIRECTIONS

LONGEST_SEGMENT = 250
"""Pieces of the longest segment: no sentence of the usual corpora is longer, since training leaves them out from some
100 pieces on (data.max_length)."""

LONGEST_POSSIBLE_SEGMENT = 500
"""Pieces beyond which every line is cut, whatever the model was trained on: time and memory must stay bounded."""

SENTENCE_END = re.compile(rf"[{ENDS}][\"'”’»)\]」』{DIRECTIONS}]*$")
# Scripts that write no space after a sentence; most subword models turn their ！ and ？ into ! and ?
_WITHOUT_SPACES = re.compile(r"([。！？]|[\u3000-\u9fff][!?])[”’」』]*$")


class Segment(NamedTuple):
    """A line, a sentence of it, or a part of either, with what its translations must have."""

    source: list[int]  # the ids of its pieces, without END
    place: tuple[int, int]  # of the line in the text, of the segment in the line: what is drawn depends on it
    prefix: Required = Required()
    phrases: Sequence[Required] = ()  # not for sampling
    line: str = ""  # the whole of it
    of_line: Sequence[Seen] = ()  # its sentences, as the model sees them
    seen: Seen = Seen("", ())  # what the model sees as these pieces
    spans: Sequence[Span] = ()  # where that has marks: its characters that each of the pieces is
    first: int = 0  # the place of the first source piece among those of all sentences of the line
    before: str = ""  # the white space before the sentences of the line
    space: str | None = None  # what follows in the line; None inside a sentence: a space, where there is text around it

    @property
    def required(self) -> list[int]:
        """The target ids that its prefix and phrases need."""
        return self.prefix.tokens + [token for phrase in self.phrases for token in phrase.tokens]


def longest_segment(max_length: int) -> int:
    """Pieces of the longest segment for a model trained on sentences of up to `max_length` pieces.

    What the model was trained on is not cut, within the limits of this module.
    """
    return min(max(LONGEST_SEGMENT, max_length), LONGEST_POSSIBLE_SEGMENT)


def segments_of(
    line: str,
    of_line: Sequence[Seen],
    ids: Sequence[list[int]],
    subwords: Subwords,
    *,
    longest: int,
    number: int,
) -> list[Segment]:
    """The segments of a line, the first of which is `number`; none of one without pieces.

    `ids` are those of its sentences, which the model sees as `of_line`; a sentence without pieces has no segment, and
    none has more than `longest` pieces. Terms are not cut, unless they are too long.
    """
    of_line = [*compress(of_line, ids)]
    before, *spaces = spaces_around([seen.sentence for seen in of_line], line)
    segments: list[Segment] = []
    first = 0
    for seen, pieces, space in zip(of_line, filter(None, ids), spaces if of_line else [], strict=True):
        spans = subwords.spans(seen.text) if seen.marks or len(pieces) > longest else []
        cuts = [slice(0, len(pieces))]
        if len(pieces) > longest:
            terms = [(mark.start, mark.stop) for mark in seen.marks if mark.start < mark.stop]
            within = {place for place, (start, _) in enumerate(spans) if overlapping(terms, (start, start))}
            cuts = segment(subwords.pieces_of_text(pieces), longest, within)
        starts = [0, *(spans[cut.start][0] for cut in cuts[1:])]
        for cut, start, stop in zip(cuts, starts, [*starts[1:], len(seen.text)], strict=True):
            segments.append(
                Segment(
                    pieces[cut],
                    (number, len(segments)),
                    line=line,
                    of_line=of_line,
                    seen=seen.part(start, stop) if len(cuts) > 1 else seen,
                    spans=[(begin - start, end - start) for begin, end in spans[cut]],
                    first=first + cut.start,
                    before=before,
                    space=space if cut.stop == len(pieces) else None,
                )
            )
        first += len(pieces)
    return segments


def divided_phrases(phrases: Sequence[Required], texts: Sequence[str]) -> list[list[Required]]:
    """The phrases for each of the segments of a line, which have these `texts`; the first has all of an empty line.

    Names, numbers and the like stand in the source too: such a phrase belongs to the first segment in which it does.
    Nothing says where others belong, so the first segment has them.
    """
    divided: list[list[Required]] = [[] for _ in texts or [""]]
    for phrase in phrases:
        divided[next((place for place, text in enumerate(texts) if count_words(phrase.text, text)), 0)].append(phrase)
    return divided


def segment(pieces: Sequence[str], longest: int, within: Container[int] = ()) -> list[slice]:
    """The slices of `pieces` to translate one by one, each of at most `longest` pieces, which must be at least 1.

    A cut is made in the second half of what fits: after the last sentence there; if none ends there, before the last
    word; if no word starts there, after `longest` pieces. Instead of a cut `within` a term, another is made.
    """
    slices = []
    start = 0
    while len(pieces) - start > longest:
        cuts = range(start + longest // 2 + 1, start + longest + 1)
        possible = [cut for cut in cuts if cut not in within] or cuts
        cut = max(possible, key=lambda cut: (_quality(pieces, cut), cut))
        slices.append(slice(start, cut))
        start = cut
    return [*slices, slice(start, len(pieces))]


def _quality(pieces: Sequence[str], cut: int) -> int:
    """How good a cut before piece `cut` is. 2: a sentence ends there, 1: a word, 0: neither."""
    before = "".join(pieces[max(cut - 3, 0) : cut])  # the end of a sentence may be several pieces: . " )
    starts_word = pieces[cut].startswith(WORD_START)
    if _WITHOUT_SPACES.search(before) or (starts_word and SENTENCE_END.search(before)):
        return 2
    return int(starts_word)
