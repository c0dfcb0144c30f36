"""Beam search for translations that contain given phrases: every hypothesis it returns has all of them.

Hypotheses that have written more of their phrases compete only with their like. The beam is shared out among banks, one
for each number of tokens left to write (see `phrases`): every bank that has candidates gives its best to the new beam,
then every bank its second best, and so on, those with the least left first, until the beam is full. Candidates are the
best tokens of each hypothesis and all tokens of its sentence's phrases. END may follow only where nothing is left, and
a token only if what is then left still fits into the maximal length. There is always one that fits if the phrases do,
one after another. (Where there is just enough room for that, translations in which phrases overlap may be passed over.)

The tokens that bring a phrase forward are bound by no rule but a forced prefix, and all have the model's
log-probabilities. A phrase that ends with a complete word counts once the word has ended: where more is written of the
word, the phrase is missing again.

END is finished among the best beam_size of the hypotheses with nothing left. Without phrases the search finds what
`beam_search` finds.

Post & Vilar (2018), arXiv 1804.06609, dynamic beam allocation; Hu et al. (2019), NAACL N19-1090, for batches.
"""

from typing import NamedTuple

import numpy as np

from nmt.decoding.search.choices import NEVER, Choice, Ending, best_continuations, not_numbers, taken
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.search.loop import Lanes, Policy
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import Rule
from nmt.symbols import END

IMPOSSIBLE = 1 << 40  # what is left, and the rank, of a candidate of probability 0


class _Progress(NamedTuple):
    """How far hypotheses have come: (rows, …) each, rows in the order of the lanes."""

    sentences: Array  # (rows,)
    now: Array  # (rows, phrases)
    following: Array  # (rows, phrases, places), after each of the sentence's tokens and after any other
    left: Array  # (rows, places), how many tokens are then left to write


class _Candidates(NamedTuple):
    """What may come next: (lanes, candidates) each."""

    totals: Array
    tokens: Array
    origins: Array  # places in the lane
    places: Array  # of the tokens among those of the phrases
    left: Array

    def take(self, order: Array) -> "_Candidates":
        return _Candidates(*(taken(part, order) for part in self))


