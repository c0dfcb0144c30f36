"""Batched beam search over any step function; greedy search is beam 1.

At each step the 2 × beam_size best continuations of a sentence, by summed log-probability, are ranked. Those among the
first beam_size that end in END are finished; the best beam_size of the others live on. Of equally good continuations
the one of the better hypothesis comes first, then the one with the smaller token id. `loop.is_done` says when a search
ends.

A sentence that is alone is searched in the same way by `one_sentence.py`, if its beam is small.
"""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor

from nmt.decoding.search.choices import Choice, best_continuations, split
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step
from nmt.decoding.search.loop import Lanes, Policy, search
from nmt.decoding.search.one_sentence import LARGEST_BEAM, search_one
from nmt.decoding.search.rules import Rule


class Beam(Policy):
    """The best continuations live on, and the best that end are finished."""

    def __init__(self, beam_size: int) -> None:
        self.beam_size = beam_size

    def choose(self, lanes: Lanes, log_probabilities: Tensor) -> Choice:
        ranked = best_continuations(lanes.live, log_probabilities, 2 * self.beam_size, lanes.time)
        return split(ranked, self.beam_size)


def beam_search(
    step: Step[State],
    state: State,
    *,
    beam_size: int,
    length_penalty: LengthPenalty,
    max_lengths: Tensor,
    n_best: int,
    rules: Sequence[Rule] = (),
    supplement: Callable[[State], Tensor] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first; the arguments are those of `loop.search`.

    Raises NotNumbersError for NaN log-probabilities.
    """
    if len(max_lengths) == 1 and beam_size <= LARGEST_BEAM:
        kind: Callable[..., list[list[Hypothesis]]] = partial(search_one, beam_size=beam_size)
    else:
        kind = partial(search, policy=Beam(beam_size))
    return kind(
        step,
        state,
        max_lengths=max_lengths,
        length_penalty=length_penalty,
        n_best=n_best,
        rules=rules,
        supplement=supplement,
    )
