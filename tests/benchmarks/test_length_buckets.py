"""Buckets by source length: who is in which, their scores, and a picture."""

from pathlib import Path

import pytest

from benchmarks.length_buckets import Bucket, bleu_by_bucket, buckets, plot

SOURCES = ["a b c d e f", "a b", "a b c", "a b c d", "a b c d e f g h i", "", "a"]  # 6, 2, 3, 4, 9, 0, 1 words


def test_bounds_belong_to_the_bucket_below() -> None:
    parts = buckets(SOURCES, upper=(2, 4))
    assert parts == [Bucket(0, 2, (1, 5, 6)), Bucket(3, 4, (2, 3)), Bucket(5, None, (0, 4))]
    assert [part.label for part in parts] == ["≤ 2", "3–4", "≥ 5"]


def test_empty_buckets_are_left_out() -> None:
    assert buckets(["a b c"], upper=(2, 4, 8)) == [Bucket(3, 4, (0,))]


def test_every_sentence_is_in_one_bucket() -> None:
    lines = ["word " * length for length in range(1, 40)]
    sentences = [index for part in buckets(lines) for index in part.sentences]
    assert sorted(sentences) == list(range(39))


def test_each_bucket_is_scored_by_itself() -> None:
    parts = [Bucket(0, 4, (0, 2)), Bucket(5, None, (1,))]
    references = ["the dog sees the cat", "the cat hears a man", "a bird sings very well"]
    hypotheses = [references[0], "all else is other words", references[2]]
    right, wrong = bleu_by_bucket(parts, hypotheses, references, tokenize="none")
    assert right == pytest.approx(100)
    assert wrong < 20


def test_plot(tmp_path: Path) -> None:
    parts = buckets(SOURCES, upper=(2, 4))
    series = {"none": [31.0, 22.0, 13.0], "additive": [32.0, 33.0, 34.0], "local-p general": [33.5, 33.0, 32.0]}
    for name in ("first.png", "second.png"):
        plot(tmp_path / "images" / name, parts, series, title="BLEU by source length")
    picture = (tmp_path / "images" / "first.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert picture == (tmp_path / "images" / "second.png").read_bytes(), "the same numbers, the same bytes"
