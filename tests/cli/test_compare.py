"""nmt-eval with several systems, references, or runs: its table, JSON, exit code, and messages."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.evaluate import main
from nmt.config.schema import DecodingConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.translator import Translator
from nmt.evaluation.comparison import compare
from tests.cli.conftest import refused
from tests.cli.test_evaluate import DictionaryTranslator
from tests.conftest import write_texts
from tests.decoding.conftest import network

SOURCE = ["Ja, natürlich.", "Die Katze saß auf der Matte.", "Der Mann geht nach Hause."]
SYSTEMS = {
    "old": ["Yes, natural.", "A cat sits on a mat.", "The man go to house."],
    "new": ["Yes, of course.", "The cat sat on a mat.", "The man goes home."],
    "odd": ["No.", "Mats sit.", "Home."],
}
REFERENCES = {
    "ref": ["Yes, of course.", "The cat sat on the mat.", "The man goes home."],
    "ref2": ["Yes, certainly.", "The cat was sitting on the mat.", "The man is going home."],
}
FEW = ["--resamples", "43"]


@pytest.fixture
def files(here: Path) -> Path:
    """The working folder, with a file for each text, and m1 and m2, which stand for models."""
    for name in ("m1", "m2", "m3", "m1.safetensors", "m2.safetensors"):
        (here / name).write_bytes(b"\x09\0\0\0\0\0\0\0{")
    return write_texts(here, {**SYSTEMS, **REFERENCES, "src": SOURCE})


def numbers(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """What the command writes as JSON."""
    assert main([*arguments, "--json", "-"]) == code
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


# --------------------------------------------------------------------------------------------------- files of systems


@pytest.mark.usefixtures("files")
def test_systems_are_compared_with_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    result = numbers(capsys, "--hypotheses", "old", "N=new", "--hypotheses", "odd", "--reference", "ref", "ref2", *FEW)

    expected = compare(
        {"old": SYSTEMS["old"], "N": SYSTEMS["new"], "odd": SYSTEMS["odd"]},
        [*REFERENCES.values()],
        tested=True,
        resamples=43,
    )
    assert [system["name"] for system in result["systems"]] == ["old", "N", "odd"]
    for system, theirs in zip(result["systems"], expected.systems, strict=True):
        assert {name: score["score"] for name, score in system["scores"].items()} == {
            name: pytest.approx(score.score, abs=1e-6) for name, score in theirs.scores.items()
        }
    test, other = result["significance"], expected.significance
    assert other is not None
    assert (test["baseline"], test["samples"], test["signatures"]) == ("old", 43, other.signatures)
    for name, p_values in other.p_values.items():
        assert test["p_values"][name] == {metric: round(p_value or 0, 6) for metric, p_value in p_values.items()}
    assert result["signatures"]["bleu"].startswith("nrefs:2|")
    assert (result["references"], result["sentences"], result["tokenize"]) == (2, 3, "13a")


def test_names_are_the_files_or_the_paths_where_those_are_alike(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a", "b"):
        (files / folder).mkdir()
        (files / folder / "test.de").write_bytes((files / "new").read_bytes())
    (files / "x=y").write_bytes((files / "odd").read_bytes())
    few = ["--metrics", "ter", *FEW]
    result = numbers(capsys, "--hypotheses", "a/test.de", "b/test.de", "./old", "x=y", "--reference", "ref", *few)
    assert [system["name"] for system in result["systems"]] == ["a/test.de", "b/test.de", "old", "x=y"]


# --------------------------------------------------------------------------------------------------------------- runs


@pytest.mark.usefixtures("files")
def test_runs_have_a_mean_and_a_standard_deviation(capsys: pytest.CaptureFixture[str]) -> None:
    result = numbers(
        capsys, "--runs", "mine=old", "new", "--runs", "odd", "ref", "--reference", "ref", "--metrics=bleu"
    )
    mine, other = result["runs"]
    assert (mine["name"], mine["members"], other["name"], other["members"]) == (
        "mine",
        ["old", "new"],
        "runs 2",
        ["odd", "ref"],
    )
    old, new = (system["scores"]["bleu"]["score"] for system in result["systems"][:2])
    assert mine["mean"]["bleu"] == pytest.approx((old + new) / 2, abs=1e-6)
    assert mine["standard_deviation"]["bleu"] == pytest.approx(abs(old - new) / 2**0.5, abs=1e-6)
    assert "significance" not in result
    assert main(["--runs", "old", "new", "--reference", "ref"]) == 0
    assert "runs, mean of 2" in capsys.readouterr().out
    assert main(["--runs", "old", "same=old", "--reference", "ref", "--metrics=bleu"]) == 2  # a name only for the first
    Path("twin").write_bytes(Path("old").read_bytes())
    assert main(["--runs", "old", "twin", "--reference", "ref", "--metrics=bleu"]) == 0
    assert "old and twin are identical, as two seeds hardly ever are" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------- models


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str | None]]:
    """The models that were loaded together, with the mean of each ensemble; they translate SOURCE as systems do."""
    calls: list[tuple[list[str], str | None]] = []

    def load(paths: list[Path], *, ensemble: str | None, **_: object) -> DictionaryTranslator:
        calls.append(([path.name for path in paths], ensemble))
        return DictionaryTranslator(SYSTEMS[{"m1": "old", "m2": "new", "m3": "odd"}[paths[0].stem]], SOURCE)

    monkeypatch.setattr(Translator, "load", load)
    return calls


TRANSLATED = ["--source", "src", "--reference", "ref"]


@pytest.mark.usefixtures("files")
def test_models_with_names_are_compared(
    loaded: list[tuple[list[str], str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--metrics", "bleu", "--device", "cpu", *FEW]
    models = ["--model", "a=m1", "--model", "b=m2", "--model", "b=m3", "--ensemble", "logits"]
    result = numbers(capsys, *models, *TRANSLATED, *few)
    assert loaded == [(["m1"], None), (["m2", "m3"], "logits")]
    files = numbers(capsys, "--hypotheses", "a=old", "b=new", "--reference", "ref", *few[:2], *FEW)
    assert result == files


@pytest.mark.usefixtures("files")
def test_what_a_model_cannot_do_is_noticed_before_another_translates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subwords = Subwords.train(SOURCE, settings=SubwordsConfig(size=40))
    differences: dict[str, dict[str, Any]] = {
        "m1": {},
        "m2": {"score": "none"},
        "m3": {"decoding": DecodingConfig(suppress_unknown=True)},
    }

    def load(paths: list[Path], **_: object) -> Translator:
        given = differences[paths[0].name]
        model = network(source_size=40, target_size=40, score=given.get("score", "additive"))
        return Translator([model], Vocabularies(subwords, subwords), decoding=given.get("decoding"))

    monkeypatch.setattr(Translator, "load", load)
    monkeypatch.setattr(Translator, "translate", lambda *_: pytest.fail("a model translated"))
    models = ["--model", "good=m1", "--model", "plain=m2", "--model", "sure=m3"]
    said = refused(
        capsys, main, *models, *TRANSLATED, "--replace-unknown", "--coverage-penalty", "0.2", "--device", "cpu"
    )
    begins = ["plain: --coverage-penalty needs attention", "plain: --replace-unknown", "sure: "]
    assert all(line.startswith(f"  - {begin}") for line, begin in zip(said[1:], begins, strict=True))


# ----------------------------------------------------------------------------------------------------------- mistakes


def test_all_line_counts_are_shown_at_once(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "odd").write_text("one\n", encoding="utf-8")
    (files / "ref2").write_text("one\n" * 7, encoding="utf-8")
    (said,) = refused(capsys, main, "--hypotheses", "old", "odd", "--reference", "ref", "ref2")
    assert said == (
        "nmt-eval: error: --hypotheses old has 3 lines, --hypotheses odd has 1 line, --reference ref has 3 lines and "
        "--reference ref2 has 7 lines: line i of all of them must be of the same sentence"
    )


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("--hypotheses old ./old --reference ref", ["2 systems are called old; give them different names: NAME=PATH"]),
        ("--hypotheses a=b/c --reference ref", ["--hypotheses: b/c: no such file"]),
        (
            "--hypotheses old --runs old new --reference ref",
            ["--hypotheses and --runs exclude each other", "2 systems"],
        ),
        ("--runs old --reference ref", ["--runs old: a mean and a standard deviation need two runs"]),
        ("--runs m1.safetensors m2.safetensors --reference ref", ["--runs needs --source FILE"]),
        (
            "--hypotheses old new --reference ref --resamples 39",
            ["--resamples 39: allowed: a whole number, at least 40"],
        ),
        ("--hypotheses old --reference ref --resamples 50", ["--resamples has an effect only with --intervals"]),
        ("--runs old new --reference ref --resamples 50", ["--resamples has an effect only with --intervals"]),
        (
            "--model a=m1 --model m2 --source src --reference ref",
            ["--model: give all models a name, or none"],
        ),
        (
            "--model a=m1 --model b=m2 --source src --reference ref --output o",
            ["--output has an effect only with one system"],
        ),
        (
            "--model a=m1 --model b=m2 --source src --reference ref --ensemble logits",
            ["--ensemble has an effect only with several"],
        ),
    ],
)
def test_mistakes(arguments: str, messages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, main, *arguments.split())
    assert [message for message in messages if message not in "\n".join(said)] == []
    assert len(said) == len(messages) + (len(messages) > 1)
