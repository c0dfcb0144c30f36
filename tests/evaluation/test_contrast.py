"""The interval of an accuracy, against published values of Wilson's."""

import pytest

from nmt.evaluation.measurements import Contrast


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
