"""--model given several times, of nmt-translate, nmt-eval and nmt-score."""

from pathlib import Path

import pytest

from nmt.cli import evaluate, score, translate
from nmt.decoding.translator import Translator
from tests.cli.conftest import lines
from tests.conftest import write_lines
from tests.decoding.conftest import TEXT
from tests.random_model import save_random_model

BOTH = ["--model", "one", "--model", "two", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _files(here: Path) -> None:
    """A working folder with two models that fit together and a text."""
    save_random_model(here / "one")
    save_random_model(here / "two", seed=2, decoder="bahdanau")
    write_lines(here / "text", TEXT)


def test_the_mean_is_an_option_of_all_three() -> None:
    mean = ["--ensemble", "probabilities"]
    assert (
        translate.main([*BOTH, *mean, "--input", "text", "--output", "out", "--scores", "--length-penalty=none"]) == 0
    )
    expected = [
        best
        for best, *_ in Translator.load(["one", "two"], ensemble="probabilities").translate(TEXT, length_penalty="none")
    ]
    assert lines("out") == [f"{best.text}\t{best.score:.4f}" for best in expected]
    arguments = ["--source", "text", "--reference", "text", "--output", "saved", "--length-penalty=none"]
    assert evaluate.main([*BOTH, *mean, *arguments]) == 0
    assert lines("saved") == [best.text for best in expected]
    scores = {}
    for name, more in {"usual": [], "default": ["--ensemble", "log-probabilities"], "mean": mean}.items():
        assert score.main([*BOTH, *more, "--source", "text", "--target", "text", "--output", name]) == 0
        scores[name] = [float(line) for line in lines(name)]
    assert scores["usual"] == scores["default"]
    assert all(mean > usual for mean, usual in zip(scores["mean"], scores["usual"], strict=True))


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (translate.main, ["--input", "text"]),
        (evaluate.main, ["--source", "text", "--reference", "text"]),
        (score.main, ["--source", "text", "--target", "text"]),
    ],
)
def test_mistakes(program, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name = {translate.main: "translate", evaluate.main: "eval", score.main: "score"}[program]
    assert program([*BOTH, *arguments, "--model", "nowhere", "--output", "two"]) == 2
    messages = capsys.readouterr().err
    assert "nowhere: no such model file or run folder" in messages
    assert "--output two: would overwrite --model number 2 two; give another name" in messages
    assert program([*BOTH[:2], *arguments, "--ensemble", "logits"]) == 2
    said = "--ensemble has an effect only with several models: give --model several times"
    assert capsys.readouterr().err == f"nmt-{name}: error: {said}\n"
