"""Diverse beam search on hand-written tables, against the same search with lists and loops, and on text."""

import math

import numpy as np
import pytest

from nmt.config.schema import DecodingConfig
from nmt.decoding.search.diverse import Groups
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty
from nmt.decoding.search.loop import search
from nmt.decoding.translator import Translator
from nmt.symbols import BEGIN
from tests.decoding.conftest import TEXT, network
from tests.decoding.search.test_beam import GARDEN_PATH, A, B, C, table
from tests.decoding.tables import Rows, plain_search, random_tables, table_step
from tests.translating import translate

PENALTIES: list[LengthPenalty] = ["none", "average", 0.6]


def searched(
    tables: Array,
    *,
    groups: int,
    group_size: int,
    strength: float,
    limits: list[int],
    length_penalty: LengthPenalty = "average",
) -> list[list[Hypothesis]]:
    return search(
        table_step(tables),
        Rows(np.arange(len(tables))),
        Groups(groups, group_size, strength),
        length_penalty=length_penalty,
        max_lengths=np.array(limits),
        n_best=groups,
    )


def test_groups_of_one_by_hand() -> None:
    """The first group takes A B C. The second has 0.6 / e for A and 0.4 for B at first, then what B says: C."""
    best = searched(GARDEN_PATH[None], groups=2, group_size=1, strength=1.0, limits=[10], length_penalty="none")[0]
    assert [hypothesis.tokens for hypothesis in best] == [[B, C], [A, B, C]]
    # nothing that was lost is in the scores
    assert [math.exp(hypothesis.score) for hypothesis in best] == pytest.approx([0.36, 0.216])


def test_a_small_strength_changes_little_and_nothing_is_given_twice() -> None:
    sure = table({BEGIN: {A: 0.9, B: 0.1}, A: {C: 0.8, B: 0.2}, B: {C: 1.0}})
    (best,) = searched(sure[None], groups=3, group_size=2, strength=1e-6, limits=[9])
    assert best[0].tokens == [A, C]
    assert [hypothesis.tokens for hypothesis in best] == [[A, C], [A, B, C]]  # each of the three groups finds these two


@pytest.mark.parametrize("length_penalty", PENALTIES)
@pytest.mark.parametrize(("groups", "size"), [(2, 1), (3, 2), (5, 1), (2, 4)])
def test_agrees_with_a_plain_search(groups: int, size: int, length_penalty: LengthPenalty) -> None:
    tables = random_tables(13, 9, seed=groups)
    limits = [3 + sentence % 7 for sentence in range(13)]
    results = searched(
        tables, groups=groups, group_size=size, strength=20.0, limits=limits, length_penalty=length_penalty
    )
    compared = 0
    for transitions, limit, hypotheses in zip(tables.tolist(), limits, results, strict=True):
        how = {"groups": groups, "strength": 20.0, "beam_size": size, "length_penalty": length_penalty}
        expected = [best for best, *_ in plain_search(transitions, limit=limit, **how)]
        if len({tuple(words) for words in expected}) == groups:  # else a group gives another than its best
            compared += 1
            assert sorted(hypothesis.tokens for hypothesis in hypotheses) == sorted(expected)
    assert compared > 3


def different_pieces(best: list) -> int:
    return len({piece for translation in best for piece in translation.tokens})


def test_text(vocabularies) -> None:
    size = vocabularies.source.size
    decoding = DecodingConfig(max_length_ratio=0.6, max_length_extra=4)
    translator = Translator([network("luong", source_size=size, target_size=size)], vocabularies, decoding=decoding)
    plain = list(translator.translate(TEXT, n_best=4, beam_size=8))
    options = {"n_best": 4, "beam_size": 8, "diversity": 2.0}
    diverse = list(translate(translator, TEXT, **options))
    assert sum(map(different_pieces, diverse)) > 1.2 * sum(map(different_pieces, plain))
    for best in diverse:
        assert len({translation.text for translation in best}) == len(best) == 4
        assert [translation.score for translation in best] == sorted(
            (translation.score for translation in best), reverse=True
        )
    ruled = translate(translator, TEXT, **options, no_repeat_ngram_size=1, coverage_penalty=0.2, minimum_length=5)
    for best in ruled:
        assert all(len(set(translation.tokens)) == len(translation.tokens) >= 5 for translation in best)
