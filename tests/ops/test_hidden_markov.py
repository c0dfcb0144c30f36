"""Alignment by agreement against sums over all alignments of short pairs, one by one."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from nmt.ops import hidden_markov, translation_table
from nmt.ops.hidden_markov import agreeing, most_probable_origins, posteriors
from nmt.ops.translation_table import ibm_model_1
from tests.ops.test_translation_table import SENTENCES, SOURCES, TARGETS, arrays, digamma

Pairs = Sequence[tuple[list[int], list[int]]]
Table = dict[tuple[int, int], float]
NULL, FARTHEST = -1, 2  # pieces of five go farther


def shortened(distance: int) -> int:
    return max(-FARTHEST, min(distance, FARTHEST))


class Plain:
    """One direction by the equations: every alignment of a pair, with its probability."""

    def __init__(self, pairs: Pairs, source_size: int, target_size: int) -> None:
        table = ibm_model_1(
            arrays(pairs), source_size=source_size, target_size=target_size, iterations=3, with_positions=True
        )
        entries = zip(table.sources.tolist(), table.targets.tolist(), table.probabilities.tolist(), strict=True)
        self.null = source_size
        self.table: Table = {(e, f): probability for e, f, probability in entries}
        self.jumps = {d: math.exp(-0.3 * abs(d - 1)) for d in range(-FARTHEST, FARTHEST + 1)}

    def alignments(self, source: list[int], target: list[int]) -> Iterator[tuple[float, list[tuple[int, bool]]]]:
        """For each piece of the target a place from 1, and whether it is NULL after that place."""
        length = len(source)
        states = list(product(range(1, length + 1), (False, True)))
        for path in product(states, repeat=len(target)):
            probability = 1.0
            for number, ((place, is_null), piece) in enumerate(zip(path, target, strict=True)):
                before = path[number - 1][0] if number else 0
                if is_null:
                    reached = 1 / length if not number else float(place == before)
                    probability *= 0.08 * reached * max(1e-9, self.table.get((self.null, piece), 0))
                else:
                    total = sum(self.jumps[shortened(k - before)] for k in range(1, length + 1))
                    reached = 0.9 * self.jumps[shortened(place - before)] / total + 0.1 / length
                    probability *= 0.92 * reached * max(1e-9, self.table.get((source[place - 1], piece), 0))
            if probability:
                yield probability, list(path)

    def expected(self, source: list[int], target: list[int]) -> tuple[np.ndarray, dict[int, float]]:
        """γ, (I + 1, J), and how often each distance is gone."""
        origins, jumps = np.zeros((len(source) + 1, len(target))), defaultdict[int, float](float)
        paths = list(self.alignments(source, target))
        total = sum(probability for probability, _ in paths)
        for probability, path in paths:
            for piece, (place, is_null) in enumerate(path):
                origins[NULL if is_null else place - 1, piece] += probability / total
            for (before, _), (place, is_null) in pairwise([(0, False), *path]):
                if not is_null:
                    jumps[shortened(place - before)] += probability / total
        return origins, jumps


def learned(pairs: Pairs, source_size: int, target_size: int, iterations: int) -> tuple[Plain, Plain]:
    turned = [(target, source) for source, target in pairs]
    models = Plain(pairs, source_size, target_size), Plain(turned, target_size, source_size)
    for _ in range(iterations):
        counts = [dict.fromkeys(model.table, 0.01) for model in models]
        jumps = [dict.fromkeys(model.jumps, 1e-3) for model in models]
        for pair in pairs:
            found = [model.expected(*sides) for model, sides in zip(models, (pair, pair[::-1]), strict=True)]
            both = found[0][0][:-1] * found[1][0][:-1].T
            for side, (source, target) in enumerate((pair, pair[::-1])):
                shares = both.T if side else both
                for j, f in enumerate(target):
                    for i, e in enumerate(source):
                        counts[side][e, f] += shares[i, j]
                    counts[side][models[side].null, f] += 1 - shares[:, j].sum()
                for distance, share in found[side][1].items():
                    jumps[side][distance] += share
        for model, new, distances in zip(models, counts, jumps, strict=True):
            totals = {e: sum(count for (other, _), count in new.items() if other == e) for e, _ in new}
            model.table = {(e, f): math.exp(digamma(count) - digamma(totals[e])) for (e, f), count in new.items()}
            model.jumps = distances
    return models


@pytest.mark.parametrize("cells", [1, 1 << 20])
def test_equals_the_sum_over_all_alignments(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_table, "CELLS", cells)
    monkeypatch.setattr(hidden_markov, "FARTHEST", FARTHEST)
    models = agreeing(arrays(SENTENCES), source_size=SOURCES, target_size=TARGETS)
    plain = learned(SENTENCES, SOURCES, TARGETS, iterations=2)
    unseen = [([5, 2, 4], [6, 0]), ([], [3]), ([4], []), ([0], [9]), ([6, 6], [10, 7, 8]), ([4, 5, 6, 4, 5], [6, 10])]
    for side, (model, expected) in enumerate(zip(models, plain, strict=True)):
        pairs = [pair[::-1] if side else pair for pair in [*SENTENCES, *unseen]]
        for pair, origins in zip(pairs, most_probable_origins(model, arrays(pairs)), strict=True):
            assert len(origins) == (len(pair[1]) if pair[0] else 0)
            if len(origins):
                source, target = (torch.tensor([pieces]) for pieces in pair)
                ours = model.posteriors(model.places(source, target)).origins[0]
                torch.testing.assert_close(ours, torch.from_numpy(expected.expected(*pair)[0]), rtol=1e-9, atol=1e-12)
                assert origins.tolist() == ours.argmax(0).tolist()


def test_long_pairs_do_not_underflow() -> None:
    """300 pieces, of which each has a probability near 1e-9."""
    emissions = torch.full((1, 301, 300), 1e-9, dtype=torch.float64)
    found = posteriors(emissions, torch.full((301, 300), 1 / 300, dtype=torch.float64))
    torch.testing.assert_close(found.origins.sum(1), torch.ones(1, 300, dtype=torch.float64))
    assert found.steps is not None
    torch.testing.assert_close(found.steps.sum(), torch.tensor(299 * 0.92, dtype=torch.float64))
