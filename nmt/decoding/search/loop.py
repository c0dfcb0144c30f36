"""The one loop of every search: a policy chooses which hypotheses live on, and the loop does the rest.

It knows `step(tokens, state, wanted)` and `state.select(rows)`, never a model, a vocabulary or text. Hypotheses compete
within a lane. A sentence has one lane in beam search, one for each group in diverse beam search, and one for each
sample in sampling. The lanes of all sentences advance together, as arrays (lanes, width) in the order of the sentences;
a sentence leaves the batch as soon as all its lanes are done. Sums are kept in float64.

At the maximal length END is forced, and its log-probability added. A sentence's result does not depend on the rest of
the batch, beyond the rounding of what `step` computes in float32.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain

import numpy as np

from nmt.decoding.search.choices import NEVER, Choice, Ending, descending, only_end, taken
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty, Scores, State, Step, penalty
from nmt.decoding.search.rules import Rule, under_rules
from nmt.symbols import BEGIN

ALL = slice(None)  # lanes


class Policy:
    """How a search chooses among the continuations of its hypotheses."""

    beam_size: int  # the most hypotheses of a lane
    lanes_per_sentence = 1
    wanted: int | None = None
    """How many of the most probable tokens of each row `choose` has to know; None: all."""

    def choose(self, lanes: "Lanes", scores: Scores) -> Choice:
        """The hypotheses that live on in each of `lanes`, and those that end.

        `scores` (lanes × width, …) are those of the next tokens, at least the `wanted` ones.
        """
        raise NotImplementedError

    def keep(self, lanes: Array) -> None:
        """Forget all lanes but these, given by their places among the present ones; for a policy that has a memory."""

    def joined(self, lanes: Sequence[list[Hypothesis]]) -> list[Hypothesis]:
        """What a sentence gets of the hypotheses of its lanes."""
        return list(chain(*lanes))


def search(
    step: Step[State],
    state: State,
    policy: Policy,
    *,
    max_lengths: Array,
    length_penalty: LengthPenalty,
    n_best: int,
    rules: Sequence[Rule] = (),
    supplement: Callable[[State], Array] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, as `policy` joins the `n_best` best finished ones of its lanes, best first.

    `step` maps tokens (rows,) and the state to log-probabilities, which are overwritten, and the next state, see
    `Step`; rows are ordered by sentence and lane, and `state` starts with one row a sentence. `max_lengths`
    (sentences,) counts END. PAD and BEGIN are never produced, nor is what `rules` forbid, of which a policy that is a
    rule too is the first. `supplement` maps the state after a step to what is added to the scores of the hypotheses
    that end with it: (rows,) in float64, at most 0. A lane has fewer than `n_best` when fewer hypotheses of non-zero
    probability finished, as with a maximal length of 1 or a tiny vocabulary.

    Raises NotNumbersError for NaN log-probabilities.
    """
    per_sentence = policy.lanes_per_sentence
    lanes = Lanes(np.repeat(max_lengths, per_sentence), length_penalty, policy.beam_size, n_best)
    sentences = np.repeat(np.arange(len(max_lengths)), per_sentence)  # (rows,)
    if per_sentence > 1:
        state = state.select(sentences.reshape(-1, per_sentence))
    if isinstance(policy, Rule):
        rules = [policy, *rules]
    tokens = np.full((len(sentences), 1), BEGIN)
    written = tokens[:, :0]  # (rows, time), from the first step on with BEGIN in front; only for rules
    ends = set(max_lengths.tolist())
    for time in range(len(lanes.penalties)):
        lanes.time, width, some_at_limit = time, lanes.live.shape[1], time + 1 in ends
        scores, state = step(tokens.ravel(), state, None if rules or some_at_limit else policy.wanted)
        if rules:
            written = np.concatenate([written, tokens.reshape(-1, 1)], axis=1)
            scores = Scores(under_rules(scores.values, written[:, 1:], sentences, rules))
        if some_at_limit:
            only_end(scores.values, np.repeat(lanes.limits == time + 1, width))
        if supplement is not None:
            lanes.supplements = cache(partial(supplement, state))
        live, tokens, origins, ending = policy.choose(lanes, scores)
        lanes.finish(ending)
        lanes.write(live, tokens, origins)

        lanes.live, some_done = live, False
        if lanes.some_finished or some_at_limit:
            done = lanes.done(live)
            if per_sentence > 1:  # a lane that is done waits for the others of its sentence
                lanes.live = np.where(done[:, None], NEVER, live)
                done = np.repeat(done.reshape(-1, per_sentence).all(axis=1), per_sentence)
            some_done = bool(done.any())
        if some_done:
            going_on = np.flatnonzero(~done)
            if not len(going_on):
                break
            lanes.keep(going_on)
            policy.keep(going_on)
            tokens, origins, first = tokens[going_on], origins[going_on], going_on * width
        elif width == live.shape[1] == 1:
            continue  # one hypothesis in each lane, the same lanes: the rows are where they were
        else:
            first = np.arange(0, len(live) * width, width)
        rows = origins + first[:, None]
        if rules:
            written, sentences = written[rows.ravel()], sentences[rows.ravel()]
        state = state.select(rows if per_sentence == 1 else rows.reshape(-1, per_sentence * rows.shape[1]))
    results = lanes.hypotheses()
    return [policy.joined(results[first : first + per_sentence]) for first in range(0, len(results), per_sentence)]


