"""nmt-score --contrast: the right and the wrong translation of a source, beside two runs of nmt-score."""

import json
from pathlib import Path

import pytest

from nmt.cli.score import main

SOURCES = [
    "the dog sees the cat .",
    "the man hears the boy .",
    "",
    "the dog sees the cat .",
    "the bird likes the horse .",
]
RIGHT = ["der Hund sieht den Kater .", "der Mann hört den Jungen .", "", "der Hund sieht den Kater .", "der Vogel"]
WRONG = [
    "den Hund sehen Kater Kater .",
    "der Mann hört den Jungen .",
    "",
    "der Hund Hund den Kater .",
    "mag . . den den",
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, lines in (("src", SOURCES), ("right", RIGHT), ("wrong", WRONG)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scored(model: Path, *options: str) -> list[str]:
    arguments = ["--model", str(model), "--source", "src", "--output", "scores", "--device", "cpu"]
    assert main([*arguments, *options]) == 0
    return Path("scores").read_text(encoding="utf-8").splitlines()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("normalize", [(), ("--normalize",)])
def test_two_scores_a_line_and_how_often_the_first_is_higher(
    trained: Path, normalize: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    right = [float(line) for line in scored(trained, "--target", "right", *normalize)]
    wrong = [float(line) for line in scored(trained, "--target", "wrong", *normalize)]
    capsys.readouterr()
    both = [line.split("\t") for line in scored(trained, "--target", "right", "--contrast", "wrong", *normalize)]
    assert [float(first) for first, _ in both] == pytest.approx(right, abs=2e-4)
    assert [float(second) for _, second in both] == pytest.approx(wrong, abs=2e-4)
    better = sum(one > other for one, other in zip(right, wrong, strict=True))
    assert 0 < better <= 3
    line = capsys.readouterr().err
    assert line.startswith(f"nmt-score: accuracy {better / 5:.4f} (95% interval: ")
    assert line.endswith("), 5 pairs, 2 ties\n")
    scored(trained, "--target", "right", "--contrast", "wrong", "--json", "numbers", *normalize)
    numbers = json.loads(Path("numbers").read_text(encoding="utf-8"))
    assert (numbers["pairs"], numbers["right"], numbers["ties"]) == (5, better, 2)
    least, most = numbers["interval"]
    assert numbers["accuracy"] == better / 5
    assert 0 <= least < better / 5 < most <= 1


@pytest.mark.usefixtures("files")
def test_mistakes(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contrast = ("--contrast", "wrong", "--alignments", "links", "--output", "wrong")
    assert main(["--model", str(trained), "--source", "src", "--target", "right", *contrast]) == 2
    told = capsys.readouterr().err
    assert "alignments do not go with --contrast" in told
    assert "--output wrong: would overwrite --contrast wrong" in told