class Banks(Policy, Rule):
    """The phrases, as a rule that leaves room for them, and as a policy that shares the beam out among banks."""

    def __init__(self, phrases: Phrases, *, beam_size: int, max_lengths: Array, closed: Array) -> None:
        """`max_lengths` (sentences,) leave room for END after the prefix and what it lacks of the phrases.

        `closed` (sentences,): the tokens of a prefix whose last word is complete; -1 where there is none.
        """
        self.phrases, self.beam_size, self.max_lengths, self.closed = phrases, beam_size, max_lengths, closed
        self.active = len(max_lengths)  # lanes
        self.progress = _progress(phrases, np.arange(self.active), np.zeros_like(phrases.lengths))

    def override(self, allowed: Array, log_probabilities: Array, written: Array, sentences: Array) -> Array:
        """Tokens that bring a phrase forward may follow; END and what leaves too little room for phrases may not."""
        time = written.shape[1]
        if np.isnan(log_probabilities.max(axis=1)).any():
            raise not_numbers(time + 1)
        left, tokens = self.progress.left, self.phrases.tokens[sentences]
        closed = self.closed[sentences] == time
        now = self.phrases.left(self.progress.now, sentences, closed)
        fits = left <= (self.max_lengths[sentences] - time - 2)[:, None]  # between the next token and END
        forward = left[:, : self.phrases.other] < now[:, None]
        forward &= ~(closed[:, None] & self.phrases.lengthening[sentences])
        of_phrases = np.where(forward, taken(log_probabilities, tokens), taken(allowed, tokens))
        end = np.where(now > 0, NEVER, allowed[:, END])
        allowed = np.where(np.where(self.phrases.continuing, fits[:, -1:], fits[:, -2:-1]), allowed, NEVER)
        np.put_along_axis(allowed, tokens, np.where(fits[:, : self.phrases.other], of_phrases, NEVER), axis=1)
        allowed[:, END] = end
        stuck = (now == 0) & (allowed.max(axis=1) == NEVER)  # what the rules leave has no room
        allowed[:, END] = np.where(stuck, log_probabilities[:, END], end)
        return allowed

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        candidates = _by_bank(self._candidates(lanes, scores.values))
        ends = (candidates.tokens == END) & (candidates.totals > NEVER) & (_rank_in_bank(candidates) < self.beam_size)
        ending = Ending(np.where(ends, candidates.totals, NEVER), candidates.origins) if ends.any() else None
        beam = _shared_out(candidates, self.beam_size)
        width = lanes.live.shape[1]
        first = np.arange(0, len(lanes.live) * width, width)[:, None]
        self._write((first + beam.origins).ravel(), beam.places.ravel())
        return Choice(beam.totals, beam.tokens, beam.origins, ending)

    def keep(self, lanes: Array) -> None:
        width = len(self.progress.sentences) // self.active
        rows = (lanes[:, None] * width + np.arange(width)).ravel()
        self.active, self.progress = len(lanes), _Progress(*(part[rows] for part in self.progress))

    def _candidates(self, lanes: Lanes, log_probabilities: Array) -> _Candidates:
        """The best tokens of each row, and all tokens of its sentence's phrases."""
        tokens = self.phrases.tokens[self.progress.sentences]  # (rows, distinct)
        of_phrases = taken(log_probabilities, tokens).astype(np.float64)
        np.put_along_axis(log_probabilities, tokens, NEVER, axis=1)
        alone = np.zeros((len(log_probabilities), 1))  # each row by itself
        values, _, best = best_continuations(alone, Scores(log_probabilities), 2 * self.beam_size, lanes.time)
        numbers = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        places = np.concatenate([self.phrases.places(best), numbers], axis=1)
        origins = np.tile(np.arange(lanes.live.shape[1]), len(lanes.live))[:, None]
        candidates = (
            lanes.live.reshape(-1, 1) + np.concatenate([values, of_phrases], axis=1),
            np.concatenate([best, tokens], axis=1),
            np.broadcast_to(origins, places.shape),
            places,
            taken(self.progress.left, places),
        )
        return _Candidates(*(part.reshape(len(lanes.live), -1) for part in candidates))

    def _write(self, rows: Array, places: Array) -> None:
        """Go on from the present rows `rows` with the tokens at `places` among those of the phrases."""
        sentences, now = self.progress.sentences[rows], self.progress.following[rows, :, places]
        self.progress = _progress(self.phrases, sentences, now)


def _progress(phrases: Phrases, sentences: Array, now: Array) -> _Progress:
    following = phrases.following(now, sentences)
    return _Progress(sentences, now, following, phrases.left(following, sentences))


def _by_bank(candidates: _Candidates) -> _Candidates:
    """Sorted by what is left, and by log-probability where that is equal; impossible ones are the last bank."""
    candidates = candidates._replace(left=np.where(candidates.totals == NEVER, IMPOSSIBLE, candidates.left))
    by_total = candidates.take(np.argsort(-candidates.totals, axis=1, kind="stable"))
    return by_total.take(np.argsort(by_total.left, axis=1, kind="stable"))


def _rank_in_bank(candidates: _Candidates) -> Array:
    """The place of each of the candidates, which are sorted by bank, in its bank, from 0."""
    left, places = candidates.left, np.arange(candidates.left.shape[1])
    begins = np.concatenate([np.ones((len(left), 1), dtype=bool), left[:, 1:] != left[:, :-1]], axis=1)
    ranks: Array = places - np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    return ranks


def _shared_out(candidates: _Candidates, beam_size: int) -> _Candidates:
    """The new beam: the first of every bank, the second of every bank … of those that do not end; best first."""
    going_on = np.where(candidates.tokens == END, NEVER, candidates.totals)
    candidates = _by_bank(candidates._replace(totals=going_on))
    ranks = np.where(candidates.left == IMPOSSIBLE, IMPOSSIBLE, _rank_in_bank(candidates))
    beam = candidates.take(np.argsort(ranks, axis=1, kind="stable")[:, :beam_size])
    return beam.take(np.argsort(-beam.totals, axis=1, kind="stable"))
