"""Models that are tables, in which the next token's probabilities depend on the last token only, and plain searches.

A table (vocabulary, vocabulary) holds log-probabilities: last token → next token; tables have one for each sentence.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from nmt.decoding.search.beam import Beam
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty, Scores, State, Step, penalty
from nmt.decoding.search.loop import search
from nmt.decoding.search.rules import Rule
from nmt.decoding.search.sampling import arrivals
from nmt.symbols import BEGIN, END, PAD

Words = list[int]
Allows = Callable[[Words, int], bool]  # whether the token may follow the words


class Rows(NamedTuple):
    """The state of the tables: which table (sentence) each row belongs to."""

    table: Array  # (rows,)

    def select(self, rows: Array) -> "Rows":
        return Rows(self.table[rows.ravel()])


class LoggedRows(NamedTuple):
    """The same, and the rows that have been selected of it."""

    table: Array
    selections: list[list[list[int]]]

    def select(self, rows: Array) -> "LoggedRows":
        self.selections.append(rows.tolist())
        return LoggedRows(self.table[rows.ravel()], self.selections)


def random_tables(sentences: int, vocabulary: int, seed: int, *, spread: float = 2.0) -> Array:
    """Tables (sentences, vocabulary, vocabulary)."""
    generator = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(sentences, vocabulary, vocabulary, generator=generator, dtype=torch.float64)
    return normalized(scores.numpy())


def normalized(scores: Array) -> Array:
    """Log-probabilities of the last axis."""
    logarithms: Array = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return logarithms


def table_step(tables: Array) -> Step[Rows]:
    """The step of a model that is tables."""
    return lambda tokens, state, wanted: (Scores(tables[state.table, tokens]), state)


def beam_search(step: Step[State], state: State, *, beam_size: int, **options: Any) -> list[list[Hypothesis]]:
    """The product's search with a beam, best first."""
    return search(step, state, Beam(beam_size), **options)


def table_beam_search(
    tables: Array,
    *,
    beam_size: int,
    limits: Sequence[int],
    length_penalty: LengthPenalty = "average",
    n_best: int = 1,
    rules: Sequence[Rule] = (),
) -> list[list[Hypothesis]]:
    """The product's beam search."""
    return beam_search(
        table_step(tables),
        Rows(np.arange(len(tables))),
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_lengths=np.array(limits),
        n_best=n_best,
        rules=rules,
    )


def scores_of_all(
    transitions: list[list[float]], tokens: Iterable[int], limit: int, length_penalty: LengthPenalty
) -> dict[tuple[int, ...], float]:
    """The score of every translation that these tokens make, of fewer than `limit`."""
    totals = {
        words: sum(transitions[last][token] for last, token in pairwise((BEGIN, *words, END)))
        for length in range(limit)
        for words in product([*tokens], repeat=length)
    }
    return {words: total / penalty(len(words) + 1, length_penalty) for words, total in totals.items()}


def assert_best(found: Sequence[Hypothesis], every: Mapping[tuple[int, ...], float], n_best: int) -> None:
    """What was found are the best of all. They are not compared as lists: 4 4 5 4 and 4 5 4 4 are made of the same
    steps, and equally good."""
    scores = {tuple(hypothesis.tokens): hypothesis.score for hypothesis in found}
    assert len(scores) == len(found) == min(n_best, len(every))
    assert list(scores.values()) == pytest.approx(sorted(every.values(), reverse=True)[:n_best])
    assert scores == pytest.approx({words: every[words] for words in scores})


def next_tokens(words: Words, vocabulary: int, limit: int, allows: Allows = lambda words, token: True) -> list[int]:
    """What may follow: END alone at the limit, and where nothing else is left."""
    if len(words) + 1 == limit:
        return [END]
    tokens = [token for token in range(vocabulary) if token not in (PAD, BEGIN) and allows(words, token)]
    return tokens or [END]


def plain_search(
    transitions: list[list[float]],
    *,
    beam_size: int,
    length_penalty: LengthPenalty,
    limit: int,
    groups: int = 1,
    strength: float = 0.0,
) -> list[list[Words]]:
    """Beam search for one sentence with lists and loops, and without the bound that ends it early; of each group, best
    first. A token loses `strength` for each hypothesis of an earlier group that has just been given it."""
    live: list[list[tuple[float, Words]]] = [[(0.0, [])] for _ in range(groups)]
    finished: list[list[tuple[float, Words]]] = [[] for _ in range(groups)]
    for length in range(1, limit + 1):
        divisor, seen = penalty(length, length_penalty), Counter[int]()
        for group in range(groups):
            candidates = [
                (total + transitions[words[-1] if words else BEGIN][token], [*words, token])
                for total, words in live[group]
                for token in next_tokens(words, len(transitions), limit)
            ]
            candidates.sort(key=lambda one: strength * seen[one[1][-1]] * (length < limit) - one[0])
            ending = [one for one in candidates[:beam_size] if one[1][-1] == END]
            finished[group] += [(total / divisor, words[:-1]) for total, words in ending]
            live[group] = [one for one in candidates[: 2 * beam_size] if one[1][-1] != END][:beam_size]
            best = max((score for score, _ in finished[group]), default=-math.inf)
            if len(finished[group]) >= beam_size and all(best >= total / divisor for total, _ in live[group]):
                live[group] = []
            seen.update(words[-1] for _, words in live[group])
    return [[words for _, words in sorted(some, key=lambda one: -one[0])] for some in finished]


def key_for(token: int, *others: int) -> int:
    """The first key with which sampling draws `token`, where `others` are as probable."""
    tried = np.arange(1000)
    times = arrivals(tried, np.array([token, *others]))
    return int(tried[times.argmin(axis=1) == 0][0])
