"""Rules of the search on transition tables, against plain searches with lists that know the rules as sentences."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, penalty
from nmt.decoding.search.rules import (
    ForcedPrefix,
    MinimumLength,
    NoRepeatedNgrams,
    NoUnknown,
    Rule,
)
from nmt.symbols import BEGIN, END, PAD, UNKNOWN
from tests.decoding.tables import (
    Allows,
    Words,
    assert_best,
    next_tokens,
    random_tables,
    scores_of_all,
    table_beam_search,
)

PENALTIES: list[LengthPenalty] = ["none", "average", 0.0, 0.6, 2.0]
SENTENCES, LIMIT = 3, 5


def words(results: list[list[Hypothesis]]) -> list[list[Words]]:
    return [[hypothesis.tokens for hypothesis in sentence] for sentence in results]


def minimum_of_2(words: Words, token: int) -> bool:
    return token != END or len(words) >= 2


def no_unknown(words: Words, token: int) -> bool:
    return token != UNKNOWN


def no_pair_twice(words: Words, token: int) -> bool:
    return [*words[-1:], token] not in [list(pair) for pair in itertools.pairwise(words)] if words else True


def no_word_twice(words: Words, token: int) -> bool:
    return token not in words


def together(words: Words, token: int) -> bool:
    return all(allows(words, token) for allows in (minimum_of_2, no_unknown, no_word_twice))


MINIMUM = MinimumLength(np.full((17,), 2))
RULES: dict[str, tuple[list[Rule], Allows]] = {
    "minimum length": ([MINIMUM], minimum_of_2),
    "no unknown": ([NoUnknown()], no_unknown),
    "no word twice": ([NoRepeatedNgrams(1)], no_word_twice),
    "no pair twice": ([NoRepeatedNgrams(2)], no_pair_twice),
    "together": ([MINIMUM, NoUnknown(), NoRepeatedNgrams(1)], together),
}


def every_translation(
    transitions: list[list[float]], limit: int, allows: Allows, words: Words, total: float
) -> Iterator[tuple[float, Words]]:
    for token in next_tokens(words, len(transitions), limit, allows):
        sum_ = total + transitions[words[-1] if words else BEGIN][token]
        if token == END:
            yield sum_, words
        else:
            yield from every_translation(transitions, limit, allows, [*words, token], sum_)


@pytest.mark.parametrize("length_penalty", PENALTIES)
@pytest.mark.parametrize("name", RULES)
def test_a_beam_wide_enough_equals_exhaustive_search(name: str, length_penalty: LengthPenalty) -> None:
    rules, allows = RULES[name]
    tables = random_tables(SENTENCES, 6, seed=11)  # the words are UNKNOWN, 4 and 5
    results = table_beam_search(
        tables, rules=rules, beam_size=400, limits=[LIMIT] * SENTENCES, length_penalty=length_penalty, n_best=7
    )
    for transitions, result in zip(tables.tolist(), results, strict=True):
        every = {
            tuple(words): total / penalty(len(words) + 1, length_penalty)
            for total, words in every_translation(transitions, LIMIT, allows, [], 0.0)
        }
        assert_best(result, every, 7)


# --------------------------------------------------------------------------------------------------- one rule at a time


def forbidden(rule: Rule, written: list[Words], *, sentences: list[int] | None = None) -> list[Words]:
    """The tokens that the rule forbids to follow each row of `written`."""
    log_probabilities = np.zeros((len(written), 8))
    places = np.array(sentences or [0] * len(written))
    rule.forbid(log_probabilities, np.array(written, dtype=np.int64), places)
    assert not np.isnan(log_probabilities).any()
    return [np.flatnonzero(np.isinf(row)).tolist() for row in log_probabilities]


def test_each_sentence_has_its_own_minimum() -> None:
    rule = MinimumLength(np.array([1, 2, 3]))
    assert forbidden(rule, [[4, 5]] * 5, sentences=[0, 1, 2, 2, 0]) == [[], [], [END], [END], []]
    assert forbidden(rule, [[]] * 3, sentences=[0, 1, 2]) == [[END]] * 3


def test_what_would_repeat_an_ngram() -> None:
    written = [[4, 5, 4, 6, 4], [4, 5, 6, 7, 4], [4, 5, 4, 5, 4], [4, 4, 4, 4, 4]]
    # PAD, which is never produced, is the place where the rule puts what it does not forbid
    pieces = [[token for token in row if token != PAD] for row in forbidden(NoRepeatedNgrams(2), written)]
    assert pieces == [[5, 6], [5], [5], [4]]
    pieces = [[token for token in row if token != PAD] for row in forbidden(NoRepeatedNgrams(3), written)]
    assert pieces == [[], [], [5], [4]]
    pieces = [[token for token in row if token != PAD] for row in forbidden(NoRepeatedNgrams(1), written)]
    assert pieces == [[4, 5, 6], [4, 5, 6, 7], [4, 5], [4]]
    assert forbidden(NoRepeatedNgrams(6), written) == forbidden(NoRepeatedNgrams(9), written) == [[]] * 4


# ------------------------------------------------------------------------------------------------ nothing is left to do


def test_a_translation_ends_where_the_rules_leave_nothing() -> None:
    """Three words, none twice, and ten of them are wanted: END comes after three."""
    tables = random_tables(2, 6, seed=5)
    rules = [MinimumLength(np.array([10, 10])), NoRepeatedNgrams(1)]
    for beam_size in (1, 2, 9):
        for (best,) in table_beam_search(tables, rules=rules, beam_size=beam_size, limits=[20, 12]):
            assert sorted(best.tokens) == [UNKNOWN, 4, 5]
            assert math.isfinite(best.score)


def test_the_maximal_length_prevails() -> None:
    tables = random_tables(1, 9, seed=5)
    (best,) = table_beam_search(tables, rules=[NoRepeatedNgrams(1), NoUnknown()], beam_size=2, limits=[1])[0]
    assert best.tokens == []
    (best,) = table_beam_search(tables, rules=[MinimumLength(np.array([3]))], beam_size=2, limits=[4])[0]
    assert len(best.tokens) == 3


# ------------------------------------------------------------------------------------------------------------- prefixes


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_a_prefix_equals_exhaustive_search_among_the_translations_that_begin_with_it(
    length_penalty: LengthPenalty,
) -> None:
    prefixes = [[], [5], [4, 4, UNKNOWN]]
    forced = ForcedPrefix(prefixes, [False] * 3, np.zeros(6, dtype=bool))
    tables = random_tables(3, 6, seed=13)
    results = table_beam_search(
        tables, rules=[forced], beam_size=400, limits=[LIMIT] * 3, length_penalty=length_penalty, n_best=3
    )
    for transitions, prefix, result in zip(tables.tolist(), prefixes, results, strict=True):
        every = scores_of_all(transitions, (UNKNOWN, 4, 5), LIMIT, length_penalty)
        begun = {words: score for words, score in every.items() if [*words[: len(prefix)]] == prefix}
        assert_best(result, begun, 3)


def test_a_prefix_may_break_the_rules_and_counts_for_them() -> None:
    tables = random_tables(1, 8, seed=21)
    forced = ForcedPrefix([[4, 4, UNKNOWN]], [False], np.zeros(8, dtype=bool))
    rules = [NoUnknown(), NoRepeatedNgrams(1), MinimumLength(np.array([5]))]
    for best in table_beam_search(tables, rules=[*rules, forced], beam_size=3, limits=[9], n_best=3)[0]:
        assert best.tokens[:3] == [4, 4, UNKNOWN]
        assert len(best.tokens) >= 5
        assert len(set(best.tokens[3:]) - {4, UNKNOWN}) == len(best.tokens) - 3


def test_only_the_token_after_a_complete_word_is_bound() -> None:
    continuing = np.array([token in (5, 7) for token in range(8)])
    rule = ForcedPrefix([[4], [4], [4, 4]], [True, False, True], continuing)
    assert forbidden(rule, [[4], [4], [4]], sentences=[0, 1, 2]) == [[5, 7], [], []]
    assert forbidden(rule, [[4, 4]] * 3, sentences=[0, 1, 2]) == [[], [], [5, 7]]
