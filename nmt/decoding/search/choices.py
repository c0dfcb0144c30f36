"""Which continuations are worth a look: the best of each lane, in an order that leaves nothing to chance.

A lane is a set of hypotheses that compete with each other, see `loop.py`. Equal values keep the order of their places,
so that no result depends on how a library sorts. It knows arrays only.
"""

from typing import NamedTuple

import numpy as np

from nmt.decoding.search.hypotheses import Array, Scores
from nmt.symbols import BEGIN, END, PAD

NEVER = float("-inf")
BLOCK = 64  # columns whose largest value NumPy finds at the speed of the memory
FEW = 64  # columns that are sorted as fast as divided into the largest and the others


class NotNumbersError(RuntimeError):
    """A model's log-probabilities are NaN, or -inf for all that could be written."""


def not_numbers(length: int) -> NotNumbersError:
    """The error of NaN among the log-probabilities of token number `length`."""
    return NotNumbersError(f"the model's log-probabilities for target token {length} are not numbers (NaN)")


class Continuations(NamedTuple):
    """The best continuations of each lane, best first: (lanes, count) each."""

    totals: Array  # the summed log-probability, in float64
    origins: Array  # the hypothesis that is continued, as its place in the lane
    tokens: Array


class Ending(NamedTuple):
    """The hypotheses that end with a step: (lanes, any number) each."""

    totals: Array  # the summed log-probability, in float64; -inf stands for a hypothesis that does not end
    origins: Array


class Choice(NamedTuple):
    """The hypotheses that live on after a step, (lanes, at most beam_size) each, and those that end with it."""

    live: Array  # the summed log-probability, in float64; -inf where there is no hypothesis
    tokens: Array
    origins: Array  # the hypothesis that is continued, as its place in the lane
    ending: Ending | None = None  # None where nothing ends


def split(continuations: Continuations, beam_size: int) -> Choice:
    """An END among the first `beam_size` ends a hypothesis; of the others the first `beam_size` live on."""
    totals, origins, tokens = continuations
    ends = tokens == END
    if not ends.any():
        return Choice(totals[:, :beam_size], tokens[:, :beam_size], origins[:, :beam_size])
    ending = None
    if ends[:, :beam_size].any():
        ending = Ending(np.where(ends, totals, NEVER)[:, :beam_size], origins[:, :beam_size])
    live, order = descending(np.where(ends, NEVER, totals), beam_size)
    return Choice(live, taken(tokens, order), taken(origins, order), ending)


def best_continuations(live: Array, scores: Scores, count: int, time: int) -> Continuations:
    """The best `count` continuations of each lane, fewer if there are fewer.

    `live` (lanes, width) are the log-probabilities of the hypotheses, in float64, `scores` (lanes × width, …) those of
    their next tokens, of which PAD and BEGIN, two of those that may be listed, are set to -inf in place. The result is
    that of a stable descending sort of each lane's sums, at a fraction of its cost; the order of impossible
    continuations, of total -inf, is not defined. Raises NotNumbersError for NaN.
    """
    values, ids = scores
    listed = values.shape[1]
    if ids is None:
        values[:, [PAD, BEGIN]] = NEVER
    else:
        values = np.where((ids == PAD) | (ids == BEGIN), NEVER, values)
    totals, places = _largest_sums(live, values.reshape(*live.shape, listed), count)
    if np.isnan(totals).any():
        raise not_numbers(time + 1)
    origins, columns = np.divmod(places, listed)
    return Continuations(totals, origins, columns if ids is None else taken(ids.reshape(len(live), -1), places))


def only_end(log_probabilities: Array, rows: Array) -> None:
    """Set all but END to -inf, in place, in the rows where `rows` (rows,) is True."""
    ends = log_probabilities[rows, END]
    log_probabilities[rows] = NEVER
    log_probabilities[rows, END] = ends


def _largest_sums(live: Array, added: Array, count: int) -> tuple[Array, Array]:
    """The largest `count` of live_h + added_hv of each lane, and their places h × columns + v; NaN is the largest.

    `live` (lanes, width), `added` (lanes, width, columns). They are in the `count` blocks of columns that have the
    largest sums, of equal ones the first.
    """
    lanes, width, columns = added.shape
    blocks = -(-columns // BLOCK)
    if width * blocks <= 2 * count or columns <= BLOCK:
        return descending((live[:, :, None] + added).reshape(lanes, -1), count)
    maxima = live[:, :, None] + _block_maxima(added)
    chosen = np.sort(descending(maxima.reshape(lanes, -1), count)[1], axis=1)  # what follows is in the order of places
    owners, numbers = np.divmod(chosen, blocks)
    within = (numbers * BLOCK)[:, :, None] + np.arange(BLOCK)
    places = (owners * columns)[:, :, None] + np.minimum(within, columns - 1)
    sums = taken(live, owners)[:, :, None] + taken(added.reshape(lanes, -1), places.reshape(lanes, -1)).reshape(
        places.shape
    )
    if columns % BLOCK:
        sums[within >= columns] = NEVER
    largest, order = descending(sums.reshape(lanes, -1), count)
    return largest, taken(places.reshape(lanes, -1), order)


def _block_maxima(values: Array) -> Array:
    """The largest value of every BLOCK columns, of which the last block may have fewer: (…, columns) → (…, blocks)."""
    whole = values.shape[-1] // BLOCK * BLOCK
    maxima = values[..., :whole].reshape(*values.shape[:-1], -1, BLOCK).max(axis=-1)
    if whole == values.shape[-1]:
        return maxima
    return np.concatenate([maxima, values[..., whole:].max(axis=-1, keepdims=True)], axis=-1)


def descending(values: Array, count: int) -> tuple[Array, Array]:
    """The largest `count` values of each row, and their places; equal values keep their order, and NaN comes first."""
    if values.shape[1] > max(FEW, 2 * count):
        picked = np.argpartition(values, -count, axis=1)[:, -count:]
        picked.sort(axis=1)
        largest = taken(values, picked)
        least = largest.min(axis=1, keepdims=True)
        if ((values >= least).sum(axis=1) == count).all():  # not so where others are equal to the least, or NaN
            order = np.argsort(-largest, axis=1, kind="stable")
            return taken(largest, order), taken(picked, order)
    order = np.argsort(np.where(np.isnan(values), -np.inf, -values), axis=1, kind="stable")[:, :count]
    return taken(values, order), order


def taken(values: Array, places: Array) -> Array:
    """Of each row of `values` those at its `places`, both (rows, any number)."""
    return values[np.arange(len(values))[:, None], places]
