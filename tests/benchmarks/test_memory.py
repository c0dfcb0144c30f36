"""The benchmark of memory: what its line says, and that the figures are those of the processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def options(tiny_config: Path) -> list[str]:
    files = {"--source": tiny_config.parent / "test.en", "--reference": tiny_config.parent / "test.de"}
    words = [word for option, path in files.items() for word in (option, str(path))]
    return ["--config", str(tiny_config), "--updates", "1", "--threads", "1", "--beam", "2", "--batch", "4", *words]


@pytest.mark.slow
def test_the_line(options: list[str], tmp_path: Path) -> None:
    """As a script, and from another folder."""
    command = [sys.executable, ROOT / "benchmarks" / "memory.py", *options]
    finished = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(finished.stdout)
    assert (figures["config"], figures["variant"], figures["device"]) == ("tiny.yaml", "reference", "cpu")
    assert (figures["updates"], figures["beam"], figures["batch"]) == (1, 2, 4)
    assert figures["parameters"] > 1000
    for name in ("train_peak_resident_mib", "translate_peak_resident_mib"):
        assert 50 < figures[name] < 100_000
    assert "train_peak_device_mib" not in figures
    assert list(tmp_path.iterdir()) == []


def test_what_starts_the_processes_is_small_itself() -> None:
    """Linux counts its memory to theirs, so it loads no PyTorch."""
    code = "import sys, benchmarks.memory, benchmarks.scaling; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
