"""Beam search on hand-written transition tables: the next token's probabilities depend on the last token only."""

import math

import numpy as np
import pytest

from nmt.decoding.search.choices import best_continuations
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty, Scores, penalty
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.tables import LoggedRows, assert_best, beam_search, plain_search, random_tables, scores_of_all

A, B, C = 4, 5, 6
PENALTIES: list[LengthPenalty] = ["none", "average", 0.0, 0.6, 2.0]


class Search:
    """Beam search over one table a sentence; counts the rows of every step.

    One sentence is searched alone, and once more as a batch of two of the same, which must give the same; and so must
    steps that list the best tokens only.
    """

    def __init__(self, tables: Array) -> None:
        self.lists = False
        self.tables = tables  # (sentences, vocabulary, vocabulary) log-probabilities: last token → next token
        self.rows: list[int] = []
        self.selections: list[list[list[int]]] = []

    def step(self, tokens: Array, state: LoggedRows, wanted: int | None) -> tuple[Scores, LoggedRows]:
        self.rows.append(len(tokens))
        values = self.tables[state.table, tokens]
        if wanted is None or not self.lists:
            return Scores(values), state
        ids = np.argsort(-values, axis=1, kind="stable")[:, :wanted]
        return Scores(np.take_along_axis(values, ids, axis=1), ids), state

    def __call__(
        self,
        beam_size: int,
        *,
        length_penalty: LengthPenalty = "none",
        max_lengths: int | list[int] = 10,
        n_best: int = 1,
    ) -> list[list[Hypothesis]]:
        sentences = len(self.tables)
        limits = [max_lengths] * sentences if isinstance(max_lengths, int) else max_lengths

        def hypotheses(copies: int) -> list[list[Hypothesis]]:
            return beam_search(
                self.step,
                LoggedRows(np.tile(np.arange(sentences), copies), self.selections),
                beam_size=beam_size,
                length_penalty=length_penalty,
                max_lengths=np.array(limits * copies),
                n_best=n_best,
            )

        twice = hypotheses(2) * 2 if sentences == 1 else []
        self.lists = True
        listed = hypotheses(1)
        self.lists = False
        self.rows.clear()
        self.selections.clear()
        once = hypotheses(1)
        assert listed == once
        assert twice in ([], once * 4)
        return once


def table(transitions: dict[int, dict[int, float]], vocabulary: int = 7) -> Array:
    """Log-probabilities (vocabulary, vocabulary) from probabilities; a token without a row always ends."""
    probabilities = np.zeros((vocabulary, vocabulary), dtype=np.float32)
    probabilities[:, END] = 1.0
    for last, choices in transitions.items():
        probabilities[last] = 0.0
        for token, probability in choices.items():
            probabilities[last, token] = probability
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


# The greedy path is A (0.6), B (0.4), C (0.9): 0.216. The path B (0.4), C (0.9) is better: 0.36.
GARDEN_PATH = table({BEGIN: {A: 0.6, B: 0.4}, A: {B: 0.4, C: 0.3, A: 0.3}, B: {C: 0.9, END: 0.1}})


def tokens(results: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[hypothesis.tokens for hypothesis in sentence] for sentence in results]


def test_greedy_takes_the_garden_path_and_beam_2_finds_the_better_translation() -> None:
    greedy = Search(GARDEN_PATH[None])(1)[0][0]
    assert greedy.tokens == [A, B, C]
    assert math.exp(greedy.log_probability) == pytest.approx(0.216)
    best = Search(GARDEN_PATH[None])(2)[0][0]
    assert best.tokens == [B, C]
    assert math.exp(best.log_probability) == pytest.approx(0.36)


def test_fewer_than_n_best_when_fewer_exist() -> None:
    only = table({BEGIN: {A: 0.7, B: 0.3}})
    assert tokens(Search(only[None])(5, n_best=5)) == [[[A], [B]]]
    assert tokens(Search(only[None])(5, n_best=5, max_lengths=1)) == [[]]  # END has probability 0 at the first step


def test_penalties_by_hand() -> None:
    assert penalty(5, "none") == 1.0
    assert penalty(5, "average") == 5.0
    assert penalty(1, 0.7) == 1.0
    assert penalty(7, 2.0) == pytest.approx(4.0)  # ((5 + 7) / 6) ** 2


def test_equally_good_tokens_are_taken_in_the_order_of_their_ids() -> None:
    flat = np.full((1, 300, 300), -math.log(300.0))
    flat[:, BEGIN, END] = float("-inf")
    assert tokens(Search(flat)(3, n_best=3, max_lengths=2)) == [[[1], [4], [5]]]


