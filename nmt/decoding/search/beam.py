"""Batched beam search over any step function; greedy search is beam 1.

It knows `step(tokens, state)` and `state.select(rows)`, never a model, a vocabulary or text. All sentences advance
together as tensors of shape (sentences, beam); a finished sentence leaves the batch at once. Sums are kept in float64.
A sentence that is alone is searched in the same way by `one_sentence.py`, if its beam is small.

The search. At each step the 2 × beam_size best continuations of a sentence, by summed log-probability, are ranked.
Those among the first beam_size that end in END are finished; the best beam_size of the others live on. A sentence is
done when one of these holds:

- its maximal length is reached: END is forced there, and its log-probability added;
- beam_size hypotheses have finished, and no live one scores better, as it stands, than the best of them;
- no live hypothesis can still enter the n-best list. Log-probabilities only fall, so one of log-probability L never
  scores more than L / penalty(maximal length). This bound is exact: it saves steps and never changes a result. What
  `supplement` adds to the score of a hypothesis that ends is at most 0, and so leaves the bound as it is.

Of equally good continuations the one of the better hypothesis, then the one with the smaller token id comes first. A
sentence's result does not depend on the rest of the batch, beyond the rounding of what `step` computes in float32.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER, best_continuations, descending, only_end
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalty
from nmt.decoding.search.one_sentence import LARGEST_BEAM, search_one
from nmt.symbols import BEGIN, END

Rows = Tensor | slice
"""Sentences by their places in the input: slice(None) stands for all of them, and costs nothing to read or write."""


def beam_search(
    step: Step[State],
    state: State,
    *,
    sentences: int,
    beam_size: int,
    length_penalty: LengthPenalty,
    max_lengths: Tensor,
    n_best: int = 1,
    supplement: Callable[[State], Tensor] | None = None,
    device: torch.device | str = "cpu",
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first.

    `step` maps tokens (rows,) and the state to log-probabilities (rows, vocabulary), which are overwritten, and the
    next state; rows are ordered by sentence, and `state` starts with one row a sentence. `max_lengths` (sentences,)
    counts END. PAD and BEGIN are never produced. `supplement` maps the state after a step to what is added to the
    scores of the hypotheses that end with it: (rows,) in float64, at most 0. A list is shorter than `n_best` when fewer
    hypotheses of non-zero probability finished, as with a maximal length of 1 or a tiny vocabulary.

    Raises NotNumbersError for NaN log-probabilities, ValueError for sizes below 1 and n_best > beam_size.
    """
    if sentences == 0:
        return []
    shortest, longest = int(max_lengths.min()), int(max_lengths.max())
    if min(beam_size, n_best, shortest) < 1 or n_best > beam_size or max_lengths.shape != (sentences,):
        raise ValueError("beam_size, n_best and max_lengths must be at least 1, n_best at most beam_size")
    if sentences == 1 and beam_size <= LARGEST_BEAM:
        alone = search_one(
            step,
            state,
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=longest,
            n_best=n_best,
            supplement=supplement,
            device=device,
        )
        return [alone]
    limits = max_lengths.to(device, torch.long)  # (active,)
    ends = set(max_lengths.tolist())
    penalties = torch.tensor(
        [penalty(length, length_penalty) for length in range(1, longest + 1)], dtype=torch.float64, device=device
    )
    history = History(longest, sentences, beam_size, device)
    finished = Finished(sentences, n_best, device)

    active: Rows = slice(None)  # the sentences still searched, by their place in the input
    live = torch.zeros(sentences, 1, dtype=torch.float64, device=device)  # (active, width) log-probabilities
    tokens = torch.full((sentences, 1), BEGIN, device=device)
    some_finished = False
    for time in range(longest):
        log_probabilities, state = step(tokens.flatten(), state)
        width, some_at_limit = live.shape[1], time + 1 in ends
        if some_at_limit:
            only_end(log_probabilities, (limits == time + 1).repeat_interleave(width))
        totals, origins, tokens = best_continuations(live, log_probabilities, 2 * beam_size, time)

        ended = tokens == END
        some_ended = bool(ended.any())
        if some_ended and bool(ended[:, :beam_size].any()):
            ending = totals.masked_fill(~ended, NEVER)[:, :beam_size]
            added = None if supplement is None else supplement(state).view(live.shape)
            finished.add(active, time, ending, origins[:, :beam_size], penalties[time], added)
            some_finished = True
        if some_ended:
            live, order = descending(totals.masked_fill(ended, NEVER), beam_size)
            tokens, origins = tokens.gather(1, order), origins.gather(1, order)
        else:
            live, tokens, origins = totals[:, :beam_size], tokens[:, :beam_size], origins[:, :beam_size]
        history.add(active, time, tokens, origins)

        rows = origins + torch.arange(0, live.shape[0] * width, width, device=device).unsqueeze(1)
        done = limits == time + 1
        if some_finished:
            scores, best = finished.scores[active], live[:, 0]
            settled = (finished.counts[active] >= beam_size) & (scores[:, 0] >= best / penalties[time])
            done = done | settled | (scores[:, -1] >= best / penalties[limits - 1])
        if (some_finished or some_at_limit) and bool(done.any()):
            going_on = torch.nonzero(~done).squeeze(1)
            active = going_on if isinstance(active, slice) else active[going_on]
            limits, live, tokens, rows = limits[going_on], live[going_on], tokens[going_on], rows[going_on]
            if limits.numel() == 0:
                break
        elif width == live.shape[1] == 1:
            continue  # greedy search, the same sentences: the rows are where they were
        state = state.select(rows)
    return resolve(history, finished)


