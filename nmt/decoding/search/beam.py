"""Batched beam search over any step function; greedy search is beam 1.

At each step the 2 × beam_size best continuations of a sentence, by summed log-probability, are ranked. Those among the
first beam_size that end in END are finished; the best beam_size of the others live on. Of equally good continuations
the one of the better hypothesis comes first, then the one with the smaller token id. `loop.is_done` says when a search
ends.
"""

from nmt.decoding.search.choices import Choice, best_continuations, split
from nmt.decoding.search.hypotheses import Scores
from nmt.decoding.search.loop import Lanes, Policy


class Beam(Policy):
    """The best continuations live on, and the best that end are finished."""

    def __init__(self, beam_size: int) -> None:
        self.beam_size = beam_size
        self.wanted = 2 * beam_size + 2  # PAD and BEGIN may be among them

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        return split(best_continuations(lanes.live, scores, 2 * self.beam_size, lanes.time), self.beam_size)
