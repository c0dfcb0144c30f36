"""nmt-translate and nmt-eval with --replace-unknown: a model of words, trained for a moment, that knows few of them."""

from pathlib import Path

import pytest

from nmt.cli import evaluate, translate
from tests.cli.conftest import Train, lines, refused, translated
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


def test_both_commands_replace_the_same(model: Path, source: Path, tmp_path: Path, capsys: Capture) -> None:
    expected = translated(model, source, "--replace-unknown")
    assert sum("⁇" in line for line in translated(model, source)) >= 2
    assert not any("⁇" in line for line in expected)
    later = translated(model, source, "--replace-unknown", "--alignment-step", "next")
    arguments = ["--model", model, "--source", source, "--reference", source, "--output", tmp_path / "saved"]
    arguments = [*arguments, "--replace-unknown"]
    assert evaluate.main([str(argument) for argument in [*arguments, "--alignment-step", "next"]]) == 0
    assert lines(str(tmp_path / "saved")) == later
    assert evaluate.main([str(argument) for argument in arguments]) == 0
    assert lines(str(tmp_path / "saved")) == expected
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
