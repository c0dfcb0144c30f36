"""nmt-translate and nmt-eval with --replace-unknown: a model of words, trained for a moment, that knows few of them."""

from pathlib import Path

import pytest

from nmt.cli import evaluate, translate
from tests.cli.conftest import Train, refused
from tests.conftest import write_lines

Capture = pytest.CaptureFixture[str]
LINES = ["the dog sees Zoë .", "the Xylophon hears the QUUX .", "", "Anna likes the cat ."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tiny: Path, train: Train) -> Path:
    """12 pieces: the special symbols, articles, the full stop and the most frequent words; all others are unknown."""
    output = tmp_path_factory.mktemp("runs") / "words"
    words = "subwords={type: word, size: 12, lowercase: true}"
    assert train(tiny, output, words, "training.max_updates=30", "training.gradient_clip_norm=1.0") == 0
    return output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "source", LINES)


def translated(model: Path, source: Path, *options: str | Path) -> list[str]:
    output = source.with_name("output")
    arguments = ["--model", model, "--input", source, "--output", output, "--device", "cpu", *options]
    assert translate.main([str(argument) for argument in arguments]) == 0
    return output.read_text(encoding="utf-8").split("\n")[:-1]


def test_unknown_words_come_from_the_source_line(model: Path, source: Path) -> None:
    plain, copied = translated(model, source), translated(model, source, "--replace-unknown")
    assert sum("⁇" in line for line in plain) >= 2
    for line, before, after in zip(LINES, plain, copied, strict=True):
        assert "⁇" not in after
        assert (before == after) == ("⁇" not in before)
        kept = [word for word in before.split() if word != "⁇"]
        brought = [word for word in after.split() if word not in kept]
        assert set(brought) <= set(line.split())  # with their capitals, though the model is lowercased


def test_scoring_a_model_replaces_the_same(model: Path, source: Path, tmp_path: Path, capsys: Capture) -> None:
    expected = translated(model, source, "--replace-unknown")
    later = translated(model, source, "--replace-unknown", "--alignment-step", "next")
    arguments = ["--model", model, "--source", source, "--reference", source, "--output", tmp_path / "saved"]
    arguments = [*arguments, "--replace-unknown"]
    assert evaluate.main([str(argument) for argument in [*arguments, "--alignment-step", "next"]]) == 0
    assert (tmp_path / "saved").read_text(encoding="utf-8").split("\n")[:-1] == later
    assert evaluate.main([str(argument) for argument in arguments]) == 0
    assert (tmp_path / "saved").read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert "4 sentences" in capsys.readouterr().out


def test_mistakes(model: Path, source: Path, tmp_path: Path, capsys: Capture) -> None:
    dictionary = tmp_path / "words"
    dictionary.write_text("Hund\tdog\nKatze\nMaus\tmouse\t2\n", encoding="utf-8")
    arguments = ("--model", model, "--input", source)
    told = refused(capsys, translate.main, *arguments, "--replace-unknown", "--dictionary", dictionary)
    assert told[:2] == [
        "nmt-translate: 2 problems:",
        f"  - {dictionary}, line 2: 'Katze'; expected a word, a tab, and its translation",
    ]
    assert told[2].startswith(f"  - {dictionary}, line 3: 'Maus\\tmouse\\t2'; expected a word, a tab")
    dictionary.write_text("Hund\tdog\n", encoding="utf-8")
    (message,) = refused(capsys, translate.main, *arguments, "--dictionary", dictionary)
    assert message == "nmt-translate: error: --dictionary has an effect only with --replace-unknown"
