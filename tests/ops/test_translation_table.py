"""IBM Model 1 against dictionaries and loops, and the choice of the most probable targets."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from nmt.ops import translation_table
from nmt.ops.translation_table import Pair, TranslationTable, grouped, ibm_model_1, most_probable

SOURCES, TARGETS = 7, 11
SENTENCES = [
    ([4, 5], [6, 7, 8]),
    ([5], [7]),
    ([4, 4, 6], [6, 6, 9, 10]),  # pieces that stand twice
    ([6, 5], [7, 9, 1]),
    ([4, 5], [8, 6, 10]),  # as long as the first
    ([0], [0]),
]


def arrays(sentences: Sequence[tuple[list[int], list[int]]]) -> list[Pair]:
    return [(np.array(source), np.array(target)) for source, target in sentences]


def plain_model_1(sentences: Sequence[tuple[list[int], list[int]]], iterations: int) -> dict[tuple[int, int], float]:
    """t(f | e) by the equations, with NULL as source piece SOURCES."""
    sentences = [([*source, SOURCES], target) for source, target in sentences]
    table = {(e, f): 1 / TARGETS for source, target in sentences for e in source for f in target}
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in sentences:
            for f in target:
                total = sum(table[e, f] for e in source)
                for e in source:
                    counts[e, f] += table[e, f] / total
                    totals[e] += table[e, f] / total
        table = {(e, f): counts[e, f] / totals[e] for e, f in table}
    return table


@pytest.mark.parametrize("cells", [1, 20, 1 << 20])
@pytest.mark.parametrize(("options", "iterations"), [({"iterations": 1}, 1), ({}, 5)])
def test_equals_a_plain_implementation(
    options: dict[str, int], iterations: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_table, "CELLS", cells)
    table = ibm_model_1(arrays(SENTENCES), source_size=SOURCES, target_size=TARGETS, **options)
    entries = list(zip(table.sources.tolist(), table.targets.tolist(), strict=True))
    expected = plain_model_1(SENTENCES, iterations)
    assert entries == sorted(expected)
    assert table.probabilities.tolist() == pytest.approx([expected[entry] for entry in entries], rel=1e-12)


def plain_with_positions(sentences: Sequence[tuple[list[int], list[int]]]) -> dict[tuple[int, int], float]:
    """After five iterations, by the equations; SciPy is not needed: ψ is that of PyTorch."""
    table = {(e, f): 1.0 for source, target in sentences for e in [*source, SOURCES] for f in target}
    for _ in range(5):
        counts = dict.fromkeys(table, 0.01)
        for source, target in sentences:
            for j, f in enumerate(target):
                shares = [
                    share * table[e, f] for e, share in zip([*source, SOURCES], near(source, target, j), strict=True)
                ]
                for e, share in zip([*source, SOURCES], shares, strict=True):
                    counts[e, f] += share / sum(shares)
        totals = {e: sum(count for (other, _), count in counts.items() if other == e) for e, _ in counts}
        table = {(e, f): math.exp(digamma(count) - digamma(totals[e])) for (e, f), count in counts.items()}
    return table


def near(source: list[int], target: list[int], j: int) -> list[float]:
    """d(i | j) of each i, and p₀."""
    weights = [math.exp(-4 * abs((i + 1) / len(source) - (j + 1) / len(target))) for i in range(len(source))]
    return [*(0.92 * weight / sum(weights) for weight in weights), 0.08]


def digamma(value: float) -> float:
    return float(torch.digamma(torch.tensor(value, dtype=torch.float64)))


@pytest.mark.parametrize("cells", [1, 1 << 20])
def test_with_positions_it_equals_a_plain_implementation(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_table, "CELLS", cells)
    sizes = {"source_size": SOURCES, "target_size": TARGETS}
    table = ibm_model_1(arrays(SENTENCES), **sizes, with_positions=True)
    expected = plain_with_positions(SENTENCES)
    entries = list(zip(table.sources.tolist(), table.targets.tolist(), strict=True))
    assert table.probabilities.tolist() == pytest.approx([expected[entry] for entry in entries], rel=1e-9)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (1, [(1, 1, 1), (1, 1, 1), (1, 2, 3), (1, 2, 3), (1, 2, 3), (1, 3, 4)]),
        (18, [(2, 1, 1), (2, 2, 3), (1, 2, 3), (1, 3, 4)]),
        (1 << 20, [(2, 1, 1), (3, 2, 3), (1, 3, 4)]),
    ],
)
def test_pairs_of_equal_lengths_are_computed_together(
    cells: int, expected: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs, pieces of their sources, pieces of their targets: with NULL at most so many cells, or one pair."""
    monkeypatch.setattr(translation_table, "CELLS", cells)
    groups = list(grouped([*arrays(SENTENCES), *arrays([([], [3]), ([4], [])])]))
    assert [(*source.shape, target.size(1)) for _, source, target in groups] == expected
    assert sorted(index for indices, _, _ in groups for index in indices) == list(range(len(SENTENCES)))
    assert all(source[0].tolist() == SENTENCES[indices[0]][0] for indices, source, _ in groups)
    assert {source.dtype for _, source, _ in groups} == {torch.int32}  # 4 bytes a piece


def test_the_most_probable_by_hand() -> None:
    table = TranslationTable(
        torch.tensor([1, 1, 1, 2, 3, 3]),  # 3 is NULL
        torch.tensor([4, 5, 9, 6, 4, 8]),
        torch.tensor([0.2, 0.4, 0.4, 1.0, 0.5, 0.5], dtype=torch.float64),
    )
    best = most_probable(table, 2, source_size=3, filling=0)
    assert best.tolist() == [[0, 0], [5, 9], [6, 0]]


def test_of_equally_probable_ones_the_smaller_id_comes_first() -> None:
    """Of so many that a sort which does not promise it would mix them up."""
    table = TranslationTable(
        torch.arange(2).repeat_interleave(300), torch.arange(300).repeat(2), torch.full((600,), 0.5)
    )
    assert most_probable(table, 300, source_size=2, filling=0).tolist() == 2 * [list(range(300))]
