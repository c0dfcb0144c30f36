"""Forced decoding: what a model says about a target that it is given instead of one that it searches.

log p(y | x) = Σ_t log p(y_t | y_1 … y_{t-1}, x) over the pieces of y and END, in nats. Nothing is cut: a pair of any
length is decoded as a whole, one whose attention would take too much memory at once step by step. It knows models and
ids; it knows no text.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from nmt.config.schema import AlignmentStep
from nmt.decoding.engines import AnyScorer, Ids
from nmt.decoding.search.hypotheses import Array
from nmt.errors import UserError
from nmt.models.stepwise import LARGEST_AREA
from nmt.ops.memory import in_halves

_USUAL_LENGTH = 25  # pieces of a target with which batches are as large as batch_tokens says


class Forced(NamedTuple):
    """What a model says about one target."""

    log_probability: float  # nats, summed over the pieces and END
    tokens: int  # the pieces and END
    weights: Array | None  # (target_length, source_length + 1): END has a column and no row; None where not asked for


def forced_decoding(
    scorer: AnyScorer,
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

    Several models say together what `scorer` makes of them at each step, and their weights are the mean.
    `batch_tokens`: sentences × longest source of a batch, padding included; fewer where the targets are long, since the
    memory for all steps of an attention grows with source × target. A batch that the memory does not hold is halved.
    The targets of one source are in one batch, if they can be, where it is encoded once.
    The result does not depend on it, beyond the rounding of float32.

    Raises UserError when a log-probability is not finite.
    """
    results: dict[int, Forced] = {}
    later = int(alignment_step == "next")

    def decoded(batch: Sequence[int]) -> list[Forced]:
        sources, targets = zip(*(pairs[index] for index in batch), strict=True)
        is_large = len(batch) == 1 and (len(sources[0]) + 1) * (len(targets[0]) + 1) > LARGEST_AREA
        by_pair = scorer.forced(sources, targets, attention=attention, stepwise=is_large)
        return [_forced(*of_pair, later) for of_pair in zip(sources, targets, *by_pair, strict=True)]

    with scorer.inference():
        for batch in _batches(pairs, batch_tokens * _USUAL_LENGTH):
            results.update(zip(batch, in_halves(decoded, batch), strict=True))
    return [results[index] for index in range(len(pairs))]


def _forced(source: Ids, target: Ids, log_probability: float, weights: Array | None, later: int) -> Forced:
    """What was found about one target; its `weights`, with a row for END and with padding, are `later` steps later."""
    if not math.isfinite(log_probability):
        raise UserError(
            "the model's log-probabilities are not finite: its weights are not finite, or far too large, as "
            "after a training that diverged; give an earlier model"
        )
    if weights is not None:
        weights = weights[later : len(target) + later, : len(source) + 1].copy()
    return Forced(log_probability, len(target) + 1, weights)


def _batches(pairs: Sequence[tuple[Ids, Ids]], area: int) -> Iterator[list[int]]:
    """Indices that go together: their number × longest source × longest target stays within `area`, if it can.

    A pair that is to be decoded step by step is alone.
    """
    sizes = [(len(source) + 1, len(target) + 1) for source, target in pairs]
    alike: dict[tuple[int, ...], list[int]] = {}  # indices by their source
    for index, (source, _) in enumerate(pairs):
        alike.setdefault(tuple(source), []).append(index)
    widest = [(max(sizes[index] for index in indices), indices) for indices in alike.values()]
    widest.sort(key=lambda group: (max(group[0]), group[0]))
    batch: list[int] = []
    longest = (0, 0)
    for index in chain.from_iterable(indices for _, indices in widest):
        wider = (max(longest[0], sizes[index][0]), max(longest[1], sizes[index][1]))
        together = (len(batch) + 1) * wider[0] * max(wider[1], _USUAL_LENGTH)
        if batch and (together > area or wider[0] * wider[1] > LARGEST_AREA):
            yield batch
            batch, wider = [], sizes[index]
        batch.append(index)
        longest = wider
    if batch:
        yield batch
