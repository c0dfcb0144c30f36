"""Translations drawn at random from the model's distribution, instead of searched for.

Each step of a translation uses up a key, drawn beforehand: `keys` makes them from the seed and the line's place alone,
so that neither batches nor other lines change what is drawn for a line. A key gives every piece of the vocabulary its
own number, so that rounding, which differs between batches, matters only where two pieces all but tie; were one number
placed among the shares of all pieces, any of thousands of borders could move past it.

Fan, Lewis & Dauphin (2018), arXiv 1805.04833 (top k); Holtzman et al. (2020), arXiv 1904.09751 (nucleus); Maddison,
Tarlow & Minka (2014), arXiv 1411.0030 (the race, as its logarithm, the Gumbel-max trick); Steele, Lea & Flood (2014),
OOPSLA, doi 10.1145/2660193.2660195 (SplitMix64).
"""

from collections.abc import Sequence

import numpy as np

from nmt.config.schema import SamplingConfig
from nmt.decoding.search.choices import NEVER, Choice, Continuations, NotNumbersError, not_numbers, split, taken
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.search.loop import Lanes, Policy
from nmt.symbols import BEGIN, PAD

_STEP, _FIRST, _SECOND = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))  # SplitMix64's


def keys(seed: int, places: Sequence[tuple[int, ...]], *, samples: int, steps: int) -> Array:
    """Random keys (places, samples, steps), int64; those of a place depend only on the seed and the place.

    With fewer steps they are the beginning of the same keys, with fewer samples those of the first samples.
    """
    drawn = [
        [
            np.random.default_rng([seed, *place, sample]).integers(-(2**63), 2**63, steps, dtype=np.int64)
            for sample in range(samples)
        ]
        for place in places
    ]
    return np.array(drawn)


class Draws(Policy):
    """Each lane is a sample: it goes on with the token that its next key draws, and is done when that is END.

    Log-probabilities are the model's, whatever the temperature and the truncation.
    """

    beam_size = 1

    def __init__(self, keys: Array, sampling: SamplingConfig, ids: Array | None = None) -> None:
        """`keys`: (sentences, samples, steps). `ids`: (columns,), the piece of each token that is searched with; None:
        they are the same."""
        self.lanes_per_sentence = keys.shape[1]
        self.keys = keys.reshape(-1, keys.shape[2])
        self.sampling = sampling
        self.ids = ids

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        # What a lane that is done would write does not matter, and must not fail.
        log_probabilities = np.where(lanes.live == NEVER, 0.0, scores.values.astype(np.float64))
        if np.isnan(log_probabilities).any():
            raise not_numbers(lanes.time + 1)
        ids = np.arange(log_probabilities.shape[1]) if self.ids is None else self.ids
        times = arrivals(self.keys[:, lanes.time], ids)
        tokens = (kept_probabilities(log_probabilities, self.sampling) / times).argmax(axis=1)[:, None]
        totals = lanes.live + taken(log_probabilities, tokens)
        return split(Continuations(totals, np.zeros_like(tokens), tokens), self.beam_size)

    def keep(self, lanes: Array) -> None:
        self.keys = self.keys[lanes]


def arrivals(keys: Array, ids: Array) -> Array:
    """Independent numbers e > 0 with density exp(-e), (rows, tokens); each by its key and its id alone.

    With the probabilities p_i, argmax_i p_i / e_i is i with probability p_i: in a race of runners with the rates p_i,
    who arrive at the times e_i / p_i, that is how often i comes first. e_i = -ln(1 - u_i); u_i in (0, 1) is from number
    i of the generator SplitMix64 that starts at the key.
    """
    bits = keys.astype(np.uint64)[:, None] + (ids + 1).astype(np.uint64) * _STEP
    for places, factor in ((30, _FIRST), (27, _SECOND), (31, np.uint64(1))):
        bits ^= bits >> np.uint64(places)
        bits *= factor
    uniform = (bits >> np.uint64(12)).astype(np.float32) + np.float32(0.5)  # exact where e is small, where it decides
    uniform *= np.float32(2.0**-52)
    times: Array = -np.log1p(-np.minimum(uniform, np.float32(1.0 - 2.0**-24)))
    return times


def kept_probabilities(log_probabilities: Array, sampling: SamplingConfig) -> Array:
    """With what probabilities tokens are drawn, up to a factor of each row: (rows, vocabulary), in float64.

    p_i ∝ exp(log p_i / temperature), of the `log_probabilities` (rows, vocabulary), in float64. Of these the `top_k`
    most probable are kept; then of those, made to sum to 1 again, the fewest that together have a probability of at
    least `top_p`. Of equally probable tokens the one with the smaller id comes first. Raises NotNumbersError where no
    token has a probability above 0.
    """
    allowed = log_probabilities.copy()
    allowed[:, [PAD, BEGIN]] = NEVER
    best = allowed.max(axis=1, keepdims=True)
    if (best == NEVER).any():
        raise NotNumbersError("the model gives every token that may follow the probability 0")
    probabilities: Array = np.exp((allowed - best) / sampling.temperature)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    if sampling.top_k is not None or sampling.top_p is not None:
        probabilities = _truncated(probabilities, sampling)
    return probabilities


def _truncated(probabilities: Array, sampling: SamplingConfig) -> Array:
    """The probabilities, 0 for the tokens that are not to be drawn; the others no longer sum to 1."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = taken(probabilities, order)
    if sampling.top_k is not None:
        ordered[:, sampling.top_k :] = 0.0
    if sampling.top_p is not None:
        before = ordered.cumsum(axis=1) - ordered
        ordered[before >= sampling.top_p * ordered.sum(axis=1, keepdims=True)] = 0.0
    kept = np.zeros_like(ordered)
    np.put_along_axis(kept, order, ordered, axis=1)
    return kept
