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
import torch
from torch import Tensor

from nmt.config.schema import SamplingConfig
from nmt.decoding.search.choices import NEVER, Choice, Continuations, NotNumbersError, not_numbers, split
from nmt.decoding.search.loop import Lanes, Policy
from nmt.symbols import BEGIN, PAD

# SplitMix64's 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9 and 0x94D049BB133111EB, as signed numbers
_STEP, _FIRST, _SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15


def keys(seed: int, places: Sequence[tuple[int, ...]], *, samples: int, steps: int) -> Tensor:
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
    return torch.from_numpy(np.array(drawn))


class Draws(Policy):
    """Each lane is a sample: it goes on with the token that its next key draws, and is done when that is END.

    Log-probabilities are the model's, whatever the temperature and the truncation.
    """

    beam_size = 1

    def __init__(self, keys: Tensor, sampling: SamplingConfig, ids: Tensor | None = None) -> None:
        """`keys`: (sentences, samples, steps), on the device of the search, as `ids`: (columns,), the piece of each
        token that is searched with; None: they are the same."""
        self.lanes_per_sentence = keys.size(1)
        self.keys = keys.flatten(0, 1)
        self.sampling = sampling
        self.ids = ids

    def choose(self, lanes: Lanes, log_probabilities: Tensor) -> Choice:
        # What a lane that is done would write does not matter, and must not fail.
        log_probabilities = log_probabilities.double().masked_fill(lanes.live == NEVER, 0.0)
        if bool(log_probabilities.isnan().any()):
            raise not_numbers(lanes.time + 1)
        ids = torch.arange(log_probabilities.size(1), device=log_probabilities.device) if self.ids is None else self.ids
        times = arrivals(self.keys[:, lanes.time], ids)
        tokens = (kept_probabilities(log_probabilities, self.sampling) / times).argmax(dim=1, keepdim=True)
        totals = lanes.live + log_probabilities.gather(1, tokens)
        return split(Continuations(totals, torch.zeros_like(tokens), tokens), self.beam_size)

    def keep(self, lanes: Tensor) -> None:
        self.keys = self.keys[lanes]


def arrivals(keys: Tensor, ids: Tensor) -> Tensor:
    """Independent numbers e > 0 with density exp(-e), (rows, tokens); each by its key and its id alone.

    With the probabilities p_i, argmax_i p_i / e_i is i with probability p_i: in a race of runners with the rates p_i,
    who arrive at the times e_i / p_i, that is how often i comes first. e_i = -ln(1 - u_i); u_i in (0, 1) is from number
    i of the generator SplitMix64 that starts at the key.
    """
    bits = keys.unsqueeze(1) + (ids + 1) * _STEP
    for places, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        bits ^= _shifted(bits, places)
        bits *= factor
    uniform = (_shifted(bits, 12).float() + 0.5) * 2.0**-52  # exact where e is small, and so where it decides
    return -uniform.clamp_(max=1.0 - 2.0**-24).neg_().log1p_()


def _shifted(bits: Tensor, places: int) -> Tensor:
    """Shifted to the right, with zeros from the left."""
    shifted = bits >> places
    shifted &= (1 << (64 - places)) - 1
    return shifted


def kept_probabilities(log_probabilities: Tensor, sampling: SamplingConfig) -> Tensor:
    """With what probabilities tokens are drawn, up to a factor of each row: (rows, vocabulary), in float64.

    p_i ∝ exp(log p_i / temperature), of the `log_probabilities` (rows, vocabulary), in float64. Of these the `top_k`
    most probable are kept; then of those, made to sum to 1 again, the fewest that together have a probability of at
    least `top_p`. Of equally probable tokens the one with the smaller id comes first. Raises NotNumbersError where no
    token has a probability above 0.
    """
    allowed = log_probabilities.clone()
    allowed[:, [PAD, BEGIN]] = NEVER
    best = allowed.amax(dim=1, keepdim=True)
    if bool((best == NEVER).any()):
        raise NotNumbersError("the model gives every token that may follow the probability 0")
    probabilities = ((allowed - best) / sampling.temperature).softmax(dim=1)
    if sampling.top_k is not None or sampling.top_p is not None:
        probabilities = _truncated(probabilities, sampling)
    return probabilities


def _truncated(probabilities: Tensor, sampling: SamplingConfig) -> Tensor:
    """The probabilities, 0 for the tokens that are not to be drawn; the others no longer sum to 1."""
    ordered, order = torch.sort(probabilities, dim=1, descending=True, stable=True)
    if sampling.top_k is not None:
        ordered[:, sampling.top_k :] = 0.0
    if sampling.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p * ordered.sum(dim=1, keepdim=True), 0.0)
    return torch.zeros_like(ordered).scatter_(1, order, ordered)
