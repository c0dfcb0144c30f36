"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's, or that of the step after it (see `forced`). Pieces are then merged to words, so that
an alignment does not depend on the subword model. It knows weights and words; it knows no models and no files.

Luong et al. (2015), section 5.4, read alignments from attention.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.words import PieceWords
from nmt.pharaoh import Link


class SoftAlignment(NamedTuple):
    """How much each word of a translation attends to each word of its source."""

    source_words: list[str]
    target_words: list[str]
    weights: Tensor  # (target words, source words); a row sums to at most 1, the rest went to the end of the source

    @property
    def links(self) -> list[Link]:
        """For each target word the source word it attends to most, the first of equals.

        A word that attends to nothing, as without attention, has no link.
        """
        if self.weights.numel() == 0:
            return []
        best = zip(*(part.tolist() for part in self.weights.max(dim=1)), strict=True)
        return [(source, target) for target, (weight, source) in enumerate(best) if weight > 0]


def soft_alignment(weights: Tensor | None, source: PieceWords, target: PieceWords) -> SoftAlignment:
    """The alignment of words from weights (target_length, source_length) of pieces; None where there are none.

    Attention to a source word is the sum over its pieces; that of a target word is the mean over its pieces.
    """
    if weights is None:
        weights = torch.zeros(len(target.places), len(source.places))
    merged = weights.new_zeros(len(target.words), len(source.words))
    if merged.numel():
        source_places, target_places = (torch.tensor(side.places, dtype=torch.long) for side in (source, target))
        summed = weights.new_zeros(len(target_places), len(source.words)).index_add(1, source_places, weights)
        pieces = torch.bincount(target_places, minlength=len(target.words)).clamp(min=1)  # one may be part of a piece
        merged = merged.index_add(0, target_places, summed) / pieces.unsqueeze(1)
    return SoftAlignment(source.words, target.words, merged)


def joined(parts: Sequence[SoftAlignment]) -> SoftAlignment:
    """The alignment of a translation from those of its parts, at least one, which all have the whole line's words."""
    target_words = [word for part in parts for word in part.target_words]
    return SoftAlignment(parts[0].source_words, target_words, torch.cat([part.weights for part in parts]))
