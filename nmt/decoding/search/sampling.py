"""Translations drawn at random from the model's distribution, instead of searched for.

Like beam search it sees `step(tokens, state)` and `state.select(rows)` only. Each step of a translation uses up one
number between 0 and 1, drawn beforehand: `numbers` makes them from the seed and the line's place alone, so that neither
batches nor other lines change what is drawn for a line.

Fan, Lewis & Dauphin (2018), arXiv 1805.04833 (top k); Holtzman et al. (2020), arXiv 1904.09751 (nucleus).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import SamplingConfig
from nmt.decoding.search.choices import NEVER, NotNumbersError
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalty
from nmt.symbols import BEGIN, END, PAD


def numbers(seed: int, places: Sequence[tuple[int, ...]], *, samples: int, steps: int) -> Tensor:
    """Numbers in [0, 1), (places, samples, steps), in float64; those of a place depend on the seed and the place only.

    Fewer steps give the beginning of the same numbers, and fewer samples the first of the same samples.
    """
    drawn = [
        [np.random.default_rng([seed, *place, sample]).random(steps) for sample in range(samples)] for place in places
    ]
    return torch.from_numpy(np.array(drawn))


def sample(
    step: Step[State],
    state: State,
    *,
    numbers: Tensor,
    sampling: SamplingConfig,
    length_penalty: LengthPenalty,
    max_lengths: Tensor,
) -> list[list[Hypothesis]]:
    """Independent translations of each sentence, as many as `numbers` (sentences, samples, steps) are for.

    `step` and `state` are as in `beam_search`, and so are `max_lengths` (sentences,), which END ends and counts in, and
    the scores. A log-probability is the model's, whatever temperature and truncation were. Where END is drawn the
    translation ends; PAD and BEGIN are never drawn. Raises NotNumbersError for NaN log-probabilities.
    """
    sentences, samples, _ = numbers.shape
    device = max_lengths.device
    numbers, limits = numbers.to(device), max_lengths.repeat_interleave(samples)
    active = torch.arange(sentences, device=device)
    state = state.select(active.unsqueeze(1).expand(-1, samples))
    written = torch.full((sentences * samples, numbers.shape[2]), PAD, device=device)
    totals = torch.zeros(sentences * samples, dtype=torch.float64, device=device)
    lengths = torch.zeros_like(limits)  # END counted; 0: not at the end yet
    tokens = torch.full((sentences * samples,), BEGIN, device=device)
    for time in range(int(max_lengths.max())):
        log_probabilities, state = step(tokens, state)
        log_probabilities = log_probabilities.double()
        if bool(log_probabilities.isnan().any()):
            raise NotNumbersError(f"the model's log-probabilities for target token {time + 1} are not numbers (NaN)")
        rows = (active.unsqueeze(1) * samples + torch.arange(samples, device=device)).flatten()
        tokens = drawn_tokens(log_probabilities, numbers.flatten(0, 1)[rows, time], sampling)
        tokens = tokens.masked_fill(limits[rows] == time + 1, END)
        going_on = lengths[rows] == 0
        taken = log_probabilities.gather(1, tokens.unsqueeze(1)).squeeze(1)
        totals[rows] += taken.masked_fill(~going_on, 0.0)
        written[rows, time] = tokens
        lengths[rows] = torch.where(going_on & (tokens == END), time + 1, lengths[rows])
        needed = (lengths[rows] == 0).view(-1, samples).any(dim=1)
        if not bool(needed.any()):
            break
        if not bool(needed.all()):
            kept = torch.arange(len(rows), device=device).view(-1, samples)[needed]
            active, tokens, state = active[needed], tokens[kept.flatten()], state.select(kept)
    found = [
        Hypothesis(words[: length - 1], total / penalty(length, length_penalty), total)
        for words, length, total in zip(written.tolist(), lengths.tolist(), totals.tolist(), strict=True)
    ]
    return [found[first : first + samples] for first in range(0, len(found), samples)]


def drawn_tokens(log_probabilities: Tensor, numbers: Tensor, sampling: SamplingConfig) -> Tensor:
    """The token that each number (rows,) in [0, 1) falls on: tokens share the interval in the order of their ids.

    p_i ∝ exp(log p_i / temperature), of the `log_probabilities` (rows, vocabulary), in float64. Of these the `top_k`
    most probable are left, then of those, made to sum to 1 again, the fewest that together have a probability of at
    least `top_p`. Of equally probable tokens the one with the smaller id goes first. Raises NotNumbersError where none
    has a probability above 0.
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
    wanted = torch.minimum(numbers.unsqueeze(1) * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(shares, wanted, right=True).squeeze(1)


def _truncated(probabilities: Tensor, sampling: SamplingConfig) -> Tensor:
    """The probabilities with those of the tokens that are not to be drawn at 0; the others do not sum to 1 any more."""
    ordered, order = torch.sort(probabilities, dim=1, descending=True, stable=True)
    if sampling.top_k is not None:
        ordered[:, sampling.top_k :] = 0.0
    if sampling.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p * ordered.sum(dim=1, keepdim=True), 0.0)
    return torch.zeros_like(ordered).scatter_(1, order, ordered)
