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

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER, Choice, Ending, best_tokens, not_numbers
from nmt.decoding.search.loop import Lanes, Policy
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import Rule
from nmt.symbols import END

IMPOSSIBLE = 1 << 40  # what is left, and the rank, of a candidate of probability 0


class _Progress(NamedTuple):
    """How far hypotheses have come: (rows, …) each, rows in the order of the lanes."""

    sentences: Tensor  # (rows,)
    now: Tensor  # (rows, phrases)
    following: Tensor  # (rows, phrases, places), after each of the sentence's tokens and after any other
    left: Tensor  # (rows, places), how many tokens are then left to write


class _Candidates(NamedTuple):
    """What may come next: (lanes, candidates) each."""

    totals: Tensor
    tokens: Tensor
    origins: Tensor  # places in the lane
    places: Tensor  # of the tokens among those of the phrases
    left: Tensor

    def take(self, order: Tensor) -> "_Candidates":
        return _Candidates(*(part.gather(1, order) for part in self))


class Banks(Policy, Rule):
    """The phrases, as a rule that leaves room for them, and as a policy that shares the beam out among banks."""

    def __init__(self, phrases: Phrases, *, beam_size: int, max_lengths: Tensor, closed: Tensor) -> None:
        """`max_lengths` (sentences,) leave room for END after the prefix and what it lacks of the phrases.

        `closed` (sentences,): the tokens of a prefix whose last word is complete; -1 where there is none.
        """
        self.phrases, self.beam_size, self.max_lengths, self.closed = phrases, beam_size, max_lengths, closed
        self.active = len(max_lengths)  # lanes
        sentences = torch.arange(self.active, device=max_lengths.device)
        self.progress = _progress(phrases, sentences, torch.zeros_like(phrases.lengths))

    def override(self, allowed: Tensor, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        """Tokens that bring a phrase forward may follow; END and what leaves too little room for phrases may not."""
        time = written.size(1)
        if bool(log_probabilities.amax(dim=1).isnan().any()):
            raise not_numbers(time + 1)
        left, tokens = self.progress.left, self.phrases.tokens[sentences]
        closed = self.closed[sentences] == time
        now = self.phrases.left(self.progress.now, sentences, closed)
        fits = left <= (self.max_lengths[sentences] - time - 2).unsqueeze(1)  # between the next token and END
        forward = left[:, : self.phrases.other] < now.unsqueeze(1)
        forward &= ~(closed.unsqueeze(1) & self.phrases.lengthening[sentences])
        of_phrases = torch.where(forward, log_probabilities.gather(1, tokens), allowed.gather(1, tokens))
        end = allowed[:, END].masked_fill(now > 0, NEVER)
        others = torch.where(self.phrases.continuing, fits[:, -1:], fits[:, -2:-1])
        allowed = allowed.masked_fill(~others, NEVER)
        allowed.scatter_(1, tokens, of_phrases.masked_fill(~fits[:, : self.phrases.other], NEVER))
        allowed[:, END] = end
        stuck = (now == 0) & (allowed.amax(dim=1) == NEVER)  # what the rules leave has no room
        allowed[:, END] = torch.where(stuck, log_probabilities[:, END], end)
        return allowed

    def choose(self, lanes: Lanes, log_probabilities: Tensor) -> Choice:
        candidates = _by_bank(self._candidates(lanes, log_probabilities))
        ends = (candidates.tokens == END) & (candidates.totals > NEVER) & (_rank_in_bank(candidates) < self.beam_size)
        ending = Ending(candidates.totals.masked_fill(~ends, NEVER), candidates.origins) if bool(ends.any()) else None
        beam = _shared_out(candidates, self.beam_size)
        width = lanes.live.size(1)
        first = torch.arange(0, len(lanes.live) * width, width, device=lanes.live.device).unsqueeze(1)
        self._write((first + beam.origins).flatten(), beam.places.flatten())
        return Choice(beam.totals, beam.tokens, beam.origins, ending)

    def keep(self, lanes: Tensor) -> None:
        parts = (part.unflatten(0, (self.active, -1))[lanes].flatten(0, 1) for part in self.progress)
        self.active, self.progress = len(lanes), _Progress(*parts)

    def _candidates(self, lanes: Lanes, log_probabilities: Tensor) -> _Candidates:
        """The best tokens of each row, and all tokens of its sentence's phrases."""
        tokens = self.phrases.tokens[self.progress.sentences]  # (rows, distinct)
        values, best = best_tokens(log_probabilities.scatter(1, tokens, NEVER), 2 * self.beam_size, lanes.time)
        numbers = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
        places = torch.cat([self.phrases.places(best), numbers], dim=1)
        values = torch.cat([values, log_probabilities.gather(1, tokens).double()], dim=1)
        origins = torch.arange(lanes.live.size(1), device=tokens.device).repeat(len(lanes.live)).unsqueeze(1)
        candidates = (
            lanes.live.view(-1, 1) + values,
            torch.cat([best, tokens], dim=1),
            origins.expand_as(places),
            places,
            self.progress.left.gather(1, places),
        )
        return _Candidates(*(part.reshape(len(lanes.live), -1) for part in candidates))

    def _write(self, rows: Tensor, places: Tensor) -> None:
        """Go on from the present rows `rows` with the tokens at `places` among those of the phrases."""
        sentences, now = self.progress.sentences[rows], self.progress.following[rows, :, places]
        self.progress = _progress(self.phrases, sentences, now)


def _progress(phrases: Phrases, sentences: Tensor, now: Tensor) -> _Progress:
    following = phrases.following(now, sentences)
    return _Progress(sentences, now, following, phrases.left(following, sentences))


def _by_bank(candidates: _Candidates) -> _Candidates:
    """Sorted by what is left, and by log-probability where that is equal; impossible ones are the last bank."""
    candidates = candidates._replace(left=candidates.left.masked_fill(candidates.totals == NEVER, IMPOSSIBLE))
    by_total = candidates.take(torch.sort(candidates.totals, dim=1, descending=True, stable=True).indices)
    return by_total.take(torch.sort(by_total.left, dim=1, stable=True).indices)


def _rank_in_bank(candidates: _Candidates) -> Tensor:
    """The place of each of the candidates, which are sorted by bank, in its bank, from 0."""
    left = candidates.left.contiguous()
    return torch.arange(left.shape[1], device=left.device) - torch.searchsorted(left, left)


def _shared_out(candidates: _Candidates, beam_size: int) -> _Candidates:
    """The new beam: the first of every bank, the second of every bank … of those that do not end; best first."""
    going_on = candidates.totals.masked_fill(candidates.tokens == END, NEVER)
    candidates = _by_bank(candidates._replace(totals=going_on))
    ranks = _rank_in_bank(candidates).masked_fill(candidates.left == IMPOSSIBLE, IMPOSSIBLE)
    beam = candidates.take(torch.sort(ranks, dim=1, stable=True).indices[:, :beam_size])
    return beam.take(torch.sort(beam.totals, dim=1, descending=True, stable=True).indices)
