"""The benchmark of a GPU, in small and on the CPU, so that it works where one is lent."""

import json
from pathlib import Path

import pytest

from benchmarks import gpu, train_speed


@pytest.mark.slow
def test_the_figures_and_their_table(tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_speed, "WARM_UP", 1)
    monkeypatch.setattr(gpu, "PROFILED", 1)
    monkeypatch.setattr(gpu, "BATCHES", (8,))
    small = ["--device", "cpu", "--config", str(tiny_config), "--updates", "1", "--seconds", "0.1", "--no-tests"]
    assert gpu.main([*small, "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert len(figures["training"]) == len(gpu.VARIANTS) * len(gpu.PRECISIONS) * len(gpu.BATCHES)
    assert all(row["target tokens/s"] > 0 for row in figures["training"])
    assert all(row["sentences/s"] > 0 for row in figures["translation"])
    assert figures["left_out"] == []
    lines = (tmp_path / "gpu.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("no GPU, PyTorch ")
    assert "| reference | TF32 | 8 |" in "\n".join(lines)
    assert sum(line.startswith("| ") for line in lines) == 4 + 6 + 4


def test_what_there_is_no_time_for_is_named(tiny_config: Path, tmp_path: Path) -> None:
    small = ["--device", "cpu", "--config", str(tiny_config), "--minutes", "0", "--seconds", "0.1", "--no-tests"]
    assert gpu.main([*small, "--output", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert figures["training"] == figures["translation"] == []
    assert len(figures["left_out"]) == 16
