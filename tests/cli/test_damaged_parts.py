"""Parts of a long translation that are not what was written: said, translated again, never joined, never in the way."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.translate import main
from nmt.decoding.reading import Reader
from nmt.decoding.translator import Translator
from nmt.jobs.parts import Parts
from nmt.jobs.records import JOB, JOINED, digest_of
from tests.random_model import save_random_model, text

LINES, CHUNK, CHUNKS = 11, 3, 4
STOPPED_AT = 2  # the chunk at which the translation was stopped; those before are finished

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("run") / "best.safetensors")


class Begun:
    """A translation with alignments; its results when nothing happens, and a folder of parts when it is stopped."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.source, self.output, self.hard = (folder / name for name in ("source", "out", "hard"))
        self.parts = folder / "out.parts"
        self.source.write_text(text(LINES), encoding="utf-8")

    def run(self, *more: object) -> int:
        arguments = ["--model", self.model, "--input", self.source, "--output", self.output, "--alignments", self.hard]
        return main([str(argument) for argument in (*arguments, "--beam-size", 2, *more)])

    def results(self) -> tuple[bytes, bytes]:
        return self.output.read_bytes(), self.hard.read_bytes()


@pytest.fixture(scope="module")
def stopped(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[bytes, bytes]]:
    """A folder with a translation that was stopped after two chunks, and the results of one that was not."""
    begun = Begun(model, tmp_path_factory.mktemp("stopped"))
    assert begun.run() == 0
    results = begun.results()
    begun.output.unlink()
    begun.hard.unlink()
    before, calls = Reader.segments, iter(range(100))

    def stopping(self: Reader, *arguments: Any) -> Any:
        if next(calls) == STOPPED_AT:
            signal.raise_signal(signal.SIGTERM)
        return before(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "segments", stopping)
        assert begun.run("--chunk-lines", CHUNK) == 143
    return begun.folder, results


@pytest.fixture
def begun(model: Path, stopped: tuple[Path, tuple[bytes, bytes]], tmp_path: Path) -> Begun:
    shutil.copytree(stopped[0], tmp_path, dirs_exist_ok=True)
    return Begun(model, tmp_path)


