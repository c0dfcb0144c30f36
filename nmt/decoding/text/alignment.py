"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation; and
how sure it was of each word, as the search knows anyway.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's, or that of the step after it (see `forced`). Pieces are then merged to words, so that
an alignment does not depend on the subword model. It knows weights and words; it knows no models and no files.

Luong et al. (2015), section 5.4, read alignments from attention.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.schema import EndLinks
from nmt.data.words import PieceWords, Span, overlapping, spans_of_parts, words_of, words_of_parts
from nmt.decoding.text.marks import Mark, Piece, Weighted
from nmt.pharaoh import Link

Weights = npt.NDArray[np.float32]
DECIMALS = 4  # in JSON
LEAST = 0.02
"""Of the attention of a word: what is less says nothing."""


class Block(NamedTuple):
    """What the words of a part of a line that was translated by itself attend to in it, and to its end."""

    weights: Weights  # (target words, source words + 1)
    first: int = 0  # the place of the first source word in the line


@dataclass(frozen=True)
class SoftAlignment:
    """How much each word of a translation attends to each word of its source, and to the source's end."""

    source_words: list[str]
    target_words: list[str]
    blocks: list[Block]
    """One below the other; the memory of a long line grows with their sizes, and not with the square of its length."""
    links: list[Link]
    """The source word of each target word, or of fewer."""

    @property
    def weights(self) -> Weights:
        """(target words, source words + 1): the last column is the end of the source, or of the part of it that was
        translated by itself. A row sums to 1, or to less where a scope leaves it at less."""
        weights = _nothing(len(self.target_words), len(self.source_words) + 1)
        row = 0
        for block, first in self.blocks:
            rows = weights[row : row + len(block)]
            rows[:, first : first + block.shape[1] - 1], rows[:, -1] = block[:, :-1], block[:, -1]
            row += len(block)
        return weights

    def rounded(self) -> list[list[float]]:
        """What JSON has of the weights."""
        return [[round(weight, DECIMALS) for weight in row] for row in self.weights.tolist()]


def soft_alignment(
    weights: Weights | None,
    source: PieceWords,
    target: PieceWords,
    *,
    end_links: EndLinks,
    attended: Mapping[int, Sequence[int]] | None = None,
) -> SoftAlignment:
    """The alignment of words from weights (target_length, source_length + 1) of pieces; None where there are none.

    Attention to a source word is the sum over its pieces; that of a target word is the mean over its pieces, one of
    which may stand for several words, or is shared by the source words that `attended` has for it.
    """
    instead = attended or {}
    others = [word for several in instead.values() for word in several]
    first = min([*source.places, *others], default=0)
    end = min(max([*source.lasts, *others], default=-1) + 1, len(source.words))
    if weights is None:
        weights = _nothing(len(target.places), len(source.places) + 1)
    merged = _nothing(len(target.words), end - first + 1)
    if merged.size:
        summed = _nothing(len(target.places), end - first + 1)
        np.add.at(summed.T, np.array([*source.places, end]) - first, weights.T)
        spans = enumerate(zip(target.places, target.lasts, strict=True))
        pairs = [(piece, word) for piece, (place, last) in spans for word in range(place, last + 1)]
        pieces, words = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        np.add.at(merged, words, summed[pieces])
        counts = np.bincount(words, minlength=len(target.words)).clip(min=1)  # a word may have no piece
        merged /= counts[:, None].astype(np.float32)
    for word, several in instead.items():
        merged[word] = 0
        merged[word, [other - first for other in several]] = 1 / len(several)
    links = [(source_word + first, target_word) for source_word, target_word in _links(merged, end_links)]
    return SoftAlignment(source.words, target.words, [Block(merged, first)], links)


def _nothing(rows: int, columns: int) -> Weights:
    return np.zeros((rows, columns), dtype=np.float32)


def _mean(rows: Sequence[tuple[Weights, int]]) -> Block:
    """The mean of what words attend to; each has the place of the first source word that its weights are for."""
    start, stop = min(first for _, first in rows), max(first + len(row) for row, first in rows)
    mean = _nothing(1, stop - start)
    for row, first in rows:
        mean[0, [*range(first - start, first - start + len(row) - 1), -1]] += row / len(rows)
    return Block(mean, start)


def _links(weights: Weights, end_links: EndLinks) -> Iterator[Link]:
    """For each target word the source word it attends to most, the first of equals.

    Where the end of the source has more weight than any word, it is as `end_links` says (see `TranslationOptions`). A
    word that attends to nothing, as without attention, has no link.
    """
    last = weights.shape[1] - 2  # word
    if last < 0:
        return
    of_words = weights[:, :-1]
    best = of_words.max(axis=1).tolist(), of_words.argmax(axis=1).tolist(), weights[:, -1].tolist()
    for target, (weight, source, of_end) in enumerate(zip(*best, strict=True)):
        if of_end > weight and end_links != "best":
            yield from [(last, target)] if end_links == "last" else []
        elif weight > 0:
            yield source, target


