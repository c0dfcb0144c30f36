"""Diverse beam search: n-best lists whose translations differ in more of their tokens.

The beam is divided into groups, as many as translations are wanted. At each step they choose one after another, and a
token loses for each hypothesis of an earlier group that has just been given it:

    log p(y_t | y_<t, x) - strength · |{hypotheses of earlier groups with y_t at step t}|

What a token loses decides what a group keeps at that step, and is then forgotten: hypotheses are compared, from step to
step and at the end, by their log-probabilities. A group's END costs the others nothing. The first group searches as
`beam_search` does with a beam of the group's size; each ends by the same rules. What an earlier group gives is not
given again: then the group's next best is, and nothing if it has found nothing else.

Vijayakumar et al. (2018), arXiv 1610.02424, algorithm 1 with Hamming diversity.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from nmt.decoding.search.beam import Finished, History, force_end, resolve
from nmt.decoding.search.choices import NEVER, best_tokens, descending
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalty
from nmt.symbols import BEGIN, END


class _Group:
    """One group of every sentence: `size` hypotheses that compete with each other."""

    def __init__(self, size: int, groups: int, max_lengths: Tensor, penalties: Tensor) -> None:
        sentences, device = len(max_lengths), max_lengths.device
        self.size, self.penalties = size, penalties
        self.history = History(len(penalties), sentences, size, device)
        self.finished = Finished(sentences, groups, device)  # as many may be what other groups have found as well
        self.live = torch.zeros(sentences, 1, dtype=torch.float64, device=device)  # (active, width)

    def advance(
        self,
        log_probabilities: Tensor,
        losses: Tensor,
        active: Tensor,
        limits: Tensor,
        time: int,
        supplements: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Choose the next tokens: they and the places of the hypotheses they follow, both (active, at most size).

        `log_probabilities` (active, width, vocabulary), `losses` (active, vocabulary), `limits` (active,) the maximal
        lengths, `supplements` (active, width). A sentence that is done has no hypothesis of a log-probability but -inf.
        """
        rows = log_probabilities.flatten(0, 1)
        seen = (log_probabilities - losses.unsqueeze(1).to(rows.dtype)).flatten(0, 1)
        values, choices = best_tokens(seen, 2 * self.size, time)
        own = rows.gather(1, choices).double().masked_fill(values == NEVER, NEVER)
        at_limit, width, ends = limits == time + 1, self.live.shape[1], rows[:, END]
        own, _ = force_end(own, choices, ends, at_limit, width)
        values, choices = force_end(values, choices, ends, at_limit, width)
        _, order = descending(self._totals(values), 2 * self.size)
        totals = self._totals(own).gather(1, order)
        origins, tokens = order // values.shape[1], choices.reshape(len(active), -1).gather(1, order)

        ended = tokens == END
        ending = totals.masked_fill(~ended, NEVER)[:, : self.size]
        self.finished.add(active, time, ending, origins[:, : self.size], self.penalties[time], supplements)
        order = torch.sort(ended | (totals == NEVER), dim=1, stable=True).indices[:, : self.size]
        self.live = totals.masked_fill(ended, NEVER).gather(1, order)
        tokens, origins = tokens.gather(1, order), origins.gather(1, order)
        self.history.add(active, time, tokens, origins)

        scores, best = self.finished.scores[active], self.live.amax(dim=1)
        settled = (self.finished.counts[active] >= self.size) & (scores[:, 0] >= best / self.penalties[time])
        beaten = scores[:, -1] >= best / self.penalties[limits - 1]
        self.live = self.live.masked_fill((at_limit | settled | beaten).unsqueeze(1), NEVER)
        return tokens, origins

    def _totals(self, values: Tensor) -> Tensor:
        return (self.live.unsqueeze(2) + values.view(*self.live.shape, -1)).flatten(1)


def diverse_search(
    step: Step[State],
    state: State,
    *,
    groups: int,
    group_size: int,
    strength: float,
    length_penalty: LengthPenalty,
    max_lengths: Tensor,
    supplement: Callable[[State], Tensor] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence the best hypothesis of each group that no earlier group has given, best first.

    The other arguments are those of `beam_search`. Raises NotNumbersError for NaN log-probabilities.
    """
    sentences, longest, device = len(max_lengths), int(max_lengths.max()), max_lengths.device
    penalties = torch.tensor(
        [penalty(length, length_penalty) for length in range(1, longest + 1)], dtype=torch.float64, device=device
    )
    every = [_Group(group_size, groups, max_lengths, penalties) for _ in range(groups)]
    active = torch.arange(sentences, device=device)
    tokens, width = torch.full((sentences, 1), BEGIN, device=device), 1
    for time in range(longest):
        log_probabilities, state = step(tokens.flatten(), state)
        log_probabilities = log_probabilities.view(len(active), -1, log_probabilities.shape[1])
        added = None if supplement is None else supplement(state).view(len(active), -1)
        losses = log_probabilities.new_zeros(len(active), log_probabilities.shape[2], dtype=torch.float64)
        chosen, rows = [], []
        for number, group in enumerate(every):
            first = 0 if time == 0 else number * width  # before the first token all groups have one hypothesis
            part = slice(first, first + width)
            own = None if added is None else added[:, part]
            found, origins = group.advance(log_probabilities[:, part], losses, active, max_lengths[active], time, own)
            losses.scatter_add_(1, found, strength * (group.live > NEVER).double())
            chosen.append(found)
            rows.append(first + origins)
        flat = torch.arange(len(active), device=device).unsqueeze(1) * log_probabilities.shape[1] + torch.cat(rows, 1)
        going_on = torch.stack([(group.live > NEVER).any(dim=1) for group in every]).any(dim=0)
        tokens, flat, active, width = (
            torch.cat(chosen, 1)[going_on],
            flat[going_on],
            active[going_on],
            chosen[0].shape[1],
        )
        for group in every:
            group.live = group.live[going_on]
        if active.numel() == 0:
            break
        state = state.select(flat)
    return _different([resolve(group.history, group.finished) for group in every])


def _different(found: list[list[list[Hypothesis]]]) -> list[list[Hypothesis]]:
    """Of each sentence's hypotheses, in (groups, sentences, rank), the best of each group that is not taken yet."""
    results = []
    for lists in zip(*found, strict=True):
        taken: dict[tuple[int, ...], Hypothesis] = {}
        for hypotheses in lists:
            new = (each for each in hypotheses if tuple(each.tokens) not in taken)
            taken.update({tuple(each.tokens): each for each in [next(new, None)] if each is not None})
        results.append(sorted(taken.values(), key=lambda each: -each.score))
    return results