@pytest.fixture
def expected(stopped: tuple[Path, tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    return stopped[1]


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first lines of the chunks that are translated."""
    firsts: list[int] = []
    before = Translator.translate

    def noted(self: Translator, *arguments: Any, first: int = 0, **keywords: Any) -> Any:
        firsts.append(first)
        return before(self, *arguments, first=first, **keywords)

    monkeypatch.setattr(Translator, "translate", noted)
    return firsts


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def swapped(*names: tuple[str, str]) -> Damage:
    def swap(parts: Path) -> None:
        for left, right in names:
            (parts / left).rename(parts / "third")
            (parts / right).rename(parts / left)
            (parts / "third").rename(parts / right)

    return swap


def record(**values: Any) -> Damage:
    """Replace values in the record of the first part."""

    def replace(parts: Path) -> None:
        path = parts / "000000.done"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}), encoding="utf-8")

    return replace


def written(content: str) -> Damage:
    return lambda parts: (parts / "000000.done").write_text(content, encoding="utf-8")


DAMAGES: dict[str, Damage] = {
    "emptied": lambda parts: (parts / "000000.output").write_bytes(b""),
    "truncated": lambda parts: (parts / "000000.output").write_bytes((parts / "000000.output").read_bytes()[:-9]),
    "a flipped bit": lambda parts: flipped(parts / "000000.output"),
    "a flipped bit in alignments": lambda parts: flipped(parts / "000000.alignments"),
    "no output": lambda parts: (parts / "000000.output").unlink(),
    "no alignments": lambda parts: (parts / "000000.alignments").unlink(),
    "swapped outputs": swapped(("000000.output", "000001.output")),
    "swapped parts": swapped(*((f"000000.{kind}", f"000001.{kind}") for kind in ("output", "alignments", "done"))),
    "an infinite number of lines": lambda parts: written(
        (parts / "000000.done").read_text().replace('"lines": 3', '"lines": 1e400')
    )(parts),
    "true lines": record(lines=True),
    "fewer lines": record(lines=2),
    "lines as text": record(lines="3"),
    "no files": record(files={}),
    "files of a wrong type": record(files={"output": [None, 3], "alignments": 7}),
    "one file": record(files={"output": [1, "a"]}),
    "a chunk of a wrong type": record(chunk=False),
    "another job": record(job="0" * 64),
    "a list": written("[]"),
    "NaN": written("NaN"),
    "nothing": written(""),
    "a number of too many digits": written(f'{{"lines": {"9" * 5000}}}'),
    "nested too deep": written("[" * 200_000),
    "no UTF-8": lambda parts: (parts / "000000.done").write_bytes(b"\xff\xfe{}"),
    "a flipped bit in the record": lambda parts: flipped(parts / "000000.done"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_part_is_told_and_translated_again(
    begun: Begun,
    expected: tuple[bytes, bytes],
    translated: list[int],
    damage: Damage,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(begun.parts)
    assert begun.run("--resume") == 0
    assert begun.results() == expected
    said = capsys.readouterr().err
    assert said.startswith(f"nmt-translate: warning: {begun.parts / '00000'}")
    assert "; lines 1 to 3 are translated again\n" in said
    if "; lines 4 to 6 are translated again\n" in said:  # swapped with the other one
        assert translated == [0, 3, 6, 9]
    else:
        assert translated == [0, 6, 9]
        assert said.endswith("nmt-translate: resuming: 1 of 4 chunks are finished\n")
    assert not begun.parts.exists()


@pytest.mark.parametrize("name", ["output", "alignments", "done"])
def test_a_part_that_is_damaged_before_it_is_joined(
    begun: Begun,
    expected: tuple[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
    translated: list[int],
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    before = Parts.join

    def damaging(self: Parts) -> list[str]:
        if translated == [6, 9]:
            flipped(self.path / f"000002.{name}")
        return before(self)

    monkeypatch.setattr(Parts, "join", damaging)
    assert begun.run("--resume") == 0
    assert begun.results() == expected
    assert translated == [6, 9, 6]
    assert "; lines 7 to 9 are translated again\n" in capsys.readouterr().err


def test_a_disk_that_does_not_keep_what_is_written(
    begun: Begun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Parts.join
    monkeypatch.setattr(Parts, "join", lambda self: (flipped(self.path / "000002.output"), before(self))[1])
    assert begun.run("--resume") == 2
    said = capsys.readouterr().err
    assert "nmt-translate: error: " in said
    assert "parts keep differing from what was written; the disk may be failing; 3 of 4 chunks are kept" in said
    assert not begun.output.exists()


def described(text: str, chunk_lines: object) -> str:
    """A job with a checksum that is right."""
    there = json.loads(text)
    facts = {**there["facts"], "--chunk-lines": chunk_lines}
    return json.dumps({**there, "facts": facts, "digest": digest_of({"lines": LINES, "facts": facts})})


JOBS = {
    "an infinite number of lines": lambda text: text.replace('"lines": 11', '"lines": 1e400'),
    "fewer lines": lambda text: text.replace('"lines": 11', '"lines": 9'),
    "another length of chunks": lambda text: text.replace('"--chunk-lines": "3"', '"--chunk-lines": "2"'),
    "facts of a wrong type": lambda text: json.dumps({**json.loads(text), "facts": [1, 2]}),
    "a chunk length of too many digits": lambda text: text.replace('"3"', f'"{"3" * 5000}"'),
    "lines of too many digits": lambda text: text.replace('"lines": 11', f'"lines": {"1" * 5000}'),
    "nested too deep": lambda text: "[" * 200_000,
    "nothing": lambda text: "",
    "a flipped bit": lambda text: text.replace("content", "cgntent"),
    "no lines in a chunk": lambda text: described(text, "0"),
    "a chunk length that is a list": lambda text: described(text, ["3"]),
    "no checksum": lambda text: text.replace('"digest"', '"digits"'),
}


@pytest.mark.parametrize("change", JOBS.values(), ids=JOBS)
def test_a_damaged_job_keeps_the_parts_that_are_of_it(
    begun: Begun,
    expected: tuple[bytes, bytes],
    translated: list[int],
    change: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = begun.parts / JOB
    damaged = change(path.read_text(encoding="utf-8"))
    assert damaged != path.read_text(encoding="utf-8")
    path.write_text(damaged, encoding="utf-8")
    assert begun.run("--chunk-lines", CHUNK) == 2
    assert f"{begun.parts}: holds finished parts of this output" in capsys.readouterr().err
    assert begun.run("--resume", "--chunk-lines", CHUNK, "--length-penalty", "0.5") == 2  # another translation
    said = capsys.readouterr().err
    assert said.startswith(f"nmt-translate: error: {path}: damaged")
    assert "none of its parts is known to belong to this translation; delete the folder to start over" in said
    assert begun.run("--resume", "--chunk-lines", CHUNK) == 0
    said = capsys.readouterr().err
    assert said.startswith(f"nmt-translate: warning: {path}: damaged")
    assert "; it is written again\n" in said
    assert translated == [6, 9]
    assert begun.results() == expected


def test_a_damaged_job_without_a_finished_part_is_begun_anew(
    begun: Begun, expected: tuple[bytes, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    for record in begun.parts.glob("*.done"):
        record.unlink()
    (begun.parts / JOB).write_text("{}", encoding="utf-8")
    assert begun.run("--chunk-lines", CHUNK) == 0
    said = capsys.readouterr().err
    assert said == f"nmt-translate: warning: {begun.parts / JOB}: damaged; it is written again\n"
    assert begun.results() == expected
    assert not begun.parts.exists()


def test_a_damaged_note_of_what_was_joined(begun: Begun, expected: tuple[bytes, bytes]) -> None:
    (begun.parts / JOB).rename(begun.parts / JOINED)
    (begun.parts / JOINED).write_text('{"lines": 1e400}', encoding="utf-8")
    assert begun.run("--resume") == 0
    assert begun.results() == expected
    assert not begun.parts.exists()


def test_a_strangers_file_is_no_part(begun: Begun, expected: tuple[bytes, bytes]) -> None:
    for name in ("999999.done", "7.done", "٣.done"):
        (begun.parts / name).touch()
    assert begun.run("--resume") == 0
    assert begun.results() == expected
