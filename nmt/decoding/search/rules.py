"""Rules of the search: which tokens may follow what a hypothesis has written, whatever the model would like.

The loop applies them to the log-probabilities of a step before a policy chooses among them, so early stopping stays
exact, and all searches have the same rules. A rule sees rows of token ids, never text. What it forbids depends on the
row alone, so that no batch changes a result. A new rule is a class here, derived from `Rule`, and a line in `rules_of`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.config.schema import DecodingConfig
from nmt.decoding.search.choices import NEVER, only_end
from nmt.decoding.search.hypotheses import Array
from nmt.decoding.search.phrases import padded
from nmt.symbols import BEGIN, END, PAD, UNKNOWN


class Rule:
    """Forbids tokens, or overrides what other rules forbid; a rule defines at least one of the three methods.

    In all, `written` (rows, time) are the tokens so far, without BEGIN, and `sentences` (rows,) the sentence of each
    row.
    """

    def bar(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        """Set to -inf, in place, what no other rule may let in after all, in the model's `log_probabilities`."""

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        """Set what is forbidden to -inf, in place, in the `log_probabilities` (rows, vocabulary) of the next token."""

    def override(self, allowed: Array, log_probabilities: Array, written: Array, sentences: Array) -> Array:
        """What may follow after all, instead of `allowed`; `log_probabilities` are the model's, without any rule."""
        return allowed


def rules_of(decoding: DecodingConfig, shortest: Array) -> list[Rule]:
    """The rules that a configuration asks for; `shortest` (sentences,) are the minimal lengths of translations."""
    rules: list[Rule] = []
    if decoding.minimum_length or decoding.minimum_length_ratio:
        rules.append(MinimumLength(shortest))
    if decoding.no_repeat_ngram_size:
        rules.append(NoRepeatedNgrams(decoding.no_repeat_ngram_size))
    if decoding.suppress_unknown:
        rules.append(NoUnknown())
    return rules


def under_rules(log_probabilities: Array, written: Array, sentences: Array, rules: Sequence[Rule]) -> Array:
    """What `rules` leave of `log_probabilities` (rows, vocabulary); the other arguments are those of `Rule`.

    Where what they forbid leaves nothing at all, END may follow, or where that is barred all that is not. After that
    they override in their order. `log_probabilities` are overwritten with what is not barred.
    """
    log_probabilities[:, [PAD, BEGIN]] = NEVER
    for rule in rules:
        rule.bar(log_probabilities, written, sentences)
    allowed = log_probabilities.copy()
    for rule in rules:
        rule.forbid(allowed, written, sentences)
    stuck = np.flatnonzero(allowed.max(axis=1) == NEVER)
    if len(stuck):
        way_out = log_probabilities[stuck]
        only_end(way_out, way_out[:, END] > NEVER)
        allowed[stuck] = way_out
    for rule in rules:
        allowed = rule.override(allowed, log_probabilities, written, sentences)
    return allowed


class MinimumLength(Rule):
    """No END before a translation has `minimum` (sentences,) tokens, END not counted."""

    def __init__(self, minimum: Array) -> None:
        self.minimum = minimum

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        log_probabilities[written.shape[1] < self.minimum[sentences], END] = NEVER


class NoUnknown(Rule):
    """No unknown piece."""

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        log_probabilities[:, UNKNOWN] = NEVER


class NoRepeatedNgrams(Rule):
    """No sequence of `size` tokens twice (Paulus et al. 2017, arXiv 1705.04304, section 2.5)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        time = written.shape[1]
        if time < self.size:
            return
        windows = np.lib.stride_tricks.sliding_window_view(written, self.size, axis=1)  # (rows, windows, size)
        begun = written[:, None, time - self.size + 1 :]  # what the next token would complete
        rows, numbers = np.nonzero((windows[:, :, :-1] == begun).all(axis=2))
        log_probabilities[rows, windows[rows, numbers, -1]] = NEVER


class NoForbidden(Rule):
    """Nothing that leads to a text which is forbidden, as `texts` know, a `text.forbidden.Forbidden`; of texts they
    have states alone. `limits` (sentences,) are the maximal lengths, END counted.

    `ids` (columns,): the token of each column, where those of a shortlist are searched.
    """

    def __init__(self, texts: Any, limits: Array, ids: Array | None = None) -> None:
        self.texts, self.limits = texts, limits
        self.ids = ids
        self.states: dict[tuple[int, ...], Any] = {(): texts.start}  # of the rows of the step before

    def bar(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        rows = [tuple(tokens) for tokens in written.tolist()]
        self.states = {row: self._state(row) for row in rows}
        lasts = (self.limits[sentences] <= written.shape[1] + 2).tolist()
        alike: dict[tuple[Any, bool], list[int]] = {}
        for place, (row, is_last) in enumerate(zip(rows, lasts, strict=True)):
            alike.setdefault((self.states[row], is_last), []).append(place)
        for (state, is_last), places in alike.items():
            barred = self.texts.barred(state, is_last)
            columns = np.flatnonzero(barred if self.ids is None else barred[self.ids])
            log_probabilities[np.array(places)[:, None], columns] = NEVER

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

    def __init__(self, prefixes: Sequence[Sequence[int]], complete: Sequence[bool], continuing: Array) -> None:
        self.tokens = padded(prefixes, PAD)  # (sentences, longest)
        self.lengths = np.array(list(map(len, prefixes)))
        self.complete, self.continuing = np.array(complete), continuing

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        rows = self.complete[sentences] & (self.lengths[sentences] == written.shape[1])
        log_probabilities[rows[:, None] & self.continuing] = NEVER

    def override(self, allowed: Array, log_probabilities: Array, written: Array, sentences: Array) -> Array:
        time = written.shape[1]
        if time >= self.tokens.shape[1]:
            return allowed
        rows = np.flatnonzero(self.lengths[sentences] > time)
        following = self.tokens[sentences[rows], time]
        allowed[rows] = NEVER
        allowed[rows, following] = log_probabilities[rows, following]
        return allowed
