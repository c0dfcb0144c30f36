"""Rules of the search: which pieces may follow what a hypothesis has, whatever the model would like.

A rule sets log-probabilities of a step to -inf before the search chooses among them. Search itself knows nothing of it:
`with_rules` makes, of a step and its state, another step and state of the same protocol, so that early stopping stays
exact and beam search and sampling have the same rules. A rule sees rows of token ids, never text. What it forbids
depends on the row alone, so that no batch changes a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import torch
from torch import Tensor

from nmt.decoding.search.choices import NEVER
from nmt.decoding.search.hypotheses import State, Step
from nmt.symbols import BEGIN, END, PAD, UNKNOWN


class Rule(Protocol):
    """Something that may not be written."""

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        """Set what is forbidden to -inf, in place, in `log_probabilities` (rows, vocabulary) of the next token.

        `written` (rows, time) are the tokens so far, without BEGIN; `sentences` (rows,) the sentence of each row.
        """
        ...


class MinimumLength:
    """No END before a sentence has `minimum` (sentences,) tokens, END not counted."""

    def __init__(self, minimum: Tensor) -> None:
        self.minimum = minimum

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        log_probabilities[:, END].masked_fill_(written.size(1) < self.minimum[sentences], NEVER)


class NoUnknown:
    """Never the unknown piece."""

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        log_probabilities[:, UNKNOWN] = NEVER


class NoRepeatedNgrams:
    """No sequence of `size` tokens a second time (Paulus et al. 2017, arXiv 1705.04304, section 2.5)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        time = written.size(1)
        if time < self.size:
            return
        windows = written.unfold(1, self.size, 1)  # (rows, windows, size)
        begun = written[:, time - self.size + 1 :].unsqueeze(1)  # what the next token would complete
        seen = (windows[:, :, :-1] == begun).all(dim=2)
        followers = windows[:, :, -1].masked_fill(~seen, PAD)  # PAD is never produced anyway
        log_probabilities.scatter_(1, followers, NEVER)


class NoLongerWord:
    """Right after a prefix none of the tokens that would make its last word longer.

    `lengths` (sentences,) of the prefixes, `complete` (sentences,) whether their last words are, and `continuing`
    (vocabulary,) the tokens that make a word longer.
    """

    def __init__(self, lengths: Tensor, complete: Tensor, continuing: Tensor) -> None:
        self.lengths, self.complete, self.continuing = lengths, complete, continuing

    def forbid(self, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> None:
        rows = self.complete[sentences] & (self.lengths[sentences] == written.size(1))
        log_probabilities.masked_fill_(rows.unsqueeze(1) & self.continuing, NEVER)


class ForcedPrefix:
    """What translations begin with: `tokens` (sentences, longest prefix), of which the first `lengths` (sentences,).

    Within the prefix no rule holds. Its tokens have the model's log-probabilities.
    """

    def __init__(self, tokens: Tensor, lengths: Tensor) -> None:
        self.tokens, self.lengths = tokens, lengths

    def force(self, allowed: Tensor, log_probabilities: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        """`allowed` (rows, vocabulary), but inside a prefix its next token with its log-probability alone."""
        time = written.size(1)
        if time >= self.tokens.size(1):
            return allowed
        wanted = self.tokens[sentences, time].unsqueeze(1)
        forced = torch.full_like(allowed, NEVER).scatter_(1, wanted, log_probabilities.gather(1, wanted))
        return torch.where((self.lengths[sentences] > time).unsqueeze(1), forced, allowed)


@dataclass(frozen=True)
class RuledState(Generic[State]):
    """A state of the search, with what each of its rows has written."""

    inner: State
    written: Tensor  # (rows, time), from the second step on with BEGIN in front
    sentences: Tensor  # (rows,), the place of each row's sentence in the batch

    @staticmethod
    def start(inner: State, sentences: int, device: torch.device | str) -> "RuledState[State]":
        """The state before the first step, one row a sentence."""
        places = torch.arange(sentences, device=device)
        return RuledState(inner, places.new_empty(sentences, 0), places)

    def select(self, rows: Tensor) -> "RuledState[State]":
        """The rows `rows` (sentences, beam)."""
        flat = rows.flatten()
        return RuledState(self.inner.select(rows), self.written[flat], self.sentences[flat])


def with_rules(step: Step[State], rules: Sequence[Rule], prefix: ForcedPrefix | None = None) -> Step[RuledState[State]]:
    """`step` under `rules`, after `prefix`. Where the rules leave nothing at all, END may follow."""

    def ruled(tokens: Tensor, state: RuledState[State]) -> tuple[Tensor, RuledState[State]]:
        log_probabilities, inner = step(tokens, state.inner)
        state = RuledState(inner, torch.cat([state.written, tokens.unsqueeze(1)], dim=1), state.sentences)
        allowed = under_rules(log_probabilities, state.written[:, 1:], state.sentences, rules)
        if prefix is not None:
            allowed = prefix.force(allowed, log_probabilities, state.written[:, 1:], state.sentences)
        return allowed, state

    return ruled


def under_rules(log_probabilities: Tensor, written: Tensor, sentences: Tensor, rules: Sequence[Rule]) -> Tensor:
    """What is left of `log_probabilities` (rows, vocabulary); the other arguments are those of `Rule.forbid`."""
    allowed = log_probabilities.clone()
    allowed[:, [PAD, BEGIN]] = NEVER
    for rule in rules:
        rule.forbid(allowed, written, sentences)
    stuck = allowed.amax(dim=1) == NEVER
    allowed[:, END] = torch.where(stuck, log_probabilities[:, END], allowed[:, END])
    return allowed