def joined(parts: Sequence[SoftAlignment]) -> SoftAlignment:
    """The alignment of a translation from those of its parts, at least one, which all have the whole line's words."""
    target_words: list[str] = []
    links: list[Link] = []
    for part in parts:
        links += [(source, target + len(target_words)) for source, target in part.links]
        target_words += part.target_words
    return SoftAlignment(parts[0].source_words, target_words, [block for part in parts for block in part.blocks], links)


def in_words_of(alignment: SoftAlignment, text: str, end_links: EndLinks) -> SoftAlignment:
    """The alignment, where words that the text has no white space between are one, with their mean."""
    words = words_of_parts(text, spans_of_parts(alignment.target_words, text))
    if len(words.words) == len(alignment.target_words):
        return alignment
    rows = ((row, block.first) for block in alignment.blocks for row in block.weights)
    of_each = groupby(zip(words.places, rows, strict=True), key=lambda row: row[0])
    blocks = [_mean([row for _, row in several]) for _, several in of_each]
    numbered = enumerate(blocks)
    links = [(link + first, word) for word, (row, first) in numbered for link, _ in _links(row, end_links)]
    return SoftAlignment(alignment.source_words, words.words, blocks, links)


def attended_by_marks(
    parts: Sequence[Piece], words: Sequence[Span], *, marks: Sequence[Mark], line: str, sources: Sequence[Span]
) -> dict[int, list[int]]:
    """The source words of each word of a text that has something of a mark in it: those that the line has there.

    `parts` are those of the text, and `words` are its words; `sources` are those of the line.
    """
    attended: dict[int, list[int]] = {}
    begin = 0
    for part in parts:
        end = begin + len(part.text)
        has_place = part.mark is not None and not marks[part.mark].tags[1]  # and encloses nothing
        for word in overlapping(words, (begin, end)) if has_place else ():
            start, stop = words[word]
            span = marks[part.mark or 0].place
            if line[slice(*span)] == part.text:  # the same characters; all of the mark's, if it is another text
                span = span[0] + max(start - begin, 0), span[0] + min(stop - begin, len(part.text))
            attended.setdefault(word, []).extend(overlapping(sources, span))
        begin = end
    return {word: several for word, several in attended.items() if several}


def _words_by_part(parts: Sequence[str], text: str) -> list[range]:
    """Which of its words each part of a text has."""
    words = words_of(text)
    return [overlapping(words, span) for span in spans_of_parts(parts, text)]


def weighted_links(alignment: SoftAlignment | None, source: str, target: str) -> list[Weighted]:
    """How much each word of a text attends to those of its source; the texts perhaps have other white space.

    Words are those of `words_of`; what was aligned more coarsely is a link to all of its words, for several target
    words in proportion. What a word gives to the end of the source is shared by the source words.
    """
    if alignment is None:
        return []
    sources, targets = _words_by_part(alignment.source_words, source), _words_by_part(alignment.target_words, target)
    links: list[Weighted] = []
    rows = ((row[:-1], block.first) for block in alignment.blocks for row in block.weights.tolist())
    for (row, first), places in zip(rows, targets, strict=True):
        total = sum(row)
        for part, weight in enumerate(row, first):
            if weight > LEAST * total:
                size = len(sources[part])
                for index, place in enumerate(places):
                    first_word = index * size // len(places)
                    words = sources[part][first_word : max((index + 1) * size // len(places), first_word + 1)]
                    links += [(word, place, weight / total / len(words)) for word in words]
    return links


# ------------------------------------------------------------------------------------------------------ scores of words


class WordScores(NamedTuple):
    """The log-probability of each word of a translation, in nats; with that of its ends they sum up to its own.

    What the model wrote and the text does not have, as the period of a title, counts nowhere.
    """

    words: list[str]
    scores: list[float]
    end: float  # of the end mark, or those of all sentences

    def rounded(self) -> dict[str, Any]:
        """What JSON has of them."""
        scores = [round(score, DECIMALS) for score in self.scores]
        return {"words": self.words, "scores": scores, "end": round(self.end, DECIMALS)}


def word_scores(totals: Sequence[float], log_probability: float, words: PieceWords) -> WordScores:
    """`totals` are the sums up to each piece, and `log_probability` is that with the end mark.

    Of a piece that stands for several words the first has it all; a word without pieces has 0, as an address may.
    """
    scores = [0.0] * len(words.words)
    for place, (before, total) in zip(words.places, pairwise([0.0, *totals]), strict=True):
        if scores:
            scores[place] += total - before
    return WordScores(words.words, scores, log_probability - sum(scores))


def joined_scores(parts: Sequence[WordScores], text: str) -> WordScores:
    """Those of a translation from those of its parts, for the words of its text."""
    words = words_of_parts(text, spans_of_parts((word for part in parts for word in part.words), text))
    scores = [0.0] * len(words.words)
    for place, score in zip(words.places, (score for part in parts for score in part.scores), strict=True):
        scores[place] += score
    return WordScores(words.words, scores, sum(part.end for part in parts))
