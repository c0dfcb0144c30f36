"""Buckets by source length: who is in which."""

from benchmarks.length_buckets import Bucket, buckets

SOURCES = ["a b c d e f", "a b", "a b c", "a b c d", "a b c d e f g h i", "", "a"]  # 6, 2, 3, 4, 9, 0, 1 words


def test_bounds_belong_to_the_bucket_below() -> None:
    parts = buckets(SOURCES, upper=(2, 4))
    assert parts == [Bucket(0, 2, (1, 5, 6)), Bucket(3, 4, (2, 3)), Bucket(5, None, (0, 4))]
    assert [part.label for part in parts] == ["≤ 2", "3–4", "≥ 5"]
