"""What `make coverage` measures: the lines and branches that the fast tests run, not those of the slow proofs."""

import sys

import coverage
import pytest


def test_a_fast_test_is_measured() -> None:
    if coverage.Coverage.current():
        assert sys.gettrace()


@pytest.mark.slow
def test_a_slow_proof_is_not_measured() -> None:
    assert coverage.Coverage.current() is None
