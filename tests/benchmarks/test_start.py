"""Every benchmark starts as the documents start it: as a file, from any folder, or as a module of the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BENCHMARKS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "benchmarks").glob("*.py"))}
PROGRAMS = [path for path, text in BENCHMARKS.items() if "ArgumentParser(" in text and "__main__" in text]
MODULES = ("attention_table", "predicted_positions", "serve_load")  # with python -m

# Each starts in a process forked from one that has imported the package, which takes most of the time, and there
# the path begins as Python would let it begin.
START_ALL = r"""
import os, runpy, sys, traceback
import nmt.decoding.translator, nmt.experiment.training
root, folder, modules, *paths = sys.argv[1:]
for path in paths:
    name = os.path.splitext(os.path.basename(path))[0]
    print("\n--- started", name, flush=True)
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    sys.argv = [path, "--help"]
    try:
        if name in modules.split():
            os.chdir(root)
            sys.path.insert(0, "")
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        else:
            os.chdir(folder)
            sys.path.insert(0, os.path.dirname(path))
            runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # without Python's shutdown, which takes long with so many modules
"""


@pytest.mark.slow
def test_their_help(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", START_ALL, ROOT, tmp_path, " ".join(MODULES), *PROGRAMS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    helps = dict(text.split("\n", 1) for text in finished.stdout.split("\n--- started ")[1:])
    assert len(PROGRAMS) > 15
    assert helps.keys() == {path.stem for path in PROGRAMS}
    without = [name for name, said in helps.items() if not said.startswith("usage: ")]
    assert without == [], finished.stderr
