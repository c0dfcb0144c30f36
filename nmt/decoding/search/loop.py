"""The one loop of every search: a policy chooses which hypotheses live on, and the loop does the rest.

It knows `step(tokens, state)` and `state.select(rows)`, never a model, a vocabulary or text. Hypotheses compete within
a lane. A sentence has one lane in beam search, one for each group in diverse beam search, and one for each sample in
sampling. The lanes of all sentences advance together, as tensors of shape (lanes, width) in the order of the sentences;
a sentence leaves the batch as soon as all its lanes are done. Sums are kept in float64.

At the maximal length END is forced, and its log-probability added. A sentence's result does not depend on the rest of
the batch, beyond the rounding of what `step` computes in float32.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER, Choice, Ending, descending, only_end
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalties
from nmt.decoding.search.rules import Rule, under_rules
from nmt.symbols import BEGIN

ALL = slice(None)
Places = Tensor | slice
"""Lanes by their places in the input; ALL of them cost nothing to read or write."""
Number = TypeVar("Number", Tensor, float)


class Policy:
    """How a search chooses among the continuations of its hypotheses."""

    beam_size: int  # the most hypotheses of a lane
    lanes_per_sentence = 1

    def choose(self, lanes: "Lanes", log_probabilities: Tensor) -> Choice:
        """The hypotheses that live on in each of `lanes`, and those that end.

        `log_probabilities` (lanes × width, vocabulary) are those of the next tokens, and may be overwritten.
        """
        raise NotImplementedError

    def keep(self, lanes: Tensor) -> None:
        """Forget all lanes but these, given by their places among the present ones; for a policy that has a memory."""

    def joined(self, lanes: Sequence[list[Hypothesis]]) -> list[Hypothesis]:
        """What a sentence gets of the hypotheses of its lanes."""
        return list(chain(*lanes))


def search(
    step: Step[State],
    state: State,
    policy: Policy,
    *,
    max_lengths: Tensor,
    length_penalty: LengthPenalty,
    n_best: int,
    rules: Sequence[Rule] = (),
    supplement: Callable[[State], Tensor] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, as `policy` joins the `n_best` best finished ones of its lanes, best first.

    `step` maps tokens (rows,) and the state to log-probabilities (rows, vocabulary), which are overwritten, and the
    next state; rows are ordered by sentence and lane, and `state` starts with one row a sentence. `max_lengths`
    (sentences,) counts END. PAD and BEGIN are never produced, nor is what `rules` forbid, of which a policy that is a
    rule too is the first. `supplement` maps the state after a step to what is added to the scores of the hypotheses
    that end with it: (rows,) in float64, at most 0. A lane has fewer than `n_best` when fewer hypotheses of non-zero
    probability finished, as with a maximal length of 1 or a tiny vocabulary.

    Raises NotNumbersError for NaN log-probabilities.
    """
    device, per_sentence = max_lengths.device, policy.lanes_per_sentence
    lanes = Lanes(max_lengths.repeat_interleave(per_sentence), length_penalty, policy.beam_size, n_best)
    sentences = torch.arange(len(max_lengths), device=device).repeat_interleave(per_sentence)  # (rows,)
    if per_sentence > 1:
        state = state.select(sentences.view(-1, per_sentence))
    if isinstance(policy, Rule):
        rules = [policy, *rules]
    tokens = torch.full((len(sentences), 1), BEGIN, device=device)
    written = tokens[:, :0]  # (rows, time), from the first step on with BEGIN in front; only for rules
    ends = set(max_lengths.tolist())
    for time in range(len(lanes.penalties)):
        log_probabilities, state = step(tokens.flatten(), state)
        lanes.time, width, some_at_limit = time, lanes.live.size(1), time + 1 in ends
        if rules:
            written = torch.cat([written, tokens.reshape(-1, 1)], dim=1)
            log_probabilities = under_rules(log_probabilities, written[:, 1:], sentences, rules)
        if some_at_limit:
            only_end(log_probabilities, (lanes.limits == time + 1).repeat_interleave(width))
        if supplement is not None:
            lanes.supplements = cache(partial(supplement, state))
        live, tokens, origins, ending = policy.choose(lanes, log_probabilities)
        lanes.finish(ending)
        lanes.write(live, tokens, origins)

        lanes.live, some_done = live, False
        if lanes.some_finished or some_at_limit:
            done = lanes.done(live)
            if per_sentence > 1:  # a lane that is done waits for the others of its sentence
                lanes.live = live.masked_fill(done.unsqueeze(1), NEVER)
                done = done.view(-1, per_sentence).all(dim=1).repeat_interleave(per_sentence)
            some_done = bool(done.any())
        if some_done:
            going_on = torch.nonzero(~done).squeeze(1)
            if going_on.numel() == 0:
                break
            lanes.keep(going_on)
            policy.keep(going_on)
            tokens, origins, first = tokens[going_on], origins[going_on], going_on * width
        elif width == live.size(1) == 1:
            continue  # one hypothesis in each lane, the same lanes: the rows are where they were
        else:
            first = torch.arange(0, len(live) * width, width, device=device)
        rows = origins + first.unsqueeze(1)
        if rules:
            written, sentences = written[rows.flatten()], sentences[rows.flatten()]
        state = state.select(rows if per_sentence == 1 else rows.view(-1, per_sentence * rows.size(1)))
    results = lanes.hypotheses()
    return [policy.joined(results[first : first + per_sentence]) for first in range(0, len(results), per_sentence)]


