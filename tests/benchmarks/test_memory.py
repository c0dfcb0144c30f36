"""The benchmark of memory: what its line says, and that the figures are those of the processes."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import memory
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


@pytest.mark.slow
def test_in_turn_with_a_rival(options: list[str]) -> None:
    """As a script: a process starts with the memory of the one that starts it, which here may be large."""
    rival = shlex.join([sys.executable, "-c", "bytearray(600 * 2**20).find(1)"])
    command = [sys.executable, ROOT / "benchmarks" / "memory.py", *options]
    command += ["--measure", "train", "--against", rival, "--runs", "1"]
    figures = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert 600 < figures["rival_train_peak_resident_mib"] < 1200
    assert figures["ratio"] == pytest.approx(
        figures["train_peak_resident_mib"] / figures["rival_train_peak_resident_mib"], abs=1e-3
    )
    assert figures["runs"]["ours"] == [figures["train_peak_resident_mib"]]
    assert figures["train_peak_resident_mib"] > 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "rival"], "--against needs --measure"),
        (["--measure", "train", "--model", "m"], "--model has no effect"),
    ],
)
def test_mistakes_of_options(arguments: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(memory.main, arguments)


def test_what_fails_below_fails_here(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main([*options, "--set", "training.nosuch=1"]) == 2
    assert "ended with code 2" in capsys.readouterr().err


def test_what_starts_the_processes_is_small_itself() -> None:
    """Linux counts its memory to theirs, so it loads no PyTorch."""
    code = "import sys, benchmarks.memory, benchmarks.scaling; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
