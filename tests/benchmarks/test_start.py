"""Every benchmark starts as the documents start it: as a file, from any folder, or as a module of the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BENCHMARKS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "benchmarks").glob("*.py"))}
PROGRAMS = [path for path, text in BENCHMARKS.items() if "ArgumentParser(" in text and "__main__" in text]
MODULES = ("attention_table", "predicted_positions", "serve_load")  # with python -m


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_its_help(path: Path, tmp_path: Path) -> None:
    as_module = path.stem in MODULES
    command = ["-m", f"benchmarks.{path.stem}"] if as_module else [str(path)]
    finished = subprocess.run(
        [sys.executable, *command, "--help"], cwd=ROOT if as_module else tmp_path, capture_output=True, check=False
    )
    assert finished.stdout.startswith(b"usage: "), finished.stderr.decode()
