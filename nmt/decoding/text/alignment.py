"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's. Pieces are then merged to words, so that an alignment does not depend on the subword
model. It knows models, pieces and words; it knows no files. A word is what stands between spaces.

Luong et al. (2015), section 5.4, read alignments from attention.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.data.batching import make_batch
from nmt.data.subwords import Vocabularies
from nmt.decoding.ensemble import Model, forced_by_all, mean, members, without_attention
from nmt.decoding.inference import inference
from nmt.decoding.text.segments import WORD_START
from nmt.decoding.text.words import UNKNOWN_MARK, PieceWords, words_of_line, words_of_tokens
from nmt.errors import UserError
from nmt.evaluation.alignments import Link


def attention_weights(model: Model, source_ids: Sequence[int], target_ids: Sequence[int]) -> Tensor:
    """The attention (target_length, source_length) with which `model` writes `target_ids` from `source_ids`.

    Neither has END, and the result has no row or column for it; so a row sums to at most 1. The attention of an
    ensemble is the mean of its members'.
    """
    return batch_attention_weights(model, [source_ids], [target_ids])[0]


def batch_attention_weights(
    model: Model, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Tensor]:
    """`attention_weights` of each pair, computed together; padding has no row and no column either."""
    device = next(model.parameters()).device
    pairs = make_batch(sources, targets, np.arange(len(sources))).to(device)
    with inference(model):
        weights = mean(
            [each(pairs.source, pairs.source_lengths, pairs.target_input).weights.cpu() for each in members(model)]
        )
    return [
        weights[row, : len(target), : len(source)].clone()
        for row, (source, target) in enumerate(zip(sources, targets, strict=True))
    ]


def words(pieces: Sequence[str]) -> list[str]:
    """The words that sentencepiece's pieces spell."""
    joined = [""] * (max(_word_indices(pieces), default=-1) + 1)
    for word, piece in zip(_word_indices(pieces), pieces, strict=True):
        joined[word] += piece.replace(WORD_START, "")
    return joined


def merge_to_words(weights: Tensor, source_pieces: Sequence[str], target_pieces: Sequence[str]) -> Tensor:
    """Weights (target words, source words) from weights (target pieces, source pieces).

    Attention to a source word is the sum over its pieces; that of a target word is the mean over its pieces.
    """
    source = PieceWords(words(source_pieces), _word_indices(source_pieces))
    target = PieceWords(words(target_pieces), _word_indices(target_pieces))
    return _merged(weights, source, target)


def _merged(weights: Tensor, source: PieceWords, target: PieceWords) -> Tensor:
    source_places, target_places = (torch.tensor(side.places, dtype=torch.long) for side in (source, target))
    if not source.words or not target.words:
        return weights.new_zeros(len(target.words), len(source.words))
    summed = weights.new_zeros(len(target_places), len(source.words)).index_add(1, source_places, weights)
    merged = weights.new_zeros(len(target.words), len(source.words)).index_add(0, target_places, summed)
    pieces = torch.bincount(target_places, minlength=len(target.words))
    return merged / pieces.clamp(min=1).unsqueeze(1)  # a word that is part of a piece may have none of its own


def hard_alignment(weights: Tensor) -> list[Link]:
    """For each target word the source word it attends to most, the first of equals; `weights` as `merge_to_words`.

    A word that attends to nothing, as without attention, has no link.
    """
    if weights.numel() == 0:
        return []
    largest, sources = weights.max(dim=1)
    return [
        (source, target)
        for target, (source, attends) in enumerate(zip(sources.tolist(), (largest > 0).tolist(), strict=True))
        if attends
    ]


class SoftAlignment(NamedTuple):
    """How much each word of a translation attends to each word of its source."""

    source_words: list[str]
    target_words: list[str]
    weights: Tensor  # (target words, source words); a row sums to at most 1, the rest went to the end of the source

    @property
    def links(self) -> list[Link]:
        """`hard_alignment` of the weights."""
        return hard_alignment(self.weights)


def check_attention(model: Model) -> None:
    """Raise UserError for a model, or an ensemble, from which no alignment can be read."""
    if which := without_attention(model):
        raise UserError(
            f"there are no alignments: {which} has no attention (model.attention.score: none) to read them from"
        )


def soft_alignment(weights: Tensor | None, source: PieceWords, target: PieceWords) -> SoftAlignment:
    """The alignment of words from weights (target_length, source_length) of pieces; None where there are none."""
    if weights is None:
        weights = torch.zeros(len(target.places), len(source.places))
    return SoftAlignment(source.words, target.words, _merged(weights, source, target))


class Written(NamedTuple):
    """A translation of a line, or of a part of one."""

    line: str
    first: int  # the place of the first source piece in the line
    source: list[int]
    target: list[int]
    text: str
    word_counts: list[int] | None  # `Replaced.words` where unknown words were replaced


def align_written(
    model: Model, vocabularies: Vocabularies, translations: Sequence[Written], *, batch_tokens: int
) -> list[SoftAlignment]:
    """The alignment of each translation's words with those of its whole line; `batch_tokens` as `forced_decoding`."""
    lines = {line: words_of_line(line, vocabularies.source) for line in {each.line for each in translations}}
    forced = forced_by_all(
        model,
        [each.source for each in translations],
        [each.target for each in translations],
        batch_tokens=batch_tokens,
        attention=True,
    )
    found = []
    for each, (_, _, weights) in zip(translations, forced, strict=True):
        source_words, places = lines[each.line]
        source = PieceWords(source_words, places[each.first : each.first + len(each.source)])
        mark = None if each.word_counts is None else UNKNOWN_MARK
        aligned = soft_alignment(weights, source, words_of_tokens(each.target, vocabularies.target, mark=mark))
        if each.word_counts is not None:
            counts = torch.tensor(each.word_counts, dtype=torch.long)
            aligned = aligned._replace(weights=aligned.weights.repeat_interleave(counts, dim=0))
        found.append(aligned._replace(target_words=each.text.split()))
    return found


def joined(parts: Sequence[SoftAlignment]) -> SoftAlignment:
    """The alignment of a translation from those of its parts, at least one, which all have the whole line's words."""
    target_words = [word for part in parts for word in part.target_words]
    return SoftAlignment(parts[0].source_words, target_words, torch.cat([part.weights for part in parts]))


def align(
    model: Model,
    source: tuple[Sequence[int], Sequence[str]],
    target: tuple[Sequence[int], Sequence[str]],
) -> list[Link]:
    """The links between the words of a source and a translation, each given as its ids and its pieces."""
    (source_ids, source_pieces), (target_ids, target_pieces) = source, target
    return hard_alignment(
        merge_to_words(attention_weights(model, source_ids, target_ids), source_pieces, target_pieces)
    )


def describe_alignment(source_words: Sequence[str], target_words: Sequence[str], links: Iterable[Link]) -> str:
    """A line for each target word, with the source words it is linked to: "Hund ← dog"."""
    sources: list[list[str]] = [[] for _ in target_words]
    for source, target in sorted(links):
        sources[target].append(source_words[source])
    width = max(map(len, target_words), default=0)
    return "\n".join(
        f"{word:<{width}} ← {' '.join(linked)}".rstrip() for word, linked in zip(target_words, sources, strict=True)
    )


def _word_indices(pieces: Sequence[str]) -> list[int]:
    """For each piece the word it belongs to; a piece that begins with "▁" begins a word."""
    indices: list[int] = []
    for piece in pieces:
        starts = not indices or piece.startswith(WORD_START)
        indices.append((indices[-1] if indices else -1) + starts)
    return indices