def force_end(values: Tensor, choices: Tensor, end: Tensor, at_limit: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Leave END, with its log-probability `end` (rows,), as the only choice of the sentences `at_limit`."""
    rows = at_limit.repeat_interleave(width)
    values, choices = values.masked_fill(rows.unsqueeze(1), NEVER), choices.masked_fill(rows.unsqueeze(1), END)
    values[:, 0] = torch.where(rows, end.double(), values[:, 0])
    return values, choices


class History:
    """The tokens and back-pointers of every step: (steps, sentences, beam), written where a sentence was active."""

    def __init__(self, steps: int, sentences: int, beam_size: int, device: torch.device | str) -> None:
        self.tokens = torch.empty(steps, sentences, beam_size, dtype=torch.long, device=device)
        self.origins = torch.empty_like(self.tokens)

    def add(self, active: Rows, time: int, tokens: Tensor, origins: Tensor) -> None:
        self.tokens[time, active, : tokens.shape[1]] = tokens
        self.origins[time, active, : tokens.shape[1]] = origins


class Finished:
    """The n-best finished hypotheses of every sentence so far, each as its length without END and place in the beam."""

    def __init__(self, sentences: int, n_best: int, device: torch.device | str) -> None:
        self.scores = torch.full((sentences, n_best), NEVER, dtype=torch.float64, device=device)
        self.log_probabilities = self.scores.clone()
        self.supplements = torch.zeros_like(self.scores)
        self.lengths = torch.zeros(sentences, n_best, dtype=torch.long, device=device)
        self.origins = torch.zeros_like(self.lengths)
        self.counts = torch.zeros(sentences, dtype=torch.long, device=device)

    def add(
        self,
        active: Rows,
        length: int,
        log_probabilities: Tensor,
        origins: Tensor,
        penalty: Tensor,
        supplements: Tensor | None,
    ) -> None:
        """Add the candidates (active, beam) whose log-probability is not -inf; of equal ones the earlier is kept.

        `supplements` (active, width) are those of the present hypotheses, of which `origins` are places.
        """
        self.counts[active] += (log_probabilities > NEVER).sum(dim=1)
        added = None if supplements is None else supplements.gather(1, origins)
        new = log_probabilities / penalty if added is None else log_probabilities / penalty + added
        scores, order = descending(torch.cat([self.scores[active], new], dim=1), self.scores.shape[1])
        self.scores[active] = scores
        for kept, candidates in (
            (self.log_probabilities, log_probabilities),
            (self.supplements, added),
            (self.lengths, torch.full_like(origins, length)),
            (self.origins, origins),
        ):
            if candidates is not None:
                kept[active] = torch.cat([kept[active], candidates], dim=1).gather(1, order)


def resolve(history: History, finished: Finished) -> list[list[Hypothesis]]:
    """Follow the back-pointers of all finished hypotheses at once, from the last token to the first."""
    lengths, places = finished.lengths.cpu(), finished.origins.cpu()
    longest = int(lengths.max())
    history_tokens, history_origins = history.tokens[:longest].cpu(), history.origins[:longest].cpu()
    tokens = torch.zeros(*lengths.shape, longest, dtype=torch.long)
    for time in reversed(range(longest)):
        within = lengths > time
        tokens[:, :, time] = history_tokens[time].gather(1, places)
        places = torch.where(within, history_origins[time].gather(1, places), places)
    return [
        [
            Hypothesis(ids[:length], score, log_probability, supplement)
            for ids, length, score, log_probability, supplement in zip(*sentence, strict=True)
            if score > NEVER
        ]
        for sentence in zip(
            tokens.tolist(),
            lengths.tolist(),
            finished.scores.tolist(),
            finished.log_probabilities.tolist(),
            finished.supplements.tolist(),
            strict=True,
        )
    ]
