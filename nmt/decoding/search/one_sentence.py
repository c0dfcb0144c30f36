"""Beam search of one sentence with lists and loops: the plain twin of the batched search in `loop.py` and `beam.py`.

`beam_search` calls it for a sentence that is alone, if the beam is small. There are only a few numbers to choose among
then, and Python is done with them before PyTorch has started and finished the many operations of a batched step. From
equal log-probabilities the two make equal choices and compute equal scores, to the last bit.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER, best_continuations, not_numbers, only_end
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalties
from nmt.decoding.search.loop import is_done
from nmt.decoding.search.rules import Rule, under_rules
from nmt.symbols import BEGIN, END, PAD

LARGEST_BEAM = 10  # with a larger one Python needs as long, or longer

Continuation = tuple[float, int, int]
"""The summed log-probability of a continuation, the place of the hypothesis that is continued, the token."""


def search_one(
    step: Step[State],
    state: State,
    *,
    beam_size: int,
    max_lengths: Tensor,
    length_penalty: LengthPenalty,
    n_best: int,
    rules: Sequence[Rule] = (),
    supplement: Callable[[State], Tensor] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of the one sentence, best first; the arguments are those of `loop.search`.

    Impossible hypotheses are not followed, so a step may have fewer rows than the beam. Raises NotNumbersError for NaN
    log-probabilities.
    """
    max_length, device = int(max_lengths), max_lengths.device
    live: list[tuple[float, list[int], list[float]]] = [(0.0, [], [])]  # their totals, tokens, and earlier totals
    finished = [Hypothesis([], NEVER, NEVER)] * n_best
    ended = 0
    tokens = torch.tensor([BEGIN], device=device)
    table = penalties(max_length, length_penalty)
    for length, penalty in enumerate(table, 1):
        log_probabilities, state = step(tokens, state)
        if rules:
            written = torch.tensor([words for _, words, _ in live], dtype=torch.long, device=device)
            log_probabilities = under_rules(log_probabilities, written, torch.zeros_like(tokens), rules)
        if length == max_length:
            only_end(log_probabilities, torch.ones(len(live), dtype=torch.bool, device=device))
        choices = best_choices([total for total, _, _ in live], log_probabilities, 2 * beam_size, length)
        if ending := [choice for choice in choices[:beam_size] if choice[2] == END]:
            added = [0.0] * len(live) if supplement is None else supplement(state).tolist()
            for total, origin, _ in ending:
                score = total / penalty + added[origin]
                finished.append(Hypothesis(live[origin][1], score, total, added[origin], live[origin][2]))
            finished = sorted(finished, key=lambda hypothesis: -hypothesis.score)[:n_best]
            ended += len(ending)
        choices = [choice for choice in choices if choice[2] != END][:beam_size]
        if is_done(
            choices[0][0] if choices else NEVER,
            ended=ended,
            best=finished[0].score,
            worst=finished[-1].score,
            beam_size=beam_size,
            length=length,
            limit=max_length,
            penalties=table,
        ):
            break
        origins = [origin for _, origin, _ in choices]
        if origins != list(range(len(live))):
            state = state.select(torch.tensor([origins], device=device))
        live = [(total, [*live[origin][1], token], [*live[origin][2], total]) for total, origin, token in choices]
        tokens = torch.tensor([token for _, _, token in choices], device=device)
    return [[hypothesis for hypothesis in finished if hypothesis.score > NEVER]]


def best_choices(live: Sequence[float], log_probabilities: Tensor, count: int, length: int) -> list[Continuation]:
    """`best_continuations` of one sentence, without the impossible ones, for its token number `length`.

    `log_probabilities` (hypotheses, vocabulary) may be overwritten. Raises NotNumbersError for NaN.
    """
    vocabulary = log_probabilities.size(1)
    listed = min(count + 3, vocabulary)  # of each hypothesis `count` and one more, or all, besides PAD and BEGIN
    values, tokens = log_probabilities.topk(listed, dim=1)
    rows = list(zip(live, values.tolist(), tokens.tolist(), strict=True))
    # What is not listed is at most this; what is chosen is at least this.
    least = NEVER if listed == vocabulary else max(total + row[-1] for total, row, _ in rows)
    choices: list[Continuation] = []
    for origin, (total, row, ids) in enumerate(rows):
        for value, token in zip(row, ids, strict=True):
            added = total + value
            if added < least or added == NEVER:
                break
            if token != PAD and token != BEGIN:
                if math.isnan(added):  # which `topk` takes for the largest
                    raise not_numbers(length)
                choices.append((-added, origin, token))
    choices.sort()
    choices = [(-added, origin, token) for added, origin, token in choices[:count]]
    if not choices or choices[-1][0] > least:
        return choices
    totals = torch.tensor([live], dtype=torch.float64, device=log_probabilities.device)
    ranked = best_continuations(totals, log_probabilities, count, length - 1)
    return list(zip(*(part[0].tolist() for part in ranked), strict=True))
