"""nmt-curves from its arguments to the picture, the exit code and the messages."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from nmt.cli.curves import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of one name, the second of which is writing a line."""
    for number, name in enumerate(("first/run", "second/run")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        lines = [
            {"step": 10, "epoch": 1.0, "split": split, "loss": 2.5, "perplexity": 12.2, "bleu": 9.5, "seconds": 30.0}
            for split in ("train", "valid")
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines) + '{"step": 20, "ep' * number
        (folder / "metrics.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def messages(capture: Capture) -> list[str]:
    printed = capture.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()


def test_a_picture(capsys: Capture) -> None:
    """Damaged lines are told; the one that is being written is none."""
    with open("first/run/metrics.jsonl", "a", encoding="utf-8") as file:
        file.write("oh\n" * 5)
    assert main(["--runs", "first/run", "second/run/", "--output", "curves.PNG"]) == 0
    (warning,) = messages(capsys)
    assert "line 3, 4, 5, and 2 more; the others are drawn" in warning
    with Image.open("curves.PNG") as image:
        assert image.format == "PNG"


def test_a_drawing(runs: Path, capsys: Capture) -> None:
    """The runs have the same name, so more of their folders is shown."""
    assert main(["--runs", "first/run", str(runs / "second" / "run"), "--output", "curves.svg"]) == 0
    drawing = Path("curves.svg").read_text(encoding="utf-8")
    assert "<!-- first/run -->" in drawing
    assert "<!-- second/run -->" in drawing


def test_all_that_is_wrong_at_once(capsys: Capture) -> None:
    Path("begun").mkdir()
    Path("begun/metrics.jsonl").write_text('{"step": 1', encoding="utf-8")
    Path("best.safetensors").touch()
    folders = ["absent", "begun", "best.safetensors", "first/run"]
    assert main(["--runs", *folders, "--output", "curves.jpg"]) == 2
    assert [message.removeprefix("  - ") for message in messages(capsys)] == [
        "nmt-curves: 4 problems:",
        "--output curves.jpg: must end with .png or .svg, the formats of the picture",
        "--runs absent/metrics.jsonl: no such file; there is no folder absent",
        "begun/metrics.jsonl: has no measurements yet, or no line of it can be read",
        "best.safetensors/metrics.jsonl: Not a directory",
    ]


def test_without_matplotlib(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["--runs", "first/run", "--output", "curves.png"]) == 2
    (line,) = messages(capsys)
    assert "pictures need matplotlib, which is not installed: pip install matplotlib" in line
