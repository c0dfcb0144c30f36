"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's, or that of the step after it (see `forced`). Pieces are then merged to words, so that
an alignment does not depend on the subword model. It knows weights and words; it knows no models and no files.

Luong et al. (2015), section 5.4, read alignments from attention.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import EndLinks
from nmt.data.words import PieceWords
from nmt.pharaoh import Link


class SoftAlignment(NamedTuple):
    """How much each word of a translation attends to each word of its source, and to the source's end."""

    source_words: list[str]
    target_words: list[str]
    weights: Tensor
    """(target words, source words + 1): the last column is the end of the source, or of the part of it that was
    translated by itself. A row sums to 1, or to less where a scope leaves it at less."""
    links: list[Link]
    """The source word of each target word, or of fewer."""


def soft_alignment(
    weights: Tensor | None, source: PieceWords, target: PieceWords, *, end_links: EndLinks
) -> SoftAlignment:
    """The alignment of words from weights (target_length, source_length + 1) of pieces; None where there are none.

    Attention to a source word is the sum over its pieces; that of a target word is the mean over its pieces.
    """
    end = len(source.words)
    if weights is None:
        weights = torch.zeros(len(target.places), len(source.places) + 1)
    merged = weights.new_zeros(len(target.words), end + 1)
    if merged.numel():
        source_places = torch.tensor([*source.places, end])
        target_places = torch.tensor(target.places, dtype=torch.long)
        summed = weights.new_zeros(len(target.places), end + 1).index_add(1, source_places, weights)
        pieces = torch.bincount(target_places, minlength=len(target.words)).clamp(min=1)  # one may be part of a piece
        merged = merged.index_add(0, target_places, summed) / pieces.unsqueeze(1)
    last = max(source.lasts, default=None)
    return SoftAlignment(source.words, target.words, merged, list(_links(merged, end_links, last)))


def _links(weights: Tensor, end_links: EndLinks, last: int | None) -> Iterator[Link]:
    """For each target word the source word it attends to most, the first of equals; `last` is the last source word.

    Where the end of the source has more weight than any word, it is as `end_links` says (see `TranslationOptions`). A
    word that attends to nothing, as without attention, has no link.
    """
    if weights.size(1) < 2 or last is None:
        return
    best = zip(*(part.tolist() for part in weights[:, :-1].max(dim=1)), weights[:, -1].tolist(), strict=True)
    for target, (weight, source, of_end) in enumerate(best):
        if of_end > weight and end_links != "best":
            yield from [(last, target)] if end_links == "last" else []
        elif weight > 0:
            yield source, target


def repeated(alignment: SoftAlignment, times: Sequence[int], target_words: list[str]) -> SoftAlignment:
    """The alignment with each target word replaced by so many of the new `target_words`, which inherit its row."""
    copies = list(chain.from_iterable([word] * count for word, count in enumerate(times)))
    links = {target: source for source, target in alignment.links}
    return SoftAlignment(
        alignment.source_words,
        target_words,
        alignment.weights[copies],
        [(links[word], target) for target, word in enumerate(copies) if word in links],
    )


def joined(parts: Sequence[SoftAlignment]) -> SoftAlignment:
    """The alignment of a translation from those of its parts, at least one, which all have the whole line's words."""
    target_words: list[str] = []
    links: list[Link] = []
    for part in parts:
        links += [(source, target + len(target_words)) for source, target in part.links]
        target_words += part.target_words
    return SoftAlignment(parts[0].source_words, target_words, torch.cat([part.weights for part in parts]), links)
