"""Word alignments from attention: which source words the model looked at when it wrote each word of a translation.

The weights come from forced decoding: the translation is fed piece by piece, and the attention of the step that
predicts a piece is that piece's. Pieces are then merged to words, so that an alignment does not depend on the subword
model. It knows models, pieces and words; it knows no files. A word is what stands between spaces.

Luong et al. (2015), section 5.4, read alignments from attention; Och & Ney (2003) define the error rate.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.data.batching import make_batch
from nmt.decoding.inference import inference
from nmt.decoding.segments import WORD_START
from nmt.models.seq2seq import Seq2Seq

Link = tuple[int, int]  # source word, target word


def attention_weights(model: Seq2Seq, source_ids: Sequence[int], target_ids: Sequence[int]) -> Tensor:
    """The attention (target_length, source_length) with which `model` writes `target_ids` from `source_ids`.

    Neither has END, and the result has no row or column for it; so a row sums to at most 1.
    """
    return batch_attention_weights(model, [source_ids], [target_ids])[0]


def batch_attention_weights(
    model: Seq2Seq, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Tensor]:
    """`attention_weights` of each pair, computed together; padding has no row and no column either."""
    device = next(model.parameters()).device
    pairs = make_batch(sources, targets, np.arange(len(sources))).to(device)
    with inference(model):
        weights = model(pairs.source, pairs.source_lengths, pairs.target_input).weights.cpu()
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
    source = torch.tensor(_word_indices(source_pieces), dtype=torch.long)
    target = torch.tensor(_word_indices(target_pieces), dtype=torch.long)
    source_words, target_words = len(words(source_pieces)), len(words(target_pieces))
    summed = weights.new_zeros(len(target), source_words).index_add(1, source, weights)
    merged = weights.new_zeros(target_words, source_words).index_add(0, target, summed)
    return merged / torch.bincount(target, minlength=target_words).unsqueeze(1)


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


def align(
    model: Seq2Seq,
    source: tuple[Sequence[int], Sequence[str]],
    target: tuple[Sequence[int], Sequence[str]],
) -> list[Link]:
    """The links between the words of a source and a translation, each given as its ids and its pieces."""
    (source_ids, source_pieces), (target_ids, target_pieces) = source, target
    return hard_alignment(
        merge_to_words(attention_weights(model, source_ids, target_ids), source_pieces, target_pieces)
    )


def pharaoh(links: Iterable[Link]) -> str:
    """Links in Pharaoh format: "0-0 2-1", source word - target word, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in links)


def alignment_error_rate(
    predicted: Sequence[Collection[Link]],
    sure: Sequence[Collection[Link]],
    possible: Sequence[Collection[Link]] | None = None,
) -> float:
    """AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), counted over all sentences; 0 is perfect, 1 the worst.

    A: predicted links, S: sure links, P: possible links, which always include the sure ones. None: P = S.
    """
    right = total = 0
    for links, certain, allowed in zip(predicted, sure, sure if possible is None else possible, strict=True):
        found, certain = set(links), set(certain)
        right += len(found & certain) + len(found & (set(allowed) | certain))
        total += len(found) + len(certain)
    return 1 - right / total if total else 0.0


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
