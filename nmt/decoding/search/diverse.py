"""Diverse beam search: n-best lists whose translations differ in more of their tokens.

The beam is divided into groups, as many as there are translations to return. At each step the groups choose one after
another, and a token loses for each hypothesis of an earlier group that has just been given it:

    log p(y_t | y_<t, x) - strength · |{hypotheses of earlier groups with y_t at step t}|

What a token loses decides what a group keeps at that step, and is then forgotten: hypotheses are compared, from step to
step and at the end, by their log-probabilities. A group's END costs the others nothing. The first group searches as
`beam_search` does with a beam of the group's size; each group ends by the same rule. What an earlier group returns is
not returned again: a group then returns its next best hypothesis, and nothing if there is no other.

Vijayakumar et al. (2018), arXiv 1610.02424, algorithm 1 with Hamming diversity.
"""

from collections.abc import Sequence

import numpy as np

from nmt.decoding.search.choices import NEVER, Choice, best_continuations, split, taken
from nmt.decoding.search.hypotheses import Array, Hypothesis, Scores
from nmt.decoding.search.loop import Lanes, Policy


class Groups(Policy):
    """Each lane is a group, a beam by itself; the groups of a sentence choose one after another.

    To have something that no earlier group returns, each needs an n-best list as long as there are groups.
    """

    def __init__(self, groups: int, group_size: int, strength: float) -> None:
        self.lanes_per_sentence, self.beam_size, self.strength = groups, group_size, strength

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        """The choice of all groups. What ends is noted at once, as a group that is done costs the next ones nothing."""
        groups = self.lanes_per_sentence
        rows = scores.values.reshape(-1, groups, lanes.live.shape[1], scores.values.shape[1])
        losses = np.zeros((len(rows), rows.shape[3]))
        choices = []
        for group in range(groups):
            part = slice(group, None, groups)
            live, tokens, origins, ending = self._choose(lanes.live[part], rows[:, group], losses, lanes.time)
            lanes.finish(ending, part)
            live = np.where(lanes.done(live, part)[:, None], NEVER, live)
            np.add.at(losses, (np.arange(len(losses))[:, None], tokens), self.strength * (live > NEVER))
            choices.append((live, tokens, origins))
        live, tokens, origins = (
            np.stack(parts, axis=1).reshape(-1, parts[0].shape[1]) for parts in zip(*choices, strict=True)
        )
        return Choice(live, tokens, origins)

    def _choose(self, live: Array, log_probabilities: Array, losses: Array, time: int) -> Choice:
        """The choice of one group of each sentence, from `live` (sentences, width).

        `log_probabilities` (sentences, width, vocabulary), `losses` (sentences, vocabulary).
        """
        vocabulary = log_probabilities.shape[2]
        seen = (log_probabilities - losses[:, None].astype(log_probabilities.dtype)).reshape(-1, vocabulary)
        choice = split(best_continuations(live, Scores(seen), 2 * self.beam_size, time), self.beam_size)
        places = choice.origins * vocabulary + choice.tokens
        totals = taken(live, choice.origins) + taken(log_probabilities.reshape(len(live), -1), places)
        return choice._replace(live=np.where(choice.live == NEVER, NEVER, totals))

    def joined(self, lanes: Sequence[list[Hypothesis]]) -> list[Hypothesis]:
        """The best of each group that no earlier group has returned, best first."""
        taken: dict[tuple[int, ...], Hypothesis] = {}
        for hypotheses in lanes:
            new = next((hypothesis for hypothesis in hypotheses if tuple(hypothesis.tokens) not in taken), None)
            if new is not None:
                taken[tuple(new.tokens)] = new
        return sorted(taken.values(), key=lambda hypothesis: -hypothesis.score)
