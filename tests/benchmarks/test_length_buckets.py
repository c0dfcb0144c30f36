"""Buckets by source length: who is in which, their scores, and a picture."""

import pytest

from benchmarks.length_buckets import Bucket, bleu_by_bucket, buckets

SOURCES = ["a b c d e f", "a b", "a b c", "a b c d", "a b c d e f g h i", "", "a"]  # 6, 2, 3, 4, 9, 0, 1 words


def test_bounds_belong_to_the_bucket_below() -> None:
    parts = buckets(SOURCES, upper=(2, 4))
    assert parts == [Bucket(0, 2, (1, 5, 6)), Bucket(3, 4, (2, 3)), Bucket(5, None, (0, 4))]
    assert [part.label for part in parts] == ["≤ 2", "3–4", "≥ 5"]


def test_each_bucket_is_scored_by_itself() -> None:
    parts = [Bucket(0, 4, (0, 2)), Bucket(5, None, (1,))]
    references = ["the dog sees the cat", "the cat hears a man", "a bird sings very well"]
    hypotheses = [references[0], "all else is other words", references[2]]
    right, wrong = bleu_by_bucket(parts, hypotheses, references, tokenize="none")
    assert right == pytest.approx(100)
    assert wrong < 20
