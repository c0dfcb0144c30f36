"""The histogram of gradient norms, by a table."""

import math
import random
from itertools import pairwise

import pytest

from nmt.training.gradient_norms import count, histogram

BUCKETS = [(1.0, 0), (1.99, 7), (2.0, 8), (0.99, -1), (0.5, -8), (0.0, -320), (1e-30, -320), (1e300, 7972)]


@pytest.mark.parametrize(("norm", "bucket"), BUCKETS)
def test_each_norm_has_its_bucket(norm: float, bucket: int) -> None:
    """8 · log2(norm), rounded down: log2(1e300) = 996.58."""
    counts: dict[str, int] = {}
    count(counts, norm)
    assert counts == {str(bucket): 1}
    ((lower, upper, norms),) = histogram(counts)
    assert norms == 1
    assert lower <= max(norm, 2.0**-40) < upper == pytest.approx(lower * 2 ** (1 / 8))


def test_buckets_without_norms_are_there() -> None:
    counts: dict[str, int] = {}
    for norm in (3.0, 1.0, 1.0, 1.5):
        count(counts, norm)
    assert [norms for _, _, norms in histogram(counts)] == [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    edges = histogram(counts)
    assert all(upper == lower for (_, upper, _), (lower, _, _) in pairwise(edges))


def test_many_norms_take_little_room() -> None:
    counts: dict[str, int] = {}
    generator = random.Random(3)
    for _ in range(10_000):
        count(counts, math.exp(generator.gauss(0, 1)))
    assert sum(counts.values()) == 10_000
    assert 50 < len(counts) < 100
