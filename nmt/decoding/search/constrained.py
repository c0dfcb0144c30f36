"""Beam search for translations that contain given phrases: every hypothesis it gives has all of them.

Hypotheses that have written more of their phrases compete only with their like: the beam is shared out among banks, one
for each number of tokens left to write (see `phrases`). Every bank that has candidates gives its best to the new beam,
then every one its second best, and so on, those with least left first, until the beam is full. Candidates are the best
tokens of each hypothesis and all tokens of its sentence's phrases. END may follow only where nothing is left, and a
token only if what is then left still fits into the maximal length; there is always one that fits if the phrases do,
one after another. (Where they do only just, translations in which they overlap may be passed over.)

The tokens that bring a phrase forward are bound by no rule, and all have the model's log-probabilities. After the last
token of a phrase that ends with a complete word, others that would make the word longer do not follow.

Without phrases it finds what `beam_search` finds. So do its ends of a search, END being counted as finished among the
best beam_size of the hypotheses with nothing left.

Post & Vilar (2018), arXiv 1804.06609, dynamic beam allocation; Hu et al. (2019), NAACL N19-1090, for batches.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER, Ending, NotNumbersError, best_tokens
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, State, Step, penalty
from nmt.decoding.search.loop import Finished, History, resolve
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import ForcedPrefix, Rule, under_rules
from nmt.symbols import BEGIN, END

IMPOSSIBLE = 1 << 40  # what is left, and the rank, of a candidate of probability 0


class Bounds(NamedTuple):
    """What hypotheses are bound by, besides the phrases themselves."""

    phrases: Phrases
    complete: Tensor  # (sentences, phrases), whether the last word of each is complete
    continuing: Tensor  # (vocabulary,), the tokens that make a word longer
    rules: Sequence[Rule] = ()
    prefix: ForcedPrefix | None = None


class _Live(NamedTuple):
    """The hypotheses of a step: rows are ordered by sentence."""

    log_probabilities: Tensor  # (active, width)
    tokens: Tensor  # (active, width), the last ones
    progress: Tensor  # (rows, phrases)
    closed: Tensor  # (rows,), whether the last token has ended a complete word of a phrase
    written: Tensor  # (rows, time), without BEGIN


class _Candidates(NamedTuple):
    """What may come next: (active, candidates), each."""

    totals: Tensor
    tokens: Tensor
    origins: Tensor  # places in the beam
    places: Tensor  # of the tokens among those of the phrases
    left: Tensor

    def take(self, order: Tensor) -> "_Candidates":
        return _Candidates(*(part.gather(1, order) for part in self))


def constrained_search(
    step: Step[State],
    state: State,
    bounds: Bounds,
    *,
    beam_size: int,
    length_penalty: LengthPenalty,
    max_lengths: Tensor,
    n_best: int = 1,
    supplement: Callable[[State], Tensor] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence that contain its phrases, best first.

    The arguments are those of `beam_search`. A sentence's phrases, after what its prefix has of them, must leave room
    for END within its maximal length. Raises NotNumbersError for NaN log-probabilities.
    """
    sentences, longest, device = len(max_lengths), int(max_lengths.max()), max_lengths.device
    phrases = bounds.phrases
    penalties = torch.tensor(
        [penalty(length, length_penalty) for length in range(1, longest + 1)], dtype=torch.float64, device=device
    )
    history = History(longest, sentences, beam_size, device)
    finished = Finished(sentences, n_best, device)
    active = torch.arange(sentences, device=device)
    live = _Live(
        torch.zeros(sentences, 1, dtype=torch.float64, device=device),
        torch.full((sentences, 1), BEGIN, device=device),
        phrases.start(),
        torch.zeros(sentences, dtype=torch.bool, device=device),
        active.new_empty(sentences, 0),
    )
    for time in range(longest):
        log_probabilities, state = step(live.tokens.flatten(), state)
        width = live.tokens.shape[1]
        owners = active.repeat_interleave(width)
        following = phrases.following(live.progress, owners)
        room = max_lengths[owners] - time - 2  # tokens that may still come between the next one and END
        allowed, left = _allowed(log_probabilities, live, following, owners, room, bounds, time)
        at_limit = max_lengths[active] == time + 1
        found = _by_bank(_candidates(allowed, left, live, phrases.tokens[owners], at_limit, beam_size, time))

        ended = (found.tokens == END) & (found.totals > NEVER) & (_rank_in_bank(found) < beam_size)
        if bool(ended.any()):
            added = None if supplement is None else supplement(state).view(-1, width)
            ending = Ending(found.totals.masked_fill(~ended, NEVER), found.origins)
            finished.add(active, time, ending, penalties[time], added)

        chosen = _shared_out(found, beam_size)
        history.add(active, time, chosen.tokens, chosen.origins)
        best, scores = chosen.totals[:, 0], finished.scores[active]
        settled = (finished.counts[active] >= beam_size) & (scores[:, 0] >= best / penalties[time])
        beaten = scores[:, -1] >= best / penalties[max_lengths[active] - 1]
        going_on = ~(at_limit | settled | beaten)
        rows = torch.arange(active.numel(), device=device).unsqueeze(1) * width + chosen.origins
        active, rows = active[going_on], rows[going_on]
        if active.numel() == 0:
            break
        live = _next(live, _Candidates(*(part[going_on] for part in chosen)), following, rows, active, bounds)
        state = state.select(rows)
    return resolve(history, finished)


