"""--split-sentences of nmt-translate and nmt-eval: in one piece and in chunks, and what is said about mistakes."""

import sys
from pathlib import Path

import pytest

from nmt.cli.evaluate import main as evaluate
from nmt.cli.translate import main
from nmt.models.model_file import load_model, save_model
from tests.cli.conftest import refused, translated
from tests.conftest import write_lines

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

SENTENCES = [
    "A dog runs across the field .",
    "Two men are reading .",
    "The boy is playing with a ball .",
    "A green dog .",
]
LINES = [[0, 1], [2], [], [3, 2, 1, 0], [1, 1, 1], [0], [2, 3]]  # the sentences of each line


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lines = ("  ".join(SENTENCES[one] for one in line) for line in LINES)
    return write_lines(tmp_path / "source", lines)


@pytest.fixture
def expected(model: Path, source: Path) -> list[str]:
    """The translations of the sentences alone, joined as the lines are."""
    sentences = translated(model, write_lines(source.with_name("sentences"), SENTENCES))
    return ["  ".join(sentences[one] for one in line) for line in LINES]


@pytest.mark.parametrize("options", [("en",), ("--chunk-lines", 2)])
def test_lines_are_translated_sentence_by_sentence(model, source, expected, options) -> None:
    assert translated(model, source, "--split-sentences", *options) == expected


def test_lines_of_a_pipe(model, source, expected, monkeypatch, capfdbinary) -> None:
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["--model", str(model), "--flush", "--split-sentences"]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n")[:-1] == expected


def test_a_name_that_is_no_language(model, source, capsys) -> None:
    arguments = ("--input", source, "--output", source.with_name("output"), "--split-sentences")
    said = "\n".join(refused(capsys, main, "--model", model, *arguments, "English", "--diversity", 1))
    assert "'English' is no code of a language; name" in said
    assert "--diversity" in said, "with the other mistakes"
    file = load_model(model)
    data = file.config.data.model_copy(update={"source_language": "Martian"})
    other = source.with_name("other.safetensors")
    save_model(other, file._replace(config=file.config.model_copy(update={"data": data})))
    for options in ((), ("--chunk-lines", 2)):
        (message,) = refused(capsys, main, "--model", other, *arguments, *options)
        assert "the model's data.source_language: 'Martian' is no code" in message
        assert not list(source.parent.glob("*.chunks-*"))
    assert len(translated(other, source, "--split-sentences", "en")) == len(LINES)


def test_a_code_of_three_letters_with_a_region_is_one_too(model, source, expected) -> None:
    assert translated(model, source, "--split-sentences", "deu-DE") == expected


def test_a_number_is_no_language(model, source, capsys) -> None:
    for number in ("12", "1e3"):
        said = refused(capsys, main, "--model", model, "--input", source, "--split-sentences", number)
        assert f"{number!r} is no code of a language" in "\n".join(said)


def test_what_is_evaluated_is_cut_alike(model, source, expected, capsys) -> None:
    output = source.with_name("evaluated")
    arguments = ["--model", model, "--source", source, "--reference", source, "--output", output]
    assert evaluate([*map(str, arguments)]) == 0
    assert "warning: 4 of 7 lines have several sentences" in (said := capsys.readouterr().err)
    assert "; --split-sentences translates" in said
    assert evaluate([*map(str, arguments), "--split-sentences"]) == 0
    assert output.read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert evaluate(["--hypotheses", str(source), "--reference", str(source), "--split-sentences", "en"]) == 2
    assert "--split-sentences has an effect only with --model" in capsys.readouterr().err


def test_other_encodings_are_warned_of_as_well(model, source, capsys) -> None:
    translated(model, source, "--encoding", "cp1250")
    assert "warning: 4 of 7 lines have several sentences" in capsys.readouterr().err
