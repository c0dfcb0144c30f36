"""Translations drawn at random from the model's distribution, instead of searched for.

Each step of a translation uses up one number between 0 and 1, drawn beforehand: `numbers` makes them from the seed and
the line's place alone, so that neither batches nor other lines change what is drawn for a line.

Fan, Lewis & Dauphin (2018), arXiv 1805.04833 (top k); Holtzman et al. (2020), arXiv 1904.09751 (nucleus).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import SamplingConfig
from nmt.decoding.search.choices import NEVER, Choice, Continuations, NotNumbersError, not_numbers, split
from nmt.decoding.search.loop import Lanes, Policy
from nmt.symbols import BEGIN, PAD


def numbers(seed: int, places: Sequence[tuple[int, ...]], *, samples: int, steps: int) -> Tensor:
    """Numbers in [0, 1), (places, samples, steps), in float64; those of a place depend only on the seed and the place.

    With fewer steps they are the beginning of the same numbers, with fewer samples those of the first samples.
    """
    drawn = [
        [np.random.default_rng([seed, *place, sample]).random(steps) for sample in range(samples)] for place in places
    ]
    return torch.from_numpy(np.array(drawn))


class Draws(Policy):
    """Each lane is a sample: it goes on with the token that its next number falls on, and is done when that is END.

    Log-probabilities are the model's, whatever the temperature and the truncation.
    """

    beam_size = 1

    def __init__(self, numbers: Tensor, sampling: SamplingConfig) -> None:
        """`numbers`: (sentences, samples, steps), on the device of the search."""
        self.lanes_per_sentence = numbers.size(1)
        self.numbers = numbers.flatten(0, 1)
        self.sampling = sampling

    def choose(self, lanes: Lanes, log_probabilities: Tensor) -> Choice:
        # What a lane that is done would write does not matter, and must not fail.
        log_probabilities = log_probabilities.double().masked_fill(lanes.live == NEVER, 0.0)
        if bool(log_probabilities.isnan().any()):
            raise not_numbers(lanes.time + 1)
        tokens = drawn_tokens(log_probabilities, self.numbers[:, lanes.time], self.sampling).unsqueeze(1)
        totals = lanes.live + log_probabilities.gather(1, tokens)
        return split(Continuations(totals, torch.zeros_like(tokens), tokens), self.beam_size)

    def keep(self, lanes: Tensor) -> None:
        self.numbers = self.numbers[lanes]


def drawn_tokens(log_probabilities: Tensor, numbers: Tensor, sampling: SamplingConfig) -> Tensor:
    """The token that each number (rows,) in [0, 1) falls on: tokens share the interval in the order of their ids.

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
    shares = probabilities.cumsum(dim=1)
    whole = shares[:, -1:]
    points = torch.minimum(numbers.unsqueeze(1) * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(shares, points, right=True).squeeze(1)


def _truncated(probabilities: Tensor, sampling: SamplingConfig) -> Tensor:
    """The probabilities, 0 for the tokens that are not to be drawn; the others no longer sum to 1."""
    ordered, order = torch.sort(probabilities, dim=1, descending=True, stable=True)
    if sampling.top_k is not None:
        ordered[:, sampling.top_k :] = 0.0
    if sampling.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p * ordered.sum(dim=1, keepdim=True), 0.0)
    return torch.zeros_like(ordered).scatter_(1, order, ordered)
