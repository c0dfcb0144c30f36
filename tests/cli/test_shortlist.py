"""nmt-shortlist from its arguments to its file, and the --shortlist of nmt-translate and nmt-eval."""

from pathlib import Path

import pytest

from nmt.cli import evaluate, shortlist, translate
from nmt.cli.shortlist import main
from nmt.decoding.shortlist import load_shortlist
from nmt.decoding.translator import Translator
from tests.cli.conftest import PIECES, refused

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(here: Path, corpus: Path) -> Path:
    """The working folder, with the corpus's files train.en, train.de, valid.en and valid.de."""
    for path in corpus.glob("*.*"):
        (here / path.name).write_bytes(path.read_bytes())
    return here


def made(model: Path, *options: str, output: str = "list") -> Path:
    """The shortlist of the two corpora."""
    arguments = ["--model", str(model), "--source", "train.en", "valid.en", "--target", "train.de", "valid.de"]
    few = ["--translations", "4", "--most-frequent", "2"]
    assert main([*arguments, "--output", output, *few, *options]) == 0
    return Path(output)


@pytest.mark.usefixtures("files")
def test_from_text_to_translations(trained: Path, capsys: Capture) -> None:
    path = made(trained)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "nmt-shortlist: learned from 120 of 120 pairs\n"
    vocabularies = Translator.load(trained).vocabularies
    loaded = load_shortlist(path).checked(vocabularies)
    assert loaded.translations.shape == (PIECES, 5)  # and the piece itself, the vocabulary being joint
    assert loaded.frequent.shape == (2,)

    model = ["--model", str(trained), "--device", "cpu"]
    lines = Path("valid.en").read_text(encoding="utf-8").splitlines()
    for precision in ("float32", "int8"):
        arguments = [*model, "--precision", precision]
        for name, more in (("out", ["--shortlist", "list"]), ("free", [])):
            assert translate.main([*arguments, "--input", "valid.en", "--output", name, "--scores", *more]) == 0
        translator = Translator.load(trained, precision=precision, shortlist="list")
        expected = [f"{best.text}\t{best.score:.4f}" for best, *_ in translator.translate(lines)]
        assert Path("out").read_text(encoding="utf-8").splitlines() == expected
        assert Path("free").read_text(encoding="utf-8").splitlines() != expected
    arguments = [*model, "--source", "valid.en", "--reference", "valid.de", "--shortlist", "list", "--output", "saved"]
    assert evaluate.main(arguments) == 0
    assert Path("saved").read_text(encoding="utf-8").splitlines() == [
        best.text for best, *_ in Translator.load(trained, shortlist="list").translate(lines)
    ]


@pytest.mark.usefixtures("files")
def test_of_many_pairs_some_are_read(trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "MOST_PAIRS", 50)
    with open("valid.de", "a", encoding="utf-8") as target, open("valid.en", "a", encoding="utf-8") as source:
        target.write("\n" * 3)
        source.write("text\n" * 3)
    made(trained)
    assert capsys.readouterr().err == "nmt-shortlist: learned from 40 of 123 pairs\n"


@pytest.mark.usefixtures("files")
def test_mistakes_are_reported_at_once(trained: Path, capsys: Capture) -> None:
    messages = refused(capsys, main)
    assert messages[0] == "nmt-shortlist: 4 problems:"
    assert [message.split()[1] for message in messages[1:]] == ["--model", "--source", "--target", "--output"]
    text = "\n".join(
        refused(
            capsys,
            main,
            *("--model", "nowhere", "--source", "train.en", "missing", "--target", "train.de", "valid.de"),
            *("--output", "train.de"),
        )
    )
    assert "3 problems" in text
    assert "nowhere: no such model file or run folder" in text
    assert "missing: no such file" in text
    assert "--output train.de: would overwrite --target train.de" in text
    arguments = ("--model", str(trained), "--source", "train.en", "--target", "train.de")
    (message,) = refused(capsys, main, *arguments, "valid.de", "--output", "list")
    assert "--source has 1 file and --target 2" in message
    (message,) = refused(capsys, main, *arguments[:-1], "valid.de", "--output", "list")
    assert "train.en has 108 lines, but valid.de has 12" in message
    (message,) = refused(capsys, main, *arguments, "--output", "-")
    assert "--output -: a shortlist is a file" in message
    messages = refused(capsys, main, *arguments, "--output", "list", "--most-frequent", "100", "--translations", "199")
    assert (
        "--translations 199: the model has only 100 target pieces; a shortlist of as many would leave none"
        in messages[1]
    )
    assert "--most-frequent 100: the model has only 100 target pieces" in messages[2]
    assert not Path("list").exists()


@pytest.mark.usefixtures("files")
def test_standard_input_is_no_text_to_learn_from(trained: Path, capsys: Capture) -> None:
    """It is read several times."""
    arguments = ["--model", str(trained), "--source", "-", "--target", "train.de", "--output", "list"]
    assert main(arguments) == 2
    assert "-: standard input is not read here; give files" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_shortlists_that_cannot_be_used(trained: Path, capsys: Capture) -> None:
    """With the other mistakes, and not overwritten; tests/decoding/test_shortlist.py has what files may lack."""
    content = made(trained).read_bytes()
    model = ["--model", str(trained), "--device", "cpu"]
    commands = (
        (translate.main, [*model, "--input", "valid.en"]),
        (evaluate.main, [*model, "--source", "valid.en", "--reference", "valid.de"]),
    )
    for program, options in commands:
        other = ("--shortlist", str(trained / "best.safetensors"), "--output", "out")
        (message,) = refused(capsys, program, *options, *other)
        assert "not a shortlist of this toolkit, but a model" in message
        messages = refused(capsys, program, *options, "--shortlist", "none", "--beam-size", "0")
        assert "--shortlist none: no such file; make one with nmt-shortlist" in "\n".join(messages)
        assert "--beam-size is 0" in "\n".join(messages)
        (message,) = refused(capsys, program, *options, "--shortlist", "list", "--output", "list")
        assert "--output list: would overwrite --shortlist list" in message
    assert Path("list").read_bytes() == content
