"""nmt-translate --forbid: in one piece and in chunks; and what is said."""

from pathlib import Path

import pytest

from nmt.cli.translate import main
from tests.cli.test_glossary import folder, model, translated

__all__ = ["folder", "model"]  # fixtures


def test_in_one_piece_and_in_chunks(model: Path, folder: Path) -> None:
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
        assert main(["--model", str(model), "--input", str(folder / "in"), *options]) == 2
        lines = capsys.readouterr().err.splitlines()
        return [line.partition("error: ")[2] or line.removeprefix("  - ") for line in lines if "problems:" not in line]

    words = folder / "words"
    words.write_text("green field\n")
    forbid = ("--forbid", str(words))
    assert complaints(*forbid, "--glossary", str(folder / "terms")) == [
        "'green field', required by the glossary, has the forbidden 'green field'; leave one out"
    ]
    assert complaints("--forbid", f"{words}x") == [f"--forbid: {words}x: no such file; nearest: {words}"]
    words.write_text("\n \n")
    assert complaints(*forbid) == [f"--forbid {words}: the file is empty"]
