"""nmt-translate --glossary and --forbid: in one piece, on a pipe, in chunks; and what is said."""

from pathlib import Path

import pytest

from nmt.cli.translate import main
from tests.cli.conftest import refused

LINES = "a dog runs .\ntwo men are reading\n\na boy and a Dog\n"
USUAL = ("--max-length-ratio", "3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").write_text(LINES)
    (tmp_path / "terms").write_text("dog\tgreen field\nboy\tball\n")
    return tmp_path


def translated(model: Path, folder: Path, *options: str) -> str:
    output = folder / "out"
    files = ["--input", str(folder / "in"), "--output", str(output)]
    assert main(["--model", str(model), *files, *USUAL, *options]) == 0
    return output.read_text()


def test_in_one_piece_in_chunks_and_on_a_pipe(model: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    glossary = ("--glossary", str(folder / "terms"))
    expected = translated(model, folder, *glossary)
    found = [[term in line for term in ("green field", "ball")] for line in expected.splitlines()]
    assert [found[0][0], found[3]] == [True, [True, True]]
    assert translated(model, folder, *glossary, "--chunk-lines", "1") == expected
    with_case = translated(model, folder, *glossary, "--glossary-case").split("\n")
    assert with_case[:3] == expected.split("\n")[:3]
    assert with_case != expected.split("\n")
    assert main(["--model", str(model), "--input", str(folder / "in"), *USUAL, *glossary, "--flush"]) == 0
    assert capfd.readouterr().out == expected


def test_a_header_with_the_languages_of_the_model(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here from English to English; the columns may stand the other way round, and that is said."""
    expected = translated(model, folder, "--glossary", str(folder / "terms"))
    (folder / "terms.csv").write_text("en-GB,en\ngreen field,dog\nball,boy\n")
    capsys.readouterr()
    assert translated(model, folder, "--glossary", str(folder / "terms.csv")) == expected
    what = "line 1: a header; terms and their translations are in the columns 'en' and 'en-GB'"
    assert f"nmt-translate: warning: {folder / 'terms.csv'}, {what}\n" in capsys.readouterr().err
    (folder / "damaged").write_bytes(model.read_bytes()[:-9])
    assert main(["--model", str(folder / "damaged"), "--glossary", str(folder / "terms")]) == 2
    assert "damaged" in capsys.readouterr().err


def test_what_is_forbidden_in_one_piece_and_in_chunks(model: Path, folder: Path) -> None:
    free = translated(model, folder)
    words = sorted({word for word in free.split() if word.isalpha() and word.islower()})
    (folder / "words").write_text("".join(f"{word}\n\n" for word in words))
    forbid = ("--forbid", str(folder / "words"))
    bound = translated(model, folder, *forbid)
    assert words
    assert not {word.lower() for word in bound.split()} & set(words)
    assert len(bound.splitlines()) == len(free.splitlines())
    assert translated(model, folder, *forbid, "--chunk-lines", "1") == bound


def test_mistakes(model: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def complaints(*options: str) -> list[str]:
        lines = refused(capsys, main, "--model", model, "--input", folder / "in", *options)
        return [line.partition("error: ")[2] for line in lines]

    terms, words = folder / "terms", folder / "words"
    words.write_text("green field\n")
    glossary, forbid = ("--glossary", str(terms)), ("--forbid", str(words))
    assert complaints("--glossary-case") == ["--glossary-case has an effect only with --glossary"]
    assert complaints(*forbid, *glossary) == [
        "'green field', required by the glossary, has the forbidden 'green field'; leave one out"
    ]
    terms.write_text("dog\n")
    assert complaints(*glossary) == [f"{terms}, line 1: 1 column; expected a term, a tab, and its translation"]
    assert complaints("--forbid", f"{words}x") == [f"--forbid: {words}x: no such file; nearest: {words}"]
    words.write_text("\n \n")
    assert complaints(*forbid) == [f"--forbid {words}: the file is empty"]
