"""nmt-eval --report from its arguments to the page; the model's weights are set by hand, so its attention is known."""

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import report_page
from nmt.cli.evaluate import main
from tests.conftest import write_texts
from tests.known_model import save_known_model

SOURCE, TARGET = ["the", "dog", "runs"], ["rennt", "der", "Hund"]
LINKS = [(2, 0), (0, 1), (1, 2)]
WEIGHTS = [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]


@pytest.fixture
def files(here: Path) -> Path:
    """A folder, also the working folder: src, ref, good and bad, train, and the model m."""
    texts = {
        "src": ["the dog runs", "the dog", ""],
        "ref": ["rennt der Hund", "der Hund", "nichts"],
        "good": ["rennt der Hund", "der Hund", "nichts"],
        "bad": ["der der Hund", "Hund " * 300, "</script>"],
        "train": ["der Hund", "der Kater rennt"],
    }
    save_known_model(here / "m", SOURCE, TARGET, LINKS)
    return write_texts(here, texts)


def written(*arguments: str) -> tuple[str, dict[str, Any]]:
    """The page that the command writes, and its data."""
    assert main([*arguments, "--report", "page.html", "--metrics", "bleu,chrf"]) == 0
    text = Path("page.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return text, json.loads(data)


def piped(content: bytes) -> str:
    """The name of a pipe that has the content, as the shell's <(...) gives one."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return f"/dev/fd/{reading}"


def unpacked(text: str, columns: int) -> list[list[float]]:
    """The weights that `attention.packed` packed, to two decimals."""
    weights: list[float] = []
    run = iter(base64.b64decode(text))
    for byte in run:
        weights += [round(byte / 255, 2)] if byte else [0.0] * next(run)
    return [weights[begin : begin + columns] for begin in range(0, len(weights), columns)]


@pytest.mark.usefixtures("files")
def test_files_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    text, data = written("--hypotheses", "good", "bad", "--reference", "ref", "--resamples", "50")
    assert [system["name"] for system in data["systems"]] == ["good", "bad"]
    assert data["source"] is None
    assert [system["attention"] for system in data["systems"]] == [None, None]
    assert "By reference length" in text
    assert "p = " in text
    assert "BLEU" in capsys.readouterr().out  # the table, as without a page


@pytest.mark.usefixtures("files")
def test_attention_of_a_model() -> None:
    """It has learned to translate as `good` does."""
    files = ["--source", "src", "--reference", "ref", "--training-text", "train"]
    text, data = written("--model", "m", *files, "--beam-size", "1", "--device", "cpu")
    (system,) = data["systems"]
    assert unpacked(system["attention"][0], 4) == WEIGHTS
    assert system["attention"][2] is None  # a blank source
    assert data["rarest"] == [["rennt", 1], ["Hund", 1], ["nichts", 0]]
    assert re.search(r"<small>\d+\.\d\d ± \d+\.\d\d</small>", text)  # an interval, though there is no test
    assert "2 translations of m are shown without attention" in text


@pytest.mark.usefixtures("files")
def test_training_text_that_can_be_read_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    """As from `<(zcat train.gz)`: the page is that of the file."""
    arguments = ["--hypotheses", "good", "--reference", "ref", "--resamples", "40", "--training-text"]
    from_file, _ = written(*arguments, "train")
    assert written(*arguments, piped(Path("train").read_bytes()))[0] == from_file
    broken = piped(b"der\n\xff\n")
    assert main([*arguments, broken, "--report", "other.html"]) == 2
    assert f"nmt-eval: error: {broken}, line 2: not valid UTF-8" in capsys.readouterr().err
    assert not Path("other.html").exists()


@pytest.mark.usefixtures("files")
def test_systems_share_the_room_for_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equally, for it is of use where two can be compared; and what has no room is not computed."""
    arguments = ["--model", "a=m", "--model", "b=m", "--source", "src", "--reference", "ref", "--beam-size", "1"]
    arguments += ["--device", "cpu", "--resamples", "40"]
    _, data = written(*arguments)
    whole = [system["attention"] for system in data["systems"]]
    room = max(len(weights[0]) for weights in whole)
    monkeypatch.setattr(report_page, "MOST_WEIGHTS", 2 * room)
    text, data = written(*arguments)
    assert [system["attention"] for system in data["systems"]] == [[weights[0], None, None] for weights in whole]
    assert "2 translations of a are shown without attention" in text


@pytest.mark.usefixtures("files")
def test_the_step_whose_attention_is_shown() -> None:
    """A word's of the next step: that in which the word after it is written, or the end of the sentence."""
    texts = ["--source", "src", "--reference", "ref", "--device", "cpu"]
    _, data = written("--model", "m", *texts, "--alignment-step", "next")
    ((first, *_),) = (system["attention"] for system in data["systems"])
    assert unpacked(first, 4)[:2] == WEIGHTS[1:]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--training-text train", "--training-text has an effect only with --report"),
        ("--report -", "--report -: standard output has the scores; give a file"),
        ("--report train --training-text train", "--report train: would overwrite --training-text train"),
    ],
)
def test_mistakes(files: Path, capsys: pytest.CaptureFixture[str], arguments: str, expected: str) -> None:
    assert main(["--hypotheses", "good", "--reference", "ref", *arguments.split()]) == 2
    assert expected in capsys.readouterr().err
    assert not (files / "page.html").exists()


@pytest.mark.usefixtures("files")
def test_options_that_concern_the_page_alone() -> None:
    """It has intervals, and groups with BLEU and chrF2, though neither is in the table."""
    few = ["--resamples", "40", "--tokenize", "char", "--lowercase", "--metrics", "ter"]
    assert main(["--hypotheses", "good", "--reference", "ref", "--report", "page.html", *few]) == 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert "<small>0.00 ± 0.00</small>" in text
    assert "BLEU" in text
