"""Forced decoding: what a model says about a target that it is given instead of one that it searches.

log p(y | x) = Σ_t log p(y_t | y_1 … y_{t-1}, x) over the pieces of y and END, in nats. Nothing is cut: a pair of any
length is decoded as a whole, one whose attention would take too much memory at once step by step. It knows models and
ids; it knows no text.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import AlignmentStep
from nmt.data.batching import make_batch
from nmt.decoding.scorer import Scorer, mean
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.models.stepwise import LARGEST_AREA, stepwise_log_probability
from nmt.ops.linear import linear
from nmt.ops.loss import CHUNK
from nmt.ops.masks import length_mask
from nmt.ops.memory import in_halves

_USUAL_LENGTH = 25  # pieces of a target with which batches are as large as batch_tokens says

Ids = Sequence[int]


class Forced(NamedTuple):
    """What a model says about one target."""

    log_probability: float  # nats, summed over the pieces and END
    tokens: int  # the pieces and END
    weights: Tensor | None  # (target_length, source_length), END in neither; None where it was not asked for


def forced_decoding(
    scorer: Scorer,
    pairs: Sequence[tuple[Ids, Ids]],
    *,
    batch_tokens: int,
    attention: bool = False,
    alignment_step: AlignmentStep = "this",
) -> list[Forced]:
    """What `scorer` says of pairs of a source and a target, both without END; with `attention` its weights as well.

    The weights of the t-th piece of a target are those of the step that writes it, a_t, or with `alignment_step` "next"
    those of the step that reads it, a_{t+1}: of the last piece, the step that writes END. Luong, Pham & Manning (2015),
    footnote 14.

    Of several models it is the mean of their log-probabilities, and of their weights. `batch_tokens`: sentences ×
    longest source of a batch, padding included; fewer where the targets are long, since the memory for all steps of an
    attention grows with source × target. A batch that the memory does not hold is halved. The result does not depend on
    it, beyond the rounding of float32.

    Raises UserError when a log-probability is not finite.
    """
    results: dict[int, Forced] = {}
    later = int(alignment_step == "next")

    def decoded(batch: Sequence[int]) -> list[Forced]:
        sources, targets = zip(*(pairs[index] for index in batch), strict=True)
        area = (len(sources[0]) + 1) * (len(targets[0]) + 1)
        decode = _step_by_step if len(batch) == 1 and area > LARGEST_AREA else _at_once
        by_pair = zip(*(decode(model, sources, targets, attention) for model in scorer.models), strict=True)
        return [_mean(*of_pair, later) for of_pair in zip(by_pair, sources, targets, strict=True)]

    with scorer.inference():
        for batch in _batches(pairs, batch_tokens * _USUAL_LENGTH):
            results.update(zip(batch, in_halves(decoded, batch), strict=True))
    return [results[index] for index in range(len(pairs))]


def _mean(of_models: Sequence[tuple[float, Tensor | None]], source: Ids, target: Ids, later: int) -> Forced:
    """What models say together about one target, from their log-probabilities and weights with END and padding.

    `later`: how many steps after a piece was written come its weights.
    """
    log_probability = sum(total for total, _ in of_models) / len(of_models)
    if not math.isfinite(log_probability):
        raise UserError(
            "the model's log-probabilities are not finite: its weights are not finite, or far too large, as "
            "after a training that diverged; give an earlier model"
        )
    rows = slice(later, len(target) + later)
    cut = [weights[rows, : len(source)] for _, weights in of_models if weights is not None]
    return Forced(log_probability, len(target) + 1, mean(cut).clone() if cut else None)


def _batches(pairs: Sequence[tuple[Ids, Ids]], area: int) -> Iterator[list[int]]:
    """Indices that go together: their number × longest source × longest target stays within `area`, if it can.

    A pair that is to be decoded step by step is alone.
    """
    sizes = [(len(source) + 1, len(target) + 1) for source, target in pairs]
    batch: list[int] = []
    longest = (0, 0)
    for index in sorted(range(len(sizes)), key=lambda index: (max(sizes[index]), sizes[index])):
        wider = (max(longest[0], sizes[index][0]), max(longest[1], sizes[index][1]))
        together = (len(batch) + 1) * wider[0] * max(wider[1], _USUAL_LENGTH)
        if batch and (together > area or wider[0] * wider[1] > LARGEST_AREA):
            yield batch
            batch, wider = [], sizes[index]
        batch.append(index)
        longest = wider
    if batch:
        yield batch


def _at_once(
    model: Seq2Seq, sources: Sequence[Ids], targets: Sequence[Ids], attention: bool
) -> Iterable[tuple[float, Tensor | None]]:
    """The log-probability and the weights of each pair."""
    batch = make_batch(sources, targets, np.arange(len(sources))).to(model.output_weight.device)
    outputs = model(batch.source, batch.source_lengths, batch.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    vectors, tokens = outputs.vectors[mask], batch.target_output[mask]
    chosen = []
    for start in range(0, len(tokens), CHUNK):  # no tensor (all tokens, vocabulary)
        log_probabilities = torch.log_softmax(linear(vectors[start : start + CHUNK], model.output_weight), dim=1)
        chosen.append(log_probabilities.gather(1, tokens[start : start + CHUNK].unsqueeze(1)).squeeze(1))
    sums = [float(part.sum()) for part in torch.cat(chosen).double().split(batch.target_lengths.tolist())]
    return zip(sums, outputs.weights.cpu() if attention else repeat(None), strict=False)


def _step_by_step(
    model: Seq2Seq, sources: Sequence[Ids], targets: Sequence[Ids], attention: bool
) -> Iterable[tuple[float, Tensor | None]]:
    """The same of one pair, whose memory grows with the source, not with source × target × size."""
    pair = make_batch(sources, targets, np.arange(1))
    return [stepwise_log_probability(model, pair.source, pair.target, attention=attention)]