def sorted_sums(live: Array, values: Array, count: int) -> tuple[Array, Array, Array]:
    """What `best_continuations` has to give, by a stable sort of everything."""
    values = values.astype(np.float64)
    values[:, [PAD, BEGIN]] = float("-inf")
    sums = (live[:, :, None] + values.reshape(*live.shape, -1)).reshape(len(live), -1)
    places = np.argsort(-sums, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(sums, places, axis=1), places // values.shape[1], places % values.shape[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("different", [3, 50, 10**6])
@pytest.mark.parametrize("columns", [7, 63, 257, 1600, 8037])
@pytest.mark.parametrize(("width", "count"), [(1, 2), (1, 10), (3, 1), (5, 10)])
def test_the_best_continuations_are_those_of_a_stable_sort(
    columns: int, width: int, count: int, different: int, dtype: type
) -> None:
    """Of few different values, so that most are equal, as of many; with zeros of both signs and impossible tokens."""
    generator = np.random.default_rng(columns + different)
    live = generator.integers(-3, 1, (11, width)).astype(np.float64)
    values = generator.integers(1 - different, 1, (11 * width, columns)).astype(dtype) / dtype(7)
    values[0, -1] = values[1, 4] = values[2, 0] = 2.0  # at the ends
    values[3, ::2] = -0.0
    values[4, 5:] = float("-inf")
    expected = sorted_sums(live, values, count)
    continuations = best_continuations(live, Scores(values), count, 0)
    assert np.array_equal(continuations.totals, expected[0])
    possible = continuations.totals > float("-inf")
    assert np.array_equal(continuations.origins[possible], expected[1][possible])
    assert np.array_equal(continuations.tokens[possible], expected[2][possible])


@pytest.mark.parametrize("best", range(0, 40, 3))
def test_of_many_equal_tokens_the_first_is_taken_wherever_the_best_is(best: int) -> None:
    """One 5, and in each of 40 blocks of 64 columns a 4 at the end."""
    values = np.zeros((1, 40 * 64))
    values[0, 63::64] = 4.0
    values[0, 64 * best + 10] = 5.0
    assert best_continuations(np.zeros((1, 1)), Scores(values), 2, 0).tokens.tolist() == [[64 * best + 10, 63]]


def test_greedy_search_moves_no_rows_until_a_sentence_finishes() -> None:
    chain = table({BEGIN: {A: 1.0}, A: {B: 1.0}, B: {C: 1.0}, C: {END: 1.0}})
    short = table({BEGIN: {A: 1.0}})
    search = Search(np.stack([chain, short, chain]))
    assert tokens(search(1)) == [[[A, B, C]], [[A]], [[A, B, C]]]
    assert search.selections == [[[0], [2]]]


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_a_hypothesis_that_can_no_longer_win_ends_the_search(length_penalty: LengthPenalty) -> None:
    # </s> has 0.99 at once; anything that starts with A has at most 0.01 and runs on with </s> at 0.001
    sure = table({BEGIN: {END: 0.99, A: 0.01}, A: {A: 0.999, END: 0.001}})
    search = Search(sure[None])
    assert tokens(search(4, length_penalty=length_penalty, max_lengths=50)) == [[[]]]
    assert len(search.rows) == 1


def test_the_search_ends_where_no_live_hypothesis_scores_better_as_it_stands() -> None:
    """</s> and A have 1/2 each: as one has finished, A is not followed, whose </s> would halve its loss."""
    even = table({BEGIN: {END: 0.5, A: 0.5}, A: {END: 1.0}})
    search = Search(even[None])
    assert tokens(search(1, length_penalty="average")) == [[[]]]
    assert len(search.rows) == 1


def test_what_is_as_long_as_it_may_be_can_still_win() -> None:
    """</s> at once: log 0.6 / 1 = -0.51. A </s>: log 0.4 / 2 = -0.46, and at log 0.4 / 1 it would have lost."""
    close = table({BEGIN: {END: 0.6, A: 0.4}, A: {END: 1.0}})
    assert tokens(Search(close[None])(2, length_penalty="average", max_lengths=2)) == [[[A]]]


def test_finished_junk_does_not_end_the_search_before_the_good_translation_finishes() -> None:
    # </s> is the second choice at every step, so two hypotheses have finished after two
    chain = table({BEGIN: {A: 0.9, END: 0.1}, A: {B: 0.9, END: 0.1}, B: {C: 0.9, END: 0.1}})
    assert tokens(Search(chain[None])(2, length_penalty="average")) == [[[A, B, C]]]


@pytest.mark.parametrize("sentences", [1, 2])
def test_nan_is_an_error(sentences: int) -> None:
    """In the last sentence alone."""
    tables = np.stack([GARDEN_PATH] * sentences)
    tables[-1, A, C] = float("nan")
    with pytest.raises(RuntimeError, match=r"token 2 .*NaN"):
        Search(tables)(2)


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_a_beam_wide_enough_equals_exhaustive_search(length_penalty: LengthPenalty) -> None:
    vocabulary, limit = 6, 4  # the words are 1, 4 and 5
    tables = random_tables(3, vocabulary, seed=11)
    results = Search(tables)(200, length_penalty=length_penalty, max_lengths=limit, n_best=5)
    for transitions, result in zip(tables.tolist(), results, strict=True):
        assert_best(result, scores_of_all(transitions, (1, 4, 5), limit, length_penalty), 5)


@pytest.mark.parametrize("length_penalty", PENALTIES)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (2, 1), (3, 3), (5, 2)])
def test_agrees_with_a_plain_search_that_never_stops_early(
    beam_size: int, n_best: int, length_penalty: LengthPenalty
) -> None:
    tables = random_tables(17, 11, seed=beam_size)
    limits = [1 + sentence % 13 for sentence in range(17)]
    results = Search(tables)(beam_size, length_penalty=length_penalty, max_lengths=limits, n_best=n_best)
    for transitions, limit, result in zip(tables.tolist(), limits, tokens(results), strict=True):
        (plain,) = plain_search(transitions, beam_size=beam_size, length_penalty=length_penalty, limit=limit)
        assert result == plain[:n_best]
