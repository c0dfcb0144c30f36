"""nmt-translate --word-scores: a line of JSON for each line of the output, in one piece and in chunks."""

import json
from pathlib import Path

import pytest

from tests.cli.test_glossary import folder, translated

__all__ = ["folder"]  # a fixture


def test_lines_of_json(model: Path, folder: Path) -> None:
    scores = folder / "scores"
    options = ("--n-best", "2", "--length-penalty", "none", "--word-scores", str(scores))
    lines = translated(model, folder, *options).splitlines()
    found = [json.loads(line) for line in scores.read_text().splitlines()]
    assert len(found) == len(lines) == 7
    for line, numbers in zip(lines, found, strict=True):
        _, text, score = line.split("|||")
        assert numbers["words"] == text.split()
        assert len(numbers["scores"]) == len(numbers["words"])
        assert sum(numbers["scores"]) + numbers["end"] == pytest.approx(float(score), abs=0.01)
    before = scores.read_text()
    translated(model, folder, *options, "--chunk-lines", "1", "--alignments", str(folder / "links"))
    assert scores.read_text() == before
    assert len((folder / "links").read_text().splitlines()) == 7
