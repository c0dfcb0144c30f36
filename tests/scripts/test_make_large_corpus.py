"""The large corpus: its lines, its files, its bytes, and that its size does not decide what it takes in memory."""

import hashlib
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from scripts import make_large_corpus as large
from tests.conftest import ROOT, write_texts

SCRIPTS = str(ROOT / "scripts")  # the first folder of its path when it is run as a file
FEW = f"import sys; sys.path[0] = {SCRIPTS!r}; import make_large_corpus as it; it.SENTENCES = 50; it.main()"
CAPTIONS = {"en": ["A dog runs.", "Two men, old.", "A hat"], "de": ["Ein Hund rennt.", "Zwei Männer, alt.", "Ein Hut"]}
FILES = ["train.de", "train.en", "valid.de", "valid.en"]


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captions")
    return write_texts(folder, {f"train.{side}": lines for side, lines in CAPTIONS.items()})


@pytest.fixture
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "SENTENCES", 50)


def read(folder: Path, name: str) -> list[str]:
    return (folder / name).read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def test_sides_are_joined_alike() -> None:
    """Words with the number of their sentence: the same numbers in the same order on both sides, two or three."""
    parts = [(f"e{number}", f"d{number}") for number in range(7)]
    pairs = list(islice(large.joined(parts, 3), 2000))
    lengths = []
    for english, german in pairs:
        assert german == english.replace("e", "d")
        lengths.append(len(english.split()))
    assert set(lengths) == {2, 3}
    assert 0.15 < lengths.count(3) / len(lengths) < 0.25
    assert {word for english, _ in pairs for word in english.split()} == {part[0] for part in parts}


def test_sentences_of_the_grammar_read_like_captions() -> None:
    sentences = large.grammar_sentences(300)
    assert len({english for english, _ in sentences}) == 300
    assert all(side.endswith(".") and not side.endswith(" .") for pair in sentences for side in pair)
    assert any(", " in german for _, german in sentences)
    assert not any(" ," in side for pair in sentences for side in pair)


@pytest.mark.usefixtures("few_sentences")
def test_files(captions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    sizes = ["--pairs", "700", "--valid", "13"]
    assert large.main(["--output", str(folder), "--captions", str(captions), *sizes]) == 0
    assert sorted(path.name for path in folder.iterdir()) == FILES
    sides = {name: read(folder, name) for name in FILES}
    assert [len(sides[name]) for name in FILES] == [700, 700, 13, 13]
    assert len(set(zip(sides["train.en"], sides["train.de"], strict=True))) > 600
    both = [pair for pair in zip(sides["train.en"], sides["train.de"], strict=True) if "A hat" in pair[0]]
    assert both
    assert all("Ein Hut" in german for _, german in both)


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes_in_every_process(captions: Path, tmp_path: Path) -> None:
    digests = []
    for hash_seed in ("1", "2"):
        options = ["--pairs", "60", "--valid", "5", "--captions", captions, "--output", tmp_path / hash_seed]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", FEW, *options], check=True, env=environment, cwd=tmp_path)
        content = b"".join((tmp_path / hash_seed / file).read_bytes() for file in FILES)
        digests.append(hashlib.sha256(content).hexdigest())
    assert digests[0] == digests[1]


def test_nothing_is_replaced(captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "valid.de").write_text("precious\n", encoding="utf-8")
    with pytest.raises(SystemExit) as exit_code:
        large.main(["--pairs", "5", "--captions", str(captions), "--output", str(tmp_path)])
    assert exit_code.value.code == 2
    assert f"--output {tmp_path}: has valid.de; give another folder" in capsys.readouterr().err
    assert read(tmp_path, "valid.de") == ["precious"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [({"en": "a\nb\n", "de": "c\n"}, "has 2 lines and train.de has 1"), ({}, "scripts/get_multi30k.py")],
)
def test_captions_that_are_none(
    tmp_path: Path, lines: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, text in lines.items():
        (tmp_path / f"train.{side}").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as exit_code:
        large.main(["--pairs", "5", "--output", str(tmp_path / "output"), "--captions", str(tmp_path)])
    assert exit_code.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "output").exists()
