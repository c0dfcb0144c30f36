"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's, or that of the step after it (see `forced`). Pieces are then merged to words, so that
an alignment does not depend on the subword model. It knows weights and words; it knows no models and no files.

Luong et al. (2015), section 5.4, read alignments from attention.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import EndLinks
from nmt.data.words import PieceWords
from nmt.pharaoh import Link


class Block(NamedTuple):
    """What the words of a part of a line that was translated by itself attend to in it, and to its end."""

    weights: Tensor  # (target words, source words + 1)
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
    def weights(self) -> Tensor:
        """(target words, source words + 1): the last column is the end of the source, or of the part of it that was
        translated by itself. A row sums to 1, or to less where a scope leaves it at less."""
        sizes = len(self.target_words), len(self.source_words) + 1
        weights = self.blocks[0].weights.new_zeros(sizes) if self.blocks else torch.zeros(sizes)
        row = 0
        for block, first in self.blocks:
            rows = weights[row : row + len(block)]
            rows[:, first : first + block.size(1) - 1], rows[:, -1] = block[:, :-1], block[:, -1]
            row += len(block)
        return weights


def soft_alignment(
    weights: Tensor | None, source: PieceWords, target: PieceWords, *, end_links: EndLinks
) -> SoftAlignment:
    """The alignment of words from weights (target_length, source_length + 1) of pieces; None where there are none.

    Attention to a source word is the sum over its pieces; that of a target word is the mean over its pieces, one of
    which may stand for several words.
    """
    first, end = min(source.places, default=0), min(max(source.lasts, default=-1) + 1, len(source.words))
    if weights is None:
        weights = torch.zeros(len(target.places), len(source.places) + 1)
    merged = weights.new_zeros(len(target.words), end - first + 1)
    if merged.numel():
        source_places = torch.tensor([*source.places, end]) - first
        spans = enumerate(zip(target.places, target.lasts, strict=True))
        pairs = [(piece, word) for piece, (place, last) in spans for word in range(place, last + 1)]
        pieces, words = torch.tensor(pairs, dtype=torch.long).view(-1, 2).unbind(1)
        summed = weights.new_zeros(len(target.places), end - first + 1).index_add(1, source_places, weights)
        counts = torch.bincount(words, minlength=len(target.words)).clamp(min=1)  # a word may have no piece
        merged = merged.index_add(0, words, summed[pieces]) / counts.unsqueeze(1)
    links = [(source_word + first, target_word) for source_word, target_word in _links(merged, end_links)]
    return SoftAlignment(source.words, target.words, [Block(merged, first)], links)


def _links(weights: Tensor, end_links: EndLinks) -> Iterator[Link]:
    """For each target word the source word it attends to most, the first of equals.

    Where the end of the source has more weight than any word, it is as `end_links` says (see `TranslationOptions`). A
    word that attends to nothing, as without attention, has no link.
    """
    last = weights.size(1) - 2  # word
    if last < 0:
        return
    best = zip(*(part.tolist() for part in weights[:, :-1].max(dim=1)), weights[:, -1].tolist(), strict=True)
    for target, (weight, source, of_end) in enumerate(best):
        if of_end > weight and end_links != "best":
            yield from [(last, target)] if end_links == "last" else []
        elif weight > 0:
            yield source, target


def repeated(alignment: SoftAlignment, times: Sequence[int], target_words: list[str]) -> SoftAlignment:
    """The alignment of one part with each target word replaced by so many of the new `target_words`, which inherit its
    row."""
    copies = list(chain.from_iterable([word] * count for word, count in enumerate(times)))
    links = {target: source for source, target in alignment.links}
    (block,) = alignment.blocks
    return SoftAlignment(
        alignment.source_words,
        target_words,
        [block._replace(weights=block.weights[copies])],
        [(links[word], target) for target, word in enumerate(copies) if word in links],
    )


def joined(parts: Sequence[SoftAlignment]) -> SoftAlignment:
    """The alignment of a translation from those of its parts, at least one, which all have the whole line's words."""
    target_words: list[str] = []
    links: list[Link] = []
    for part in parts:
        links += [(source, target + len(target_words)) for source, target in part.links]
        target_words += part.target_words
    return SoftAlignment(parts[0].source_words, target_words, [block for part in parts for block in part.blocks], links)