def is_done(
    live: Array,
    *,
    ended: Array,
    best: Array,
    worst: Array,
    beam_size: int,
    length: int,
    limit: Array,
    penalties: Array,
) -> Array:
    """Whether each lane is done with its `length` tokens, (lanes,), as one of these holds:

    - it is at its limit: END was forced there, so nothing lives on;
    - it is settled: `beam_size` hypotheses have ended, and no live one scores better, as it stands, than the best of
      them;
    - it is beaten: no live hypothesis can still enter the n-best list. As log-probabilities only fall, one of
      log-probability L never scores more than L / penalty(limit). This bound is exact: it saves steps and never changes
      a result. What a supplement adds to the score of a hypothesis that ends is at most 0, so the bound still holds.

    `live` is the log-probability of the best live hypothesis, `ended` the number of hypotheses that have ended; `best`
    and `worst` are the first and the last score of the n-best list, `penalties` those of the lengths from 1 on.
    """
    settled = (ended >= beam_size) & (best >= live / penalties[length - 1])
    beaten = worst >= live / penalties[limit - 1]
    done: Array = (limit == length) | settled | beaten
    return done


class Lanes:
    """The lanes of all sentences: the hypotheses that live in those still searched, and the n-best that have finished.

    A finished hypothesis is kept as its length without END and its place in the lane, from where tokens and
    back-pointers are followed to the start.
    """

    time: int  # how many tokens the live hypotheses have

    def __init__(self, limits: Array, length_penalty: LengthPenalty, beam_size: int, n_best: int) -> None:
        """Before the first token; `limits` (lanes,) are the maximal lengths."""
        self.beam_size = beam_size
        self.penalties = np.array([penalty(length + 1, length_penalty) for length in range(int(limits.max()))])
        self.active = np.arange(len(limits))  # those still searched, by their places in the input
        self.limits = limits  # (active,)
        self.live = np.zeros((len(limits), 1))  # (active, width) log-probabilities
        self.supplements: Callable[[], Array] | None = None  # of the present hypotheses: (active × width,)
        self.tokens = np.zeros((len(self.penalties), len(limits), beam_size), dtype=np.int64)
        self.origins, self.totals = np.zeros_like(self.tokens), np.zeros(self.tokens.shape)
        self.some_finished = False
        self.ended = np.zeros(len(limits), dtype=np.int64)  # how many hypotheses have
        self.scores = np.full((len(limits), n_best), NEVER)
        self.log_probabilities = self.scores.copy()
        self.added = np.zeros_like(self.scores)  # the supplements that are in the scores
        self.lengths = np.zeros(self.scores.shape, dtype=np.int64)
        self.places = np.zeros_like(self.lengths)

    def write(self, live: Array, tokens: Array, origins: Array) -> None:
        """Note the hypotheses that live on after the present step."""
        width = tokens.shape[1]
        self.tokens[self.time, self.active, :width] = tokens
        self.origins[self.time, self.active, :width] = origins
        self.totals[self.time, self.active, :width] = live

    def finish(self, ending: Ending | None, part: slice = ALL) -> None:
        """Note the hypotheses that end in the present step, in the lanes `part` of the active ones.

        Of equally good hypotheses the earlier one is kept.
        """
        if ending is None:
            return
        self.some_finished = True
        lanes, scores, added = self.active[part], ending.totals / self.penalties[self.time], None
        if self.supplements is not None:
            added = taken(self.supplements().reshape(self.live.shape)[part], ending.origins)
            scores = scores + added
        self.ended[lanes] += (ending.totals > NEVER).sum(axis=1)
        best, order = descending(np.concatenate([self.scores[lanes], scores], axis=1), self.scores.shape[1])
        self.scores[lanes] = best
        for kept, new in (
            (self.log_probabilities, ending.totals),
            (self.added, added),
            (self.lengths, np.full_like(ending.origins, self.time)),
            (self.places, ending.origins),
        ):
            if new is not None:
                kept[lanes] = taken(np.concatenate([kept[lanes], new], axis=1), order)

    def done(self, live: Array, part: slice = ALL) -> Array:
        """Whether each lane of `part` is done when `live` (lanes, width) are left after the present step."""
        lanes = self.active[part]
        scores = self.scores[lanes]
        return is_done(
            live.max(axis=1),
            ended=self.ended[lanes],
            best=scores[:, 0],
            worst=scores[:, -1],
            beam_size=self.beam_size,
            length=self.time + 1,
            limit=self.limits[part],
            penalties=self.penalties,
        )

    def keep(self, lanes: Array) -> None:
        """Search on in `lanes` only, which are given by their places among the active ones."""
        self.active, self.limits, self.live = self.active[lanes], self.limits[lanes], self.live[lanes]

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The n-best of each lane, best first. The back-pointers of all are followed at once, from the last step on."""
        lengths, places, every = self.lengths, self.places, np.arange(len(self.lengths))[:, None]
        tokens = np.zeros((*lengths.shape, int(lengths.max())), dtype=np.int64)
        totals = np.zeros(tokens.shape)
        for time in reversed(range(tokens.shape[2])):
            tokens[:, :, time] = self.tokens[time, every, places]
            totals[:, :, time] = self.totals[time, every, places]
            places = np.where(lengths > time, self.origins[time, every, places], places)
        columns = (tokens, lengths, self.scores, self.log_probabilities, self.added, totals)
        return [
            [
                Hypothesis(ids[:length], score, log_probability, added, sums[:length])
                for ids, length, score, log_probability, added, sums in zip(*lane, strict=True)
                if score > NEVER
            ]
            for lane in zip(*(column.tolist() for column in columns), strict=True)
        ]
