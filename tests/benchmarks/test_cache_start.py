"""How long the cached corpus of a training takes to open: what is counted, and that nothing is made again."""

import json
import os
from pathlib import Path

import pytest

from benchmarks import cache_start
from nmt.config.loading import read_config
from tests.benchmarks.conftest import PAIRS


def test_the_line(
    tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_config(tiny_config, []).config
    asked: list[int] = []

    def make_corpus(folder: Path, pairs: int, captions: Path | None) -> object:
        asked.append(pairs)
        return config

    monkeypatch.setattr(cache_start, "make_corpus", make_corpus)
    options = ["--pairs", "40", "--pieces", "120", "--runs", "2", "--work", str(tmp_path)]
    assert cache_start.main(options) == 0
    figures = json.loads(capsys.readouterr().out)
    assert asked == [40]
    assert (figures["pairs"], figures["runs"]) == (PAIRS, 2)
    assert {name for name in figures if name.startswith(("verification_warm", "start_warm"))} == {
        "verification_warm_seconds",
        "start_warm_seconds",
    }
    assert ("start_cold_seconds" in figures) == hasattr(os, "posix_fadvise")
    assert list(tmp_path.iterdir()) == []
