"""Perplexity, and the interval of an accuracy against published values of Wilson's."""

import math

import pytest

from nmt.evaluation.measurements import Contrast, perplexity


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert perplexity(699.0) == math.exp(699.0)
    assert perplexity(710.0) == perplexity(1e9) == math.inf  # exp(709.8) is more than a float holds


@pytest.mark.parametrize(
    ("right", "pairs", "least", "most"),
    [  # Newcombe (1998), Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_published_intervals(right: int, pairs: int, least: float, most: float) -> None:
    contrast = Contrast(pairs, right, 0)
    assert contrast.interval == pytest.approx((least, most), abs=5e-5)
    assert contrast.accuracy == right / pairs
