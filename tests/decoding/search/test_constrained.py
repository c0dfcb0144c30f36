"""Searches under constraints: against exhaustive search and plain lists on tables, and on text with random networks."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.constrained import Banks
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty
from nmt.decoding.search.loop import search
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import ForcedPrefix, MinimumLength, NoRepeatedNgrams, NoUnknown, Rule
from nmt.symbols import UNKNOWN
from tests.decoding.tables import Rows, assert_best, normalized, random_tables, scores_of_all, table_step

Ids = Sequence[int]
PENALTIES: list[LengthPenalty] = ["none", "average", 0.6]
LIMIT = 5


def contains(words: Ids, phrase: Ids, continuing: Ids = ()) -> bool:
    """Whether the phrase stands there, followed by none of the words `continuing`."""
    ends = [start + len(phrase) for start in range(len(words)) if [*words[start : start + len(phrase)]] == [*phrase]]
    return any(end == len(words) or words[end] not in continuing for end in ends)


def left_by(phrases: list[list[int]], written: Ids, continuing: Ids = (), *, closed: bool = False) -> int:
    """What is left of phrases whose last words are complete; with nothing `continuing`, that does not matter."""
    makes_longer = np.array([token in continuing for token in range(9)])
    together = Phrases([phrases], [[True] * len(phrases)], makes_longer)
    progress, first = np.zeros_like(together.lengths), np.zeros(1, dtype=np.int64)
    places = {token: place for place, token in enumerate(together.tokens[0].tolist())}
    for token in written:
        place = places.get(token, int(together.places(np.array(token))))
        progress = together.following(progress, first)[:, :, place]
    return int(together.left(progress, first, np.array([closed]))[0])


def searched(
    tables: Array,
    phrases: list[list[list[int]]],
    *,
    beam_size: int,
    limits: list[int],
    length_penalty: LengthPenalty = "average",
    n_best: int = 1,
    rules: Sequence[Rule] = (),
    prefix: ForcedPrefix | None = None,
    continuing: Array | None = None,
) -> list[list[Hypothesis]]:
    sentences, vocabulary = tables.shape[:2]
    max_lengths = np.array(limits)
    complete = [[continuing is not None] * len(required) for required in phrases]
    banks = Banks(
        Phrases(phrases, complete, np.zeros(vocabulary, dtype=bool) if continuing is None else continuing),
        beam_size=beam_size,
        max_lengths=max_lengths,
        closed=np.full_like(max_lengths, -1) if prefix is None else np.where(prefix.complete, prefix.lengths, -1),
    )
    return search(
        table_step(tables),
        Rows(np.arange(sentences)),
        banks,
        length_penalty=length_penalty,
        max_lengths=max_lengths,
        n_best=n_best,
        rules=rules if prefix is None else [*rules, prefix],
    )


# -------------------------------------------------------------------------------------------- progress through phrases


def test_what_is_left_by_hand() -> None:
    phrases = [[4, 4, 5], [6]]
    written = [[], [4], [4, 4], [4, 4, 4], [4, 4, 4, 5], [6], [6, 4, 4, 7], [4, 4, 5, 6], [4, 4, 5, 7, 7, 6, 7]]
    assert [left_by(phrases, words) for words in written] == [4, 3, 2, 2, 1, 3, 3, 0, 0]
    assert left_by([], [4, 5]) == 0
    assert left_by([[4, 5], [5, 6]], [4, 5, 6]) == 0  # a token may serve two phrases


def test_what_is_left_where_words_may_become_longer_by_hand() -> None:
    """Of the word 4 and the longer ones 4 7 and 4 7 8."""
    phrases = [[4], [4, 7]]
    written = [[], [4], [4, 5], [4, 4], [4, 7], [4, 7, 5], [4, 7, 8], [4, 8], [4, 7, 4], [4, 5, 4, 7]]
    assert [left_by(phrases, words, (7, 8)) for words in written] == [3, 2, 2, 1, 1, 1, 3, 3, 0, 0]
    assert [left_by(phrases, words, (7, 8), closed=True) for words in written] == [3, 2, 2, 2, 1, 1, 3, 3, 0, 0]
    assert left_by([[4, 7, 8], [7]], [4, 7], (8,)) == 2  # nothing has made 7 longer yet; with 8, it is missing
    assert left_by([[4, 7, 8], [7]], [4, 7, 8], (8,)) == 1


def test_what_is_left_agrees_with_a_plain_search_for_whole_words() -> None:
    generator = random.Random(6)
    for _ in range(400):
        words = generator.choices((4, 5, 6, 7, 8), k=9)
        phrases = [
            [generator.choice((4, 5, 6)), *generator.choices((4, 5, 7), k=generator.randrange(4))]
            for _ in range(generator.randrange(1, 4))
        ]
        ways = []
        for goes_on in (False, True):  # with a token that begins a word; with one that makes the last one longer
            missing = [phrase for phrase in phrases if not contains([*words, 8 if goes_on else 9], phrase, (7, 8))]
            progress = [
                max(size for size in range(len(phrase)) if words[len(words) - size :] == phrase[:size])
                for phrase in missing
            ]
            fitting = [size for size, phrase in zip(progress, missing, strict=True) if (phrase[size] == 7) == goes_on]
            ways.append(sum(map(len, missing)) - max(fitting, default=0))
        assert left_by(phrases, words, (7, 8)) == min(ways)
        assert left_by(phrases, words, (7, 8), closed=True) == ways[0]


# ---------------------------------------------------------------------------------------------------------- the search

PHRASES = [
    [[[4]], [[5], [4]], [[5, 4, 5]]],
    [[[4, 5], [UNKNOWN]], [[UNKNOWN, UNKNOWN, 5, 4]], []],  # the second fills the whole translation
    [[[4, 4, 5], [UNKNOWN]], [[5, 5], [UNKNOWN]], [[4, 5, 4]]],
]


# Phrases that do not overlap: where there is no room for them one after another, what has them overlapping is left out.
@pytest.mark.parametrize("phrases", PHRASES, ids=str)
@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_a_beam_wide_enough_equals_exhaustive_search(phrases, length_penalty: LengthPenalty) -> None:
    tables = random_tables(3, 6, seed=23)  # the words are UNKNOWN, 4 and 5
    results = searched(tables, phrases, beam_size=400, limits=[LIMIT] * 3, length_penalty=length_penalty, n_best=7)
    for transitions, required, result in zip(tables.tolist(), phrases, results, strict=True):
        every = scores_of_all(transitions, (UNKNOWN, 4, 5), LIMIT, length_penalty)
        having = {words: every[words] for words in every if all(contains(words, phrase) for phrase in required)}
        assert_best(result, having, 7)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_every_hypothesis_has_all_phrases_however_little_room_there_is(beam_size: int) -> None:
    generator = random.Random(beam_size)
    sentences, vocabulary = 60, 11
    tables = random_tables(sentences, vocabulary, seed=beam_size)
    phrases = [
        [generator.choices(range(4, vocabulary), k=generator.randrange(1, 4)) for _ in range(generator.randrange(1, 4))]
        for _ in range(sentences)
    ]
    limits = [sum(map(len, required)) + 1 + index % 4 for index, required in enumerate(phrases)]
    results = searched(tables, phrases, beam_size=beam_size, limits=limits, n_best=beam_size)
    for limit, required, result in zip(limits, phrases, results, strict=True):
        assert result
        for hypothesis in result:
            assert len(hypothesis.tokens) < limit
            assert all(contains(hypothesis.tokens, phrase) for phrase in required)


def test_phrases_prevail_over_rules() -> None:
    tables = random_tables(4, 9, seed=8)
    phrases = [[[4, 4, UNKNOWN]], [[5, 6, 5, 6]], [[UNKNOWN]], [[7]]]
    rules = [NoUnknown(), NoRepeatedNgrams(1), MinimumLength(np.array([5] * 4))]
    for required, (best,) in zip(
        phrases, searched(tables, phrases, beam_size=6, limits=[8] * 4, rules=rules), strict=True
    ):
        assert contains(best.tokens, required[0])
        assert len(best.tokens) >= 5
        others = [token for token in best.tokens if token not in required[0]]
        assert len(set(others)) == len(others)
        assert UNKNOWN not in others


def test_a_prefix_comes_first_and_may_have_phrases() -> None:
    tables = random_tables(2, 9, seed=9)
    prefix = ForcedPrefix([[4, 5], [6]], [False, False], np.zeros(9, dtype=bool))
    phrases = [[[4, 5], [5, 7]], [[7, 8]]]
    results = searched(tables, phrases, beam_size=5, limits=[4, 4], prefix=prefix)
    assert [best.tokens for best, *_ in results] == [[4, 5, 7], [6, 7, 8]]  # there is room for nothing else


def test_phrases_that_overlap() -> None:
    tables = random_tables(1, 6, seed=4)
    tables[0, :, 4] += np.array([0.0, 0, 0, 0, -9, 9])  # 5 4 5 is what the model likes
    tables[0, :, 5] += np.array([0.0, 0, 9, 0, 9, -9])
    tables = normalized(tables)
    (best,) = searched(tables, [[[4, 5], [5, 4]]], beam_size=50, limits=[6])[0]
    assert best.tokens[:3] == [5, 4, 5]


def test_a_complete_word_is_not_made_longer() -> None:
    continuing = np.array([token in (5, 7) for token in range(9)])
    tables = random_tables(2, 9, seed=12)
    tables[:, 4, [5, 7]] += 9.0  # what the model would like after 4
    tables = normalized(tables)
    free = searched(tables, [[[4]], [[4]]], beam_size=9, limits=[7, 7])
    assert all(contains(best.tokens, [4, 5]) or contains(best.tokens, [4, 7]) for best, *_ in free)
    for best, *_ in searched(tables, [[[4]], [[4]]], beam_size=9, limits=[7, 7], continuing=continuing):
        assert contains(best.tokens, [4], (5, 7))


def test_whole_words_with_prefixes_and_rules_however_little_room_there_is() -> None:
    """Prefixes end with the beginning of a phrase, in a complete word or not; 7 and 8 make a word longer."""
    generator = random.Random(7)
    continuing = np.array([token in (7, 8) for token in range(9)])
    for seed in range(60):
        tables = random_tables(8, 9, seed=seed)
        tables[:, 4:, 7:] += 3.0  # which the model likes
        phrases = [
            [
                [generator.choice((4, 5)), *generator.choices((4, 7, 7, 8), k=generator.randrange(3))]
                for _ in range(generator.randrange(1, 4))
            ]
            for _ in range(8)
        ]
        prefixes = [
            [*generator.choices((4, 5, 8), k=generator.randrange(3)), *some[0][: generator.randrange(1, 4)]]
            for some in phrases
        ]
        complete = [generator.random() < 0.6 for _ in prefixes]
        limits = [
            len(prefix) + left_by(some, prefix, (7, 8), closed=closed) + 1 + seed % 3
            for some, prefix, closed in zip(phrases, prefixes, complete, strict=True)
        ]
        rules: list[Rule] = [NoRepeatedNgrams(1 + seed % 2), MinimumLength(np.array(limits) - 1)]
        results = searched(
            normalized(tables),
            phrases,
            beam_size=1 + seed % 3,
            limits=limits,
            rules=rules[: seed % 4],
            prefix=ForcedPrefix(prefixes, complete, continuing),
            continuing=continuing,
        )
        for prefix, closed, limit, some, result in zip(prefixes, complete, limits, phrases, results, strict=True):
            assert result
            for hypothesis in result:
                assert hypothesis.tokens[: len(prefix)] == prefix
                assert not (closed and hypothesis.tokens[len(prefix) :][:1] in ([7], [8]))
                assert len(hypothesis.tokens) < limit
                assert all(contains(hypothesis.tokens, phrase, (7, 8)) for phrase in some)


@pytest.mark.parametrize("phrases", [[[4], [4, 5]], [[4, 5], [4]], [[5, 4], [4]], [[4]]], ids=str)
def test_a_wide_beam_for_whole_words_equals_exhaustive_search(phrases: list[list[int]]) -> None:
    tables = random_tables(1, 6, seed=24)  # the words are 4 and 5, UNKNOWN is left out; 5 makes a word longer
    continuing = np.array([token == 5 for token in range(6)])
    limit = 8
    (result,) = searched(
        tables, [phrases], beam_size=400, limits=[limit], n_best=7, rules=[NoUnknown()], continuing=continuing
    )
    every = scores_of_all(tables[0].tolist(), (4, 5), limit, "average")
    having = {words: every[words] for words in every if all(contains(words, phrase, (5,)) for phrase in phrases)}
    assert_best(result, having, 7)


def test_a_phrase_makes_no_complete_prefix_longer() -> None:
    continuing = np.array([token in (5, 7) for token in range(9)])
    tables = random_tables(2, 9, seed=13)
    prefix = ForcedPrefix([[6, 4], [6, 4]], [True, False], continuing)
    whole, cut = searched(
        tables, [[[4, 5]]] * 2, beam_size=3, limits=[5, 5], n_best=3, prefix=prefix, continuing=continuing
    )
    assert [hypothesis.tokens for hypothesis in whole] == [[6, 4, 4, 5]]
    assert [6, 4, 5] in [hypothesis.tokens[:3] for hypothesis in cut]


def test_nan_is_an_error() -> None:
    tables = random_tables(1, 9, seed=1)
    tables[0, 4, 6] = float("nan")
    with pytest.raises(NotNumbersError, match=r"token 2 .*NaN"):
        searched(tables, [[[4, 5]]], beam_size=2, limits=[3])
