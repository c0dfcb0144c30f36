"""Alignments of a model whose attention is set by hand, and of files, against gold ones."""

from pathlib import Path

import pytest

from benchmarks import gold_alignments
from benchmarks.gold_alignments import kinds
from tests.conftest import write_texts
from tests.known_model import save_known_model

SOURCE, TARGET = ["the", "small", "old", "cat", "slept"], ["die", "alte", "kleine", "Katze", "schlief"]
LINKS = [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)]


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    save_known_model(here / "there", SOURCE, TARGET, LINKS)
    save_known_model(here / "back", TARGET, SOURCE, [(target, source) for source, target in LINKS])
    texts = {"source": [" ".join(SOURCE)] * 2, "target": [" ".join(TARGET)] * 2, "gold": ["1-1 3-2 2-3 4-4 5p5"] * 2}
    write_texts(here, {**texts, "half.align": ["0-0 2-1 1-2 3-3 4-4", "0-0 1-1 2-2 3-4"]})


def table(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    files = ["--source", "source", "--target", "target", "--gold", "gold", "--first-word", "1"]
    assert gold_alignments.main([*arguments, *files]) == 0
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()[2:]]


def test_the_table_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """In the second line of the file one of four links is right: 1 - (5 + 6) / (9 + 8) with the first line's 4 sure
    links and one possible."""
    rows = table(capsys, "model=there,back", "file=half.align", "--plot", "images/one.png", "--sentence", "1")
    assert [row[0] for row in rows] == ["model", "model, intersection", "model, grow-diag-final-and", "file"]
    for row in rows[:3]:
        assert row[1:4] == ["1.000", "1.000", "0.000"]
    assert rows[0][5] == "–"
    assert rows[3][1:4] == [f"{6 / 9:.3f}", f"{5 / 8:.3f}", f"{1 - 11 / 17:.3f}"]
    assert Path("images/one.png").read_bytes().startswith(b"\x89PNG")


def test_a_difference_in_few_sentences_is_not_certain(capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of two sentences is the first one twice, where both are equally right, in a quarter of all samples."""
    (_, second) = table(capsys, "model=there", "file=half.align")
    assert 0.2 < float(second[5]) < 0.3


def test_kinds_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold_alignments, "FREQUENT", 1)
    assert kinds(["le chat , le chien .", "le"]) == [
        ["frequent words", "other words", "punctuation", "frequent words", "other words", "punctuation"],
        ["frequent words"],
    ]


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("model", "model: expected NAME=PATH"),
        ("short=short.align", "short: 1 lines, but --source has 2"),
        ("half=half.align", "gold, line 1: 5-5, counted from 0, has no such words (see --first-word)"),
        ("half=half.align --first-word 1 --sentence 2", "--sentence 2: --source has 2, counted from 0"),
    ],
)
def test_mistakes(system: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("short.align").write_text("0-0\n", encoding="utf-8")
    files = ["--source", "source", "--target", "target", "--gold", "gold"]
    assert gold_alignments.main([*system.split(), *files]) == 2
    assert message in capsys.readouterr().err
