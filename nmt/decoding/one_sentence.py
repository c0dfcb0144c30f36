"""Beam search of one sentence, with lists and loops: the plain twin of `beam_search`, which leaves to it what is alone.

What a step chooses among is a few numbers then: Python has done all its work on them while PyTorch begins and ends a
few of the forty operations that a step of the batched search consists of. The choices, and all numbers, are the same.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nmt.decoding.choices import NEVER, best_continuations, not_numbers, only_end
from nmt.decoding.hypotheses import Hypothesis, LengthPenalty, State, Step, penalty
from nmt.symbols import BEGIN, END, PAD

Choice = tuple[float, int, int]
"""The summed log-probability of a continuation, the place of the hypothesis that is continued, the token."""


def search_one(
    step: Step[State],
    state: State,
    *,
    beam_size: int,
    length_penalty: LengthPenalty,
    max_length: int,
    n_best: int,
    supplement: Callable[[State], Tensor] | None,
    device: torch.device | str,
) -> list[Hypothesis]:
    """The `n_best` best hypotheses, best first; the arguments and errors are those of `beam_search`."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Hypothesis] = []
    ended = 0
    tokens = torch.tensor([BEGIN], device=device)
    for length in range(1, max_length + 1):
        log_probabilities, state = step(tokens, state)
        if length == max_length:
            only_end(log_probabilities, torch.ones(len(live), dtype=torch.bool, device=device))
        choices = best_choices([total for total, _ in live], log_probabilities, 2 * beam_size, length)
        if ending := [choice for choice in choices[:beam_size] if choice[2] == END]:
            added = [0.0] * len(live) if supplement is None else supplement(state).tolist()
            for total, origin, _ in ending:
                score = total / penalty(length, length_penalty) + added[origin]
                finished.append(Hypothesis(live[origin][1], score, total, added[origin]))
            finished = sorted(finished, key=lambda hypothesis: -hypothesis.score)[:n_best]
            ended += len(ending)
        choices = [choice for choice in choices if choice[2] != END][:beam_size]
        if not choices:
            break
        best = choices[0][0]
        if ended >= beam_size and finished[0].score >= best / penalty(length, length_penalty):
            break
        if len(finished) == n_best and finished[-1].score >= best / penalty(max_length, length_penalty):
            break
        origins = [origin for _, origin, _ in choices]
        if origins != list(range(len(live))):
            state = state.select(torch.tensor([origins], device=device))
        live = [(total, [*live[origin][1], token]) for total, origin, token in choices]
        tokens = torch.tensor([token for _, _, token in choices], device=device)
    return finished


def best_choices(live: Sequence[float], log_probabilities: Tensor, count: int, length: int) -> list[Choice]:
    """`best_continuations` of one sentence, without the impossible ones, for its token number `length`."""
    vocabulary = log_probabilities.size(1)
    listed = min(count + 3, vocabulary)  # PAD and BEGIN may be among them, and one more shows what is left out
    values, tokens = log_probabilities.topk(listed, dim=1)
    choices: list[Choice] = []
    left_out = NEVER
    for origin, (total, row, ids) in enumerate(zip(live, values.tolist(), tokens.tolist(), strict=True)):
        if math.isnan(row[0]):
            raise not_numbers(length)
        sums = ((total + value, origin, token) for value, token in zip(row, ids, strict=True))
        choices += [each for each in sums if each[2] not in (PAD, BEGIN) and each[0] > NEVER]
        left_out = max(left_out, total + row[-1])
    choices = sorted(choices, key=lambda choice: (-choice[0], choice[1], choice[2]))[:count]
    if listed == vocabulary or not choices or choices[-1][0] > left_out:
        return choices
    totals = torch.tensor([live], dtype=torch.float64, device=log_probabilities.device)
    found = (part[0].tolist() for part in best_continuations(totals, log_probabilities, count, length - 1))
    return [choice for choice in zip(*found, strict=True) if choice[0] > NEVER]
