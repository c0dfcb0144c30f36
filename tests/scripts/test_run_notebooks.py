"""Notebooks run as plain Python, and what their cells show is stored as Jupyter stores it."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts import run_notebooks

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "run_notebooks.py"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


def write(path: Path, *sources: str) -> None:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# A title"]}]
    cells += [{"cell_type": "code", "metadata": {}, "source": [source], "outputs": []} for source in sources]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}), encoding="utf-8")


def test_what_cells_show_is_stored_only_when_asked_for(tmp_path: Path) -> None:
    notebook = tmp_path / "one.ipynb"
    write(notebook, "a = 6\nprint('so'); print(a)", "a * 7", "a * 8;", "b = a")
    before = notebook.read_bytes()
    assert run(notebook).returncode == 0
    assert notebook.read_bytes() == before
    assert run("--write", notebook).returncode == 0
    _, *code = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4]
    assert code[0]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["so\n", "6\n"]}]
    assert [output["data"] for output in code[1]["outputs"]] == [{"text/plain": ["42"]}]
    assert code[2]["outputs"] == code[3]["outputs"] == []


def test_the_first_cell_that_fails_ends_it(tmp_path: Path) -> None:
    write(tmp_path / "one.ipynb", "a = 1", "assert a == 2, 'not two'", "print('never')")
    write(tmp_path / "two.ipynb", "print('never')")
    result = run("--write", tmp_path / "one.ipynb", tmp_path / "two.ipynb")
    assert result.returncode == 1
    assert "one.ipynb: code cell 2 failed" in result.stderr
    assert "AssertionError: not two" in result.stderr
    assert "never" not in result.stdout + (tmp_path / "two.ipynb").read_text(encoding="utf-8").replace(
        "print('never')", ""
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_small_and_can_be_read_without_running_them(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert path.stat().st_size < 400_000
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell["outputs"])
    assert not any(line.startswith(("%", "!")) for cell in code for line in cell["source"])


QUICKER = {  # so that models learn nothing, in seconds instead of minutes; every cell has to run all the same
    r'"--train", "\d+", "--valid", "\d+"': '"--train", "80", "--valid", "8"',
    r'"data\.max_length": 18,': '"data.max_length": 18, "subwords.size": 200, "decoding.max_length_ratio": 0.2,',
}
AND_QUICKER = {
    "2_learning_to_align.ipynb": {r'"--test", "200"': '"--test", "20"'},
    "3_comparing_models.ipynb": {
        r"SEEDS = \(1, 2, 3\)": "SEEDS = (1, 2)",
        r'"--test", "200"': '"--test", "20"',
        r'"training.max_epochs": 7': '"training.max_epochs": 1',
        r'"training.validate_every": "7 epochs"': '"training.validate_every": "1 epoch"',
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_runs(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the cells assert holds for models that have learned nothing, too; `make notebooks` trains them."""
    pytest.importorskip("matplotlib", reason="needs the extra plots: pip install '.[plots]'")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for pattern, quicker in {**QUICKER, **AND_QUICKER.get(path.name, {})}.items():
        changed = 0
        for cell in notebook["cells"]:
            text, count = re.subn(pattern, quicker, "".join(cell["source"]))
            cell["source"], changed = [text], changed + count
        assert changed == 1, pattern
    quick = tmp_path / path.name
    quick.write_text(json.dumps(notebook), encoding="utf-8")
    threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_notebooks.run(quick, write=False) == 0, capsys.readouterr().err
