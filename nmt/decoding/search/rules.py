"""Rules of the search: which tokens may follow what a hypothesis has written, whatever the model would like.

The loop applies them to the log-probabilities of a step before a policy chooses among them, so early stopping stays
exact, and all searches have the same rules. A rule sees rows of token ids, never text. What it forbids depends on the
row alone, so that no batch changes a result. A new rule is a class here, derived from `Rule`, and a line in `rules_of`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.search.choices import NEVER, only_end
from nmt.decoding.search.phrases import padded
from nmt.symbols import BEGIN, END, PAD, UNKNOWN


class Rule:
    """Forbids tokens, or overrides what other rules forbid; a rule defines at least one of the three methods.

    In all, `written` (rows, time) are the tokens so far, without BEGIN, and `sentences` (rows,) the sentence of each
    row.
    """

    def bar(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        """Set to -inf, in place, what no other rule may let in after all, in the model's `log_probabilities`."""

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        """Set what is forbidden to -inf, in place, in the `log_probabilities` (rows, vocabulary) of the next token."""

    def override(self, allowed: Tensor, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        """What may follow after all, instead of `allowed`; `log_probabilities` are the model's, without any rule."""
        return allowed


def rules_of(decoding: DecodingConfig, shortest: Tensor) -> list[Rule]:
    """The rules that a configuration asks for; `shortest` (sentences,) are the minimal lengths of translations."""
    rules: list[Rule] = []
    if decoding.minimum_length or decoding.minimum_length_ratio:
        rules.append(MinimumLength(shortest))
    if decoding.no_repeat_ngram_size:
        rules.append(NoRepeatedNgrams(decoding.no_repeat_ngram_size))
    if decoding.suppress_unknown:
        rules.append(NoUnknown())
    return rules


def under_rules(log_probabilities: Tensor, written: Tensor, sentences: Tensor, rules: Sequence[Rule]) -> Tensor:
    """What `rules` leave of `log_probabilities` (rows, vocabulary); the other arguments are those of `Rule`.

    Where what they forbid leaves nothing at all, END may follow, or where that is barred all that is not. After that
    they override in their order. `log_probabilities` are overwritten with what is not barred.
    """
    log_probabilities[:, [PAD, BEGIN]] = NEVER
    for rule in rules:
        rule.bar(log_probabilities, written, sentences)
    allowed = log_probabilities.clone()
    for rule in rules:
        rule.forbid(allowed, written, sentences)
    stuck = torch.nonzero(allowed.amax(dim=1) == NEVER).squeeze(1)
    if len(stuck):
        way_out = log_probabilities[stuck]
        only_end(way_out, way_out[:, END] > NEVER)
        allowed[stuck] = way_out
    for rule in rules:
        allowed = rule.override(allowed, log_probabilities, written, sentences)
    return allowed


class MinimumLength(Rule):
    """No END before a translation has `minimum` (sentences,) tokens, END not counted."""

    def __init__(self, minimum: Tensor) -> None:
        self.minimum = minimum

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        log_probabilities[:, END].masked_fill_(written.size(1) < self.minimum[sentences], NEVER)


class NoUnknown(Rule):
    """No unknown piece."""

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        log_probabilities[:, UNKNOWN] = NEVER


class NoRepeatedNgrams(Rule):
    """No sequence of `size` tokens twice (Paulus et al. 2017, arXiv 1705.04304, section 2.5)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        time = written.size(1)
        if time < self.size:
            return
        windows = written.unfold(1, self.size, 1)  # (rows, windows, size)
        begun = written[:, time - self.size + 1 :].unsqueeze(1)  # what the next token would complete
        seen = (windows[:, :, :-1] == begun).all(dim=2)
        followers = windows[:, :, -1].masked_fill(~seen, PAD)  # which is never produced anyway
        log_probabilities.scatter_(1, followers, NEVER)


class NoForbidden(Rule):
    """Nothing that leads to a text which is forbidden, as `texts` know, a `text.forbidden.Forbidden`; of texts they
    have states alone. `limits` (sentences,) are the maximal lengths, END counted.

    `ids` (columns,): the token of each column, where those of a shortlist are searched.
    """

    def __init__(self, texts: Any, limits: Tensor, ids: Tensor | None = None) -> None:
        self.texts, self.limits = texts, limits
        self.ids = None if ids is None else ids.cpu().numpy()
        self.states: dict[tuple[int, ...], Any] = {(): texts.start}  # of the rows of the step before

    def bar(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        rows = [tuple(tokens) for tokens in written.tolist()]
        self.states = {row: self._state(row) for row in rows}
        lasts = (self.limits[sentences] <= written.size(1) + 2).tolist()
        alike: dict[tuple[Any, bool], list[int]] = {}
        for place, (row, is_last) in enumerate(zip(rows, lasts, strict=True)):
            alike.setdefault((self.states[row], is_last), []).append(place)
        for (state, is_last), places in alike.items():
            barred = self.texts.barred(state, is_last)
            columns = torch.from_numpy(np.flatnonzero(barred if self.ids is None else barred[self.ids]))
            log_probabilities[torch.tensor(places).unsqueeze(1), columns] = NEVER

    def _state(self, row: tuple[int, ...]) -> Any:
        if not row:
            return self.states[row]
        token = row[-1] if self.ids is None else int(self.ids[row[-1]])
        return self.texts.after(self.states[row[:-1]], token)


class ForcedPrefix(Rule):
    """What translations begin with; within it no rule holds, so this one comes last.

    Its tokens have the model's log-probabilities. None of the tokens `continuing` (vocabulary,), which would make a
    word longer, comes right after a prefix whose last word is `complete`.
    """

    def __init__(self, prefixes: Sequence[Sequence[int]], complete: Sequence[bool], continuing: Tensor) -> None:
        device = continuing.device
        self.tokens = padded(prefixes, PAD).to(device)  # (sentences, longest)
        self.lengths = torch.tensor(list(map(len, prefixes)), device=device)
        self.complete, self.continuing = torch.tensor(complete, device=device), continuing

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        rows = self.complete[sentences] & (self.lengths[sentences] == written.size(1))
        log_probabilities.masked_fill_(rows.unsqueeze(1) & self.continuing, NEVER)

    def override(self, allowed: Tensor, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        time = written.size(1)
        if time >= self.tokens.size(1):
            return allowed
        following = self.tokens[sentences, time].unsqueeze(1)
        forced = torch.full_like(allowed, NEVER).scatter_(1, following, log_probabilities.gather(1, following))
        return torch.where((self.lengths[sentences] > time).unsqueeze(1), forced, allowed)
