"""nmt-score from its arguments to its output, exit code and messages, with a trained tiny model."""

import gzip
import json
import math
from pathlib import Path

import pytest

from nmt.cli.score import main
from nmt.decoding.translator import Translator
from tests.cli.conftest import lines, refused
from tests.conftest import write_texts

SOURCES = ["the dog sees the cat .", "", "the man hears the boy .", "", "the bird likes the horse . " * 25]
TARGETS = ["der Hund sieht den Kater .", "", "", "der Mann hört den Jungen .", "der Vogel mag den Hengst . " * 25]
WRONG = ["den Hund sehen Kater Kater .", "", "mag . . den den", TARGETS[3], "den den Vogel . " * 9]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(here: Path) -> Path:
    """The working folder, with the files src, tgt and wrong."""
    return write_texts(here, {"src": SOURCES, "tgt": TARGETS, "wrong": WRONG})


def written(model: Path, *options: str, source: str = "src", target: str = "tgt") -> list[str]:
    arguments = ["--model", str(model), "--source", source, "--target", target, "--output", "scores", *options]
    assert main([*arguments, "--device", "cpu"]) == 0
    return lines("scores")


def scores(model: Path, *options: str, **files: str) -> list[float]:
    return [float(line) for line in written(model, *options, **files)]


@pytest.mark.usefixtures("files")
def test_a_score_a_line_and_the_perplexity(trained: Path, capsys: Capture) -> None:
    log_probabilities = scores(trained, "--json", "all.json")
    assert len(log_probabilities) == 5
    assert log_probabilities[1] == 0.0
    assert all(value < 0 for index, value in enumerate(log_probabilities) if index != 1)
    assert log_probabilities[4] < 10 * log_probabilities[0]  # 25 sentences: nothing is cut
    target = Translator.load(trained).vocabularies.target
    tokens = [len(target.encode(line)) + 1 for line in TARGETS]
    tokens[1] = 0
    numbers = json.loads(Path("all.json").read_text(encoding="utf-8"))
    assert (numbers["sentences"], numbers["tokens"]) == (5, sum(tokens))
    assert numbers["log_probability"] == pytest.approx(sum(log_probabilities), abs=1e-3)
    assert numbers["perplexity"] == pytest.approx(math.exp(-sum(log_probabilities) / sum(tokens)), rel=1e-5)
    assert capsys.readouterr().err == ""

    assert scores(trained) == log_probabilities
    assert capsys.readouterr().err == (
        f"nmt-score: perplexity {numbers['perplexity']:.4f}, 5 sentences, {sum(tokens)} tokens\n"
    )
    normalized = scores(trained, "--normalize")
    assert normalized == pytest.approx(
        [value / max(count, 1) for value, count in zip(log_probabilities, tokens, strict=True)], abs=1e-4
    )


def test_gzip_standard_output_and_json_there(trained: Path, files: Path, capsys: Capture) -> None:
    plain = scores(trained)
    capsys.readouterr()
    (files / "src.gz").write_bytes(gzip.compress((files / "src").read_bytes()))
    arguments = ["--model", str(trained), "--source", "src.gz", "--target", "tgt", "--device", "cpu"]
    assert main(arguments) == 0
    assert [float(line) for line in capsys.readouterr().out.splitlines()] == plain
    assert scores(trained, "--json", "-", source="src.gz") == plain
    assert json.loads(capsys.readouterr().out)["sentences"] == 5


def test_blank_files_have_no_perplexity(trained: Path, files: Path, capsys: Capture) -> None:
    for name in ("src", "tgt"):
        (files / name).write_text("\n \n", encoding="utf-8")
    assert scores(trained) == [0.0, 0.0]
    assert capsys.readouterr().err == "nmt-score: no perplexity, 2 sentences, 0 tokens\n"
    assert scores(trained, "--json", "all.json") == [0.0, 0.0]
    assert json.loads((files / "all.json").read_text(encoding="utf-8"))["perplexity"] is None


def test_a_source_in_another_form_than_the_training_text(files: Path, trained: Path, capsys: Capture) -> None:
    (files / "src").write_text("THE DOG SEES THE CAT .\n" * 20, encoding="utf-8")
    (files / "tgt").write_text("der Hund sieht den Kater .\n" * 20, encoding="utf-8")
    scores(trained)
    told = [line for line in capsys.readouterr().err.splitlines() if "in capitals only" in line]
    beginning = (
        "nmt-score: warning: src: 20 of 20 lines (100.0%) are in capitals only (the first is line 1), but 0.0% of "
    )
    assert told == [f"{beginning}the model's training text; give both in the usual case"]


@pytest.mark.usefixtures("files")
def test_every_mistake_is_reported_at_once(capsys: Capture) -> None:
    messages = refused(capsys, main)
    assert messages[0] == "nmt-score: 3 problems:"
    assert [message.split()[1] for message in messages[1:]] == ["--model", "--source", "--target"]
    messages = refused(
        capsys,
        main,
        *("--model", "nowhere", "--source", "missing", "--target", "tgt", "--output", "tgt", "--json", "no/folder"),
        *("--end-links", "first"),
    )
    text = "\n".join(messages)
    assert "5 problems" in messages[0]
    assert "nowhere: no such model file or run folder" in text
    assert "missing: no such file" in text
    assert "--output tgt: would overwrite --target" in text
    assert "there is no folder no" in text
    assert "--end-links is 'first'; allowed: last, none, best" in text


# ----------------------------------------------------------------------------------------------- right and wrong ones


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("normalize", [(), ("--normalize",)])
def test_two_scores_a_line_and_how_often_the_first_is_higher(
    trained: Path, normalize: tuple[str, ...], capsys: Capture
) -> None:
    """As in two runs, one for each text; equal translations are ties."""
    right, wrong = (scores(trained, *normalize, target=target) for target in ("tgt", "wrong"))
    capsys.readouterr()
    contrast = ("--contrast", "wrong", *normalize)
    both = [line.split("\t") for line in written(trained, *contrast)]
    assert [float(first) for first, _ in both] == pytest.approx(right, abs=2e-4)
    assert [float(second) for _, second in both] == pytest.approx(wrong, abs=2e-4)
    better = sum(one > other for one, other in zip(right, wrong, strict=True))
    assert 0 < better <= 3
    line = capsys.readouterr().err
    assert line.startswith(f"nmt-score: accuracy {better / 5:.4f} (95% interval: ")
    assert line.endswith("), 5 pairs, 2 ties\n")
    written(trained, *contrast, "--json", "numbers")
    numbers = json.loads(Path("numbers").read_text(encoding="utf-8"))
    assert (numbers["pairs"], numbers["right"], numbers["ties"]) == (5, better, 2)
    least, most = numbers["interval"]
    assert numbers["accuracy"] == better / 5
    assert 0 <= least < better / 5 < most <= 1


@pytest.mark.usefixtures("files")
def test_what_does_not_go_with_a_contrast(trained: Path, capsys: Capture) -> None:
    contrast = ("--contrast", "wrong", "--alignments", "links", "--output", "wrong")
    _, *messages = refused(capsys, main, "--model", trained, "--source", "src", "--target", "tgt", *contrast)
    assert [message.partition(";")[0] for message in messages] == [
        "  - alignments do not go with --contrast",
        "  - --output wrong: would overwrite --contrast wrong",
    ]