def _allowed(
    log_probabilities: Tensor,
    live: _Live,
    following: Tensor,
    owners: Tensor,
    room: Tensor,
    bounds: Bounds,
    time: int,
) -> tuple[Tensor, Tensor]:
    """What may follow each row, as log-probabilities (rows, vocabulary); and what is then left (rows, places)."""
    if bool(log_probabilities.amax(dim=1).isnan().any()):
        raise NotNumbersError(f"the model's log-probabilities for target token {time + 1} are not numbers (NaN)")
    phrases = bounds.phrases
    now, left = phrases.left(live.progress, owners), phrases.left(following, owners)
    barred = live.closed.unsqueeze(1) & bounds.continuing
    allowed = under_rules(log_probabilities.masked_fill(barred, NEVER), live.written, owners, bounds.rules)
    end, tokens, fits = allowed[:, END].masked_fill(now > 0, NEVER), phrases.tokens[owners], left <= room.unsqueeze(1)
    forward = left[:, :-1] < now.unsqueeze(1)
    own = torch.where(forward, log_probabilities.gather(1, tokens), allowed.gather(1, tokens))
    allowed = allowed.masked_fill(~fits[:, -1:], NEVER).scatter_(1, tokens, own.masked_fill(~fits[:, :-1], NEVER))
    allowed[:, END] = end
    if bounds.prefix is not None:
        allowed = bounds.prefix.force(allowed, log_probabilities, live.written, owners)
    return allowed, left


def _candidates(
    allowed: Tensor, left: Tensor, live: _Live, tokens: Tensor, at_limit: Tensor, beam_size: int, time: int
) -> _Candidates:
    """The best tokens of each row, and all `tokens` (rows, distinct) of its sentence's phrases."""
    active, width = live.log_probabilities.shape
    values, choices = best_tokens(allowed.scatter(1, tokens, NEVER), 2 * beam_size, time)
    values, choices = force_end(values, choices, allowed[:, END], at_limit, width)
    distinct = tokens.shape[1]
    places = torch.cat(
        [torch.full_like(choices, distinct), torch.arange(distinct, device=left.device).expand_as(tokens)], 1
    )
    totals = live.log_probabilities.view(-1, 1) + torch.cat([values, allowed.gather(1, tokens).double()], dim=1)
    origins = torch.arange(width, device=left.device).repeat(active).unsqueeze(1).expand_as(places)
    every = (totals, torch.cat([choices, tokens], dim=1), origins, places, left.gather(1, places))
    return _Candidates(*(part.reshape(active, -1) for part in every))


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


def _next(live: _Live, chosen: _Candidates, following: Tensor, rows: Tensor, active: Tensor, bounds: Bounds) -> _Live:
    """The hypotheses of the next step: `chosen`, from the present rows `rows`, of the sentences `active`."""
    origins, owners = rows.flatten(), active.repeat_interleave(rows.shape[1])
    progress = following[origins, :, chosen.places.flatten()]
    lengths = bounds.phrases.lengths[owners]
    new = (progress == lengths) & (live.progress[origins] < lengths)
    return _Live(
        chosen.totals,
        chosen.tokens,
        progress,
        (new & bounds.complete[owners]).any(dim=1),
        torch.cat([live.written[origins], chosen.tokens.view(-1, 1)], dim=1),
    )


def force_end(values: Tensor, choices: Tensor, end: Tensor, at_limit: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Leave END, with its log-probability `end` (rows,), as the only choice of the sentences `at_limit`."""
    rows = at_limit.repeat_interleave(width)
    values, choices = values.masked_fill(rows.unsqueeze(1), NEVER), choices.masked_fill(rows.unsqueeze(1), END)
    values[:, 0] = torch.where(rows, end.double(), values[:, 0])
    return values, choices
