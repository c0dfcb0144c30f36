"""What is measured."""

import math

import pytest

from nmt.evaluation.measurements import perplexity


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert perplexity(699.0) == math.exp(699.0)
    assert perplexity(710.0) == perplexity(1e9) == math.inf  # exp(709.8) is more than a float holds
