"""Lines of metrics.jsonl, whole and damaged."""

import math

import pytest

from nmt.evaluation.measurements import measurements, perplexity

FIRST, SECOND = b'{"step": 1, "split": "train", "loss": 2.5}\n', b'{"step": 2, "split": "valid", "bleu": null}\n'
RECORDS = [{"step": 1, "split": "train", "loss": 2.5}, {"step": 2, "split": "valid", "bleu": None}]


def test_damaged_lines_have_their_numbers() -> None:
    assert measurements([FIRST, SECOND]) == (RECORDS, [])
    assert measurements([b"\n", FIRST, b"[]\n", b'{"step": 1, "split": "other"}\n', SECOND]) == (RECORDS, [1, 3, 4])
    assert measurements([]) == ([], [])


def test_a_line_that_is_being_written_is_no_damage() -> None:
    assert measurements([FIRST, SECOND[:9]]) == (RECORDS[:1], [])


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert perplexity(699.0) == math.exp(699.0)
    assert perplexity(710.0) == perplexity(1e9) == math.inf  # exp(709.8) is more than a float holds
