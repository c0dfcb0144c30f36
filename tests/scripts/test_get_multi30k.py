"""Fetching Multi30k, on a small folder with its own line counts and checksums; the real one where it is there."""

import gzip
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import get_multi30k as script

TEXTS = {
    "raw/train.en": "A dog .\nTwo cats .\nÄpfel .\n",
    "raw/train.de": "Ein Hund .\nZwei Katzen .\nÄpfel .\n",
    "raw/val.fr": "Un chien .\n",
    "tok/train.lc.norm.tok.en": "a dog .\ntwo cats .\näpfel .\n",
    "tok/val.lc.norm.tok.de": "ein hund .\nzwei katzen .\n",
}


CONTENTS = {
    name: script.Content(text.count("\n"), hashlib.sha256(text.encode()).hexdigest()) for name, text in TEXTS.items()
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """TEXTS as the public repository has them: raw files compressed, tokenized ones plain."""
    place = tmp_path / "source"
    for name, text in TEXTS.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("raw/"):
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_bytes(text.encode())
    return place


def files(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in paths}


PLACED = {name.removeprefix("raw/"): text for name, text in TEXTS.items()}


def test_files_come_decompressed_from_a_folder(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--output", str(tmp_path / "out"), "--from", str(folder)], CONTENTS) == 0
    assert files(tmp_path / "out") == PLACED
    assert "research and education, not for commercial use" in capsys.readouterr().out


def test_addresses_are_those_of_the_public_repository(folder: Path, tmp_path: Path) -> None:
    # A file: address goes the whole way through urllib without a network.
    assert script.main(["--output", str(tmp_path / "out")], CONTENTS, folder.as_uri()) == 0
    assert files(tmp_path / "out") == PLACED


def test_forms_and_languages_are_chosen(folder: Path, tmp_path: Path) -> None:
    arguments = ["--output", str(tmp_path / "out"), "--from", str(folder)]
    assert script.main([*arguments, "--form", "raw", "--languages", "en", "fr"], CONTENTS) == 0
    assert set(files(tmp_path / "out")) == {"train.en", "val.fr"}
    assert script.main([*arguments, "--form", "tok", "--languages", "de"], CONTENTS) == 0
    assert set(files(tmp_path / "out")) == {"train.en", "val.fr", "tok/val.lc.norm.tok.de"}


def test_right_files_are_left_alone_and_wrong_ones_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    arguments = ["--output", str(output), "--from", str(folder)]
    script.main(arguments, CONTENTS)
    (output / "train.de").write_text("Ein Hu")
    (folder / "raw" / "train.en.gz").unlink()  # not needed any more
    capsys.readouterr()
    assert script.main(arguments, CONTENTS) == 0
    out = capsys.readouterr().out
    assert f"{output / 'train.en'}: already there" in out
    assert "replacing a file with other content" in out
    assert files(output) == PLACED


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"A dog .\n", "1 line, 3 expected"),
        (b"A cat .\nTwo cats .\nApfel .\n", "SHA-256"),
        (gzip.compress(TEXTS["raw/train.en"].encode(), mtime=0)[:-9], "damaged gzip file"),
    ],
    ids=["too few lines", "another line", "cut short"],  # not the bytes: every worker must collect the same names
)
def test_wrong_content_is_an_error_that_leaves_nothing(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
    message: str,
) -> None:
    path = folder / "raw" / "train.en.gz"
    path.write_bytes(data)
    assert script.main(["--output", str(tmp_path / "out"), "--from", str(folder)], CONTENTS) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert message in error
    assert files(tmp_path / "out") == {name: text for name, text in PLACED.items() if name != "train.en"}


def test_without_a_network_the_url_and_the_way_out_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = (tmp_path / "nowhere").as_uri()
    assert script.main(["--output", str(tmp_path / "out")], CONTENTS, nowhere) == 2
    (line,) = capsys.readouterr().err.splitlines()  # once, not for every file
    assert f"{nowhere}/raw/train.en.gz: cannot be fetched" in line
    assert "--from FOLDER" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "out", "--from", "nowhere"], "--from nowhere: no such folder"),
        (["--output", "out", "--from", "."], "--from .: has none of the folders raw and tok"),
        (["--output", "file"], "--output file: not a folder"),
        (["--output", "out", "--languages", "en", "es"], "es: unknown; choose one of"),
        (["--output", "out", "--form", "bpe"], "bpe: unknown; choose one of"),
        (["--langauges", "en"], "get_multi30k.py: error: --langauges: unknown; did you mean --languages?"),
    ],
)
def test_mistakes_in_the_options(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(SystemExit) as exit_code:
        script.main(arguments)
    assert exit_code.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "usage" not in said


def test_only_the_standard_library_is_needed(tmp_path: Path) -> None:
    """-S: without the packages that are installed."""
    command = [sys.executable, "-S", "-E", script.__file__, "--help"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("usage: get_multi30k.py ")


def test_without_options_the_files_go_into_the_data_folder_of_the_repository(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).resolve().parents[2]
    assert root / "data" / "multi30k" == script.OUTPUT
    monkeypatch.setattr(script, "OUTPUT", tmp_path / "multi30k")
    monkeypatch.chdir(folder)  # the current folder does not matter
    (target,) = re.findall(
        r"^data:.*\n\t\S+/python scripts/get_multi30k\.py (.*)$", (root / "Makefile").read_text(), re.M
    )
    assert script.main([*target.split(), "--from", str(folder)], CONTENTS) == 0
    assert set(files(tmp_path / "multi30k")) == {name for name in PLACED if not name.endswith(".fr")}


def test_real_files_are_right(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "multi30k"
    assert script.main(["--output", str(tmp_path / "multi30k"), "--from", str(source)]) == 0
    assert len(files(tmp_path / "multi30k")) == 24