def is_done(
    live: Number,
    *,
    ended: Number,
    best: Number,
    worst: Number,
    beam_size: int,
    length: int,
    limit: Number,
    penalties: Any,
) -> Number:
    """Whether a lane is done with its `length` tokens, as one of these holds:

    - it is at its limit: END was forced there, so nothing lives on;
    - it is settled: `beam_size` hypotheses have ended, and no live one scores better, as it stands, than the best of
      them;
    - it is beaten: no live hypothesis can still enter the n-best list. As log-probabilities only fall, one of
      log-probability L never scores more than L / penalty(limit). This bound is exact: it saves steps and never changes
      a result. What a supplement adds to the score of a hypothesis that ends is at most 0, so the bound still holds.

    `live` is the log-probability of the best live hypothesis, `ended` the number of hypotheses that have ended; `best`
    and `worst` are the first and the last score of the n-best list, `penalties` those of the lengths from 1 on. For
    many lanes these are tensors (lanes,), and `penalties` is one; for one lane they are numbers and a list.
    """
    settled = (ended >= beam_size) & (best >= live / penalties[length - 1])
    beaten = worst >= live / penalties[limit - 1]
    return (limit == length) | settled | beaten


class Lanes:
    """The lanes of all sentences: the hypotheses that live in those still searched, and the n-best that have finished.

    A finished hypothesis is kept as its length without END and its place in the lane, from where tokens and
    back-pointers are followed to the start.
    """

    time: int  # how many tokens the live hypotheses have

    def __init__(self, limits: Tensor, length_penalty: LengthPenalty, beam_size: int, n_best: int) -> None:
        """Before the first token; `limits` (lanes,) are the maximal lengths."""
        device, table = limits.device, penalties(int(limits.max()), length_penalty)
        self.beam_size = beam_size
        self.penalties = torch.tensor(table, dtype=torch.float64, device=device)  # of the lengths from 1 on
        self.active: Places = ALL
        self.limits = limits  # (active,)
        self.live = torch.zeros(len(limits), 1, dtype=torch.float64, device=device)  # (active, width) log-probabilities
        self.supplements: Callable[[], Tensor] | None = None  # of the present hypotheses: (active × width,)
        self.tokens = torch.empty(len(table), len(limits), beam_size, dtype=torch.long, device=device)
        self.origins = torch.empty_like(self.tokens)
        self.totals = torch.empty_like(self.tokens, dtype=torch.float64)
        self.some_finished = False
        self.ended = torch.zeros(len(limits), dtype=torch.long, device=device)  # how many hypotheses have
        self.scores = torch.full((len(limits), n_best), NEVER, dtype=torch.float64, device=device)
        self.log_probabilities = self.scores.clone()
        self.added = torch.zeros_like(self.scores)  # the supplements that are in the scores
        self.lengths = torch.zeros(len(limits), n_best, dtype=torch.long, device=device)
        self.places = torch.zeros_like(self.lengths)

    def write(self, live: Tensor, tokens: Tensor, origins: Tensor) -> None:
        """Note the hypotheses that live on after the present step."""
        self.tokens[self.time, self.active, : tokens.size(1)] = tokens
        self.origins[self.time, self.active, : tokens.size(1)] = origins
        self.totals[self.time, self.active, : tokens.size(1)] = live

    def finish(self, ending: Ending | None, part: slice = ALL) -> None:
        """Note the hypotheses that end in the present step, in the lanes `part` of the active ones.

        Of equally good hypotheses the earlier one is kept.
        """
        if ending is None:
            return
        self.some_finished = True
        lanes, scores, added = self._lanes(part), ending.totals / self.penalties[self.time], None
        if self.supplements is not None:
            added = _of(part, self.supplements().view(self.live.shape)).gather(1, ending.origins)
            scores = scores + added
        self.ended[lanes] += (ending.totals > NEVER).sum(dim=1)
        best, order = descending(torch.cat([self.scores[lanes], scores], dim=1), self.scores.size(1))
        self.scores[lanes] = best
        for kept, new in (
            (self.log_probabilities, ending.totals),
            (self.added, added),
            (self.lengths, torch.full_like(ending.origins, self.time)),
            (self.places, ending.origins),
        ):
            if new is not None:
                kept[lanes] = torch.cat([kept[lanes], new], dim=1).gather(1, order)

    def done(self, live: Tensor, part: slice = ALL) -> Tensor:
        """Whether each lane of `part` is done when `live` (lanes, width) are left after the present step."""
        lanes = self._lanes(part)
        scores = self.scores[lanes]
        return is_done(
            live.amax(dim=1),
            ended=self.ended[lanes],
            best=scores[:, 0],
            worst=scores[:, -1],
            beam_size=self.beam_size,
            length=self.time + 1,
            limit=_of(part, self.limits),
            penalties=self.penalties,
        )

    def keep(self, lanes: Tensor) -> None:
        """Search on in `lanes` only, which are given by their places among the active ones."""
        self.active = lanes if isinstance(self.active, slice) else self.active[lanes]
        self.limits, self.live = self.limits[lanes], self.live[lanes]

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The n-best of each lane, best first. The back-pointers of all are followed at once, from the last step on."""
        lengths, places = self.lengths.cpu(), self.places.cpu()
        longest = int(lengths.max())
        written, origins, summed = (part[:longest].cpu() for part in (self.tokens, self.origins, self.totals))
        tokens = torch.zeros(*lengths.shape, longest, dtype=torch.long)
        totals = torch.zeros(*lengths.shape, longest, dtype=torch.float64)
        for time in reversed(range(longest)):
            tokens[:, :, time] = written[time].gather(1, places)
            totals[:, :, time] = summed[time].gather(1, places)
            places = torch.where(lengths > time, origins[time].gather(1, places), places)
        columns = (tokens, lengths, self.scores, self.log_probabilities, self.added, totals)
        return [
            [
                Hypothesis(ids[:length], score, log_probability, added, sums[:length])
                for ids, length, score, log_probability, added, sums in zip(*lane, strict=True)
                if score > NEVER
            ]
            for lane in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _lanes(self, part: slice) -> Places:
        """The places in the input of the lanes `part` of the active ones."""
        return part if isinstance(self.active, slice) else _of(part, self.active)


def _of(part: slice, values: Tensor) -> Tensor:
    """The values of the lanes `part`; those of ALL of them at no cost."""
    return values if part == ALL else values[part]
