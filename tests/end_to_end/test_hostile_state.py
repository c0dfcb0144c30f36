"""A run folder with a state that a stranger wrote, with a right checksum: refused with exit code 2, in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.train import main
from nmt.training.checkpoint import KIND
from tests.conftest import ROOT
from tests.hostile_files import rewrite

RELEASE = ROOT / "tests" / "compatibility" / "0.1.0"

CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a position beyond the epoch": (lambda numbers: numbers["progress"].update(position=10**6), "beyond the end of an"),
    "no number of updates": (lambda numbers: numbers["progress"].update(update="x"), "progress.update"),
    "a section that is a number": (lambda numbers: numbers.update(schedule=5), "schedule: missing"),
    "a schedule without its numbers": (lambda numbers: numbers["schedule"].clear(), "lacks current, best, waited"),
    "no threads": (lambda numbers: numbers["surroundings"].update(threads=0), "surroundings.threads"),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_a_state_that_no_training_wrote(
    change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "release"
    shutil.copytree(RELEASE, folder)
    saved = folder / "run" / "config.yaml"
    saved.write_text(saved.read_text(encoding="utf-8").replace("/fixture", str(folder.resolve())), encoding="utf-8")

    def rewritten(_: Any, texts: dict[str, str]) -> None:
        numbers = json.loads(texts["numbers"])
        change(numbers)
        texts["numbers"] = json.dumps(numbers)

    rewrite(folder / "run" / "state.safetensors", KIND, rewritten)
    options = [
        "--config",
        str(folder / "bahdanau.yaml"),
        "--output",
        str(folder / "run"),
        "--device",
        "cpu",
        "--resume",
    ]
    assert main(options) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nmt-train: error: ")]
    assert said in error
