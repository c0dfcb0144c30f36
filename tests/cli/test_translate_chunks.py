"""nmt-translate in chunks and in shards: the bytes of one piece, whatever the options; and what it refuses.

That chunks are kept, checked, and joined is tested in `tests/decoding/test_chunks.py`.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.cutting import facts_of
from nmt.cli.translate import main
from nmt.decoding import translator
from nmt.decoding.reading import Reader
from nmt.decoding.translator import Translator
from nmt.evaluation import alignment_plot
from nmt.models.model_file import rebuild
from nmt.models.seq2seq import Seq2Seq
from tests.conftest import write_lines
from tests.random_model import text

LINES = 31
FEW = 9  # lines, where a text is translated in many ways
PIECES = ("--batch-tokens", 1)  # 40 characters are translated together, so the text has several such pieces


class Command:
    """nmt-translate with a model and an input; `output` is where the translations go."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.source, self.output = folder / "source", folder / "out"
        self.source.write_text(text(LINES), encoding="utf-8")

    def run(self, *options: object, output: Path | str | None = None) -> int:
        arguments = ("--model", self.model, "--input", self.source, "--output", output or self.output, *options)
        return main([str(argument) for argument in arguments])

    def whole(self, *options: object) -> bytes:
        """What a run without chunks writes."""
        output = self.folder / "whole"
        assert self.run(*options, output=output) == 0
        return output.read_bytes()

    def shards(self, *options: object) -> None:
        for number in (2, 3, 1):
            assert self.run("--shard", f"{number}/3", *options) == 0

    def merge(self, *options: object) -> int:
        return main(["--merge", "--output", str(self.output), *map(str, options)])

    def chunks(self) -> list[Path]:
        """The folders with chunks."""
        return sorted(self.folder.glob("*.chunks-*"))


@pytest.fixture
def command(model: Path, tmp_path: Path) -> Command:
    return Command(model, tmp_path)


@pytest.fixture
def stopped(command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A signal has come before its third chunk of four lines."""
    with monkeypatch.context() as patch:
        stop_at(patch, 2, lambda: signal.raise_signal(signal.SIGTERM))
        assert command.run("--chunk-lines", 4) == 143
    (folder,) = command.chunks()
    assert capsys.readouterr().err == (
        f"nmt-translate: terminated; 2 of 8 chunks are kept in {folder}; the same command continues\n"
    )
    assert not command.output.exists()
    return command


def stop_at(monkeypatch: pytest.MonkeyPatch, chunk: int, stop: Callable[[], object]) -> None:
    """Call `stop` where the translation of a chunk begins, counted from 0."""
    before, calls = Reader.segments, iter(range(1000))

    def stopping(self: Reader, *arguments: Any) -> Any:
        if next(calls) == chunk:
            stop()
        return before(self, *arguments)

    monkeypatch.setattr(Reader, "segments", stopping)


@pytest.mark.parametrize(
    "options",
    [
        ("--n-best", 2, "--scores"),
        ("--sample", "--seed", 5, "--split-sentences"),
        ("--precision", "int8", "--replace-unknown"),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_chunks_and_shards_make_no_difference(command: Command, options: tuple[object, ...]) -> None:
    command.source.write_text(text(FEW), encoding="utf-8")
    whole = command.whole(*options, *PIECES)
    assert len(set(whole.splitlines())) > FEW / 3
    for way in (("--resume", *PIECES), ("--chunk-lines", 1), ("--chunk-lines", 100)):
        command.output.unlink(missing_ok=True)
        assert command.run(*options, *way) == 0
        assert command.output.read_bytes() == whole
        assert command.chunks() == []
    command.output.unlink()
    command.shards(*options, *PIECES)
    assert len(list(command.chunks()[0].glob("*.record"))) >= 3
    assert not command.output.exists()
    assert command.merge() == 0
    assert command.output.read_bytes() == whole
    assert command.chunks() == []


def test_alignments_prefixes_and_constraints_follow_the_chunks(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the model in float64, no digit that is written depends on how many lines a chunk has."""

    def double(file: Any) -> Seq2Seq:
        return rebuild(file).double()

    monkeypatch.setattr(translator, "rebuild", double)
    command.source.write_text(text(FEW), encoding="utf-8")
    lines = text(FEW).splitlines()
    prefixes = [f"two {number % 3 * 'dog '}".strip() if line else "" for number, line in enumerate(lines)]
    phrases = [["ball", "a\tgreen", ""][number % 3] if line else "" for number, line in enumerate(lines)]
    beside = []
    for name, content in (("prefix", prefixes), ("constraints", phrases)):
        beside += [f"--{name}", write_lines(tmp_path / name, content)]

    def alignments(name: str) -> list[object]:
        return ["--alignments", tmp_path / f"{name}.hard", "--soft-alignments", tmp_path / f"{name}.soft"]

    options = [*beside, "--beam-size", 4, "--max-length-ratio", 2]
    whole = command.whole(*options, *alignments("whole"))
    assert all(line.startswith(prefix) for line, prefix in zip(whole.decode().splitlines(), prefixes, strict=True))
    for way in ((), ("--shard", "1/1")):
        assert command.run(*options, *alignments("out"), "--chunk-lines", 4, *way) == 0
    assert command.merge(*alignments("out")) == 0
    assert command.output.read_bytes() == whole
    for kind in ("hard", "soft"):
        assert (tmp_path / f"out.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
        assert (tmp_path / f"out.{kind}").read_bytes().count(b"\n") == FEW


def test_pictures_are_numbered_by_the_lines_of_the_text(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(alignment_plot, "FONTS", ("DejaVu Sans",))
    command.source.write_text("a dog\n\n猫 men\n猫 boy\n", encoding="utf-8")
    assert command.run("--chunk-lines", 1, "--plot-alignments", tmp_path / "pictures") == 0
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["000001.png", "000003.png", "000004.png"]


def test_more_shards_than_chunks(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    whole = command.whole("--beam-size", 1)
    capsys.readouterr()
    for number in (2, 1):
        assert command.run("--beam-size", 1, "--shard", f"{number}/2") == 0
        (folder,) = command.chunks() or [None]
        said = f"nmt-translate: shard {number}/2 is finished, in {folder or command.output}"
        assert said in capsys.readouterr().err
    assert command.merge() == 0
    assert capsys.readouterr().err == f"nmt-translate: {command.output}: merged 1 chunk\n"
    assert command.output.read_bytes() == whole


def test_the_same_command_continues(stopped: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with another device and --resume, but in no other way."""
    (folder,) = stopped.chunks()
    assert stopped.run() == 2
    assert f"{folder}: holds finished chunks of a translation to this output, which was st" in capsys.readouterr().err
    assert stopped.run("--resume", "--chunk-lines", 4, "--scores") == 2
    assert "\n  --scores: not given there, given here\n" in capsys.readouterr().err
    (prefixes := stopped.folder / "prefixes").write_text("dog\n" * LINES, encoding="utf-8")  # also of blank lines
    assert stopped.run("--resume", "--chunk-lines", 4, "--prefix", prefixes) == 2
    assert "\n  --prefix: not given there, content " in capsys.readouterr().err
    source = stopped.source.read_text(encoding="utf-8")
    stopped.source.write_text(source[:-2] + "!\n", encoding="utf-8")
    assert stopped.run("--resume", "--chunk-lines", 4) == 2
    assert "\n  --input: content " in capsys.readouterr().err
    stopped.source.write_text(source, encoding="utf-8")
    assert stopped.run("--resume", "--chunk-lines", 4, "--device", "cpu", "--batch-tokens", 20) == 0
    assert capsys.readouterr().err == "nmt-translate: resuming: 2 of 8 chunks are finished\n"
    assert stopped.output.read_bytes() == stopped.whole()
    assert stopped.chunks() == []


def test_a_terminal_shows_the_lines_of_all_chunks(
    stopped: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert stopped.run("--chunk-lines", 4) == 0
    said = capsys.readouterr().err
    for shown in ("| 8/31 [", "| 31/31 [", " lines/s]"):
        assert shown in said


def test_a_full_disk_keeps_what_is_done(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        stop_at(patch, 3, lambda: patch.setattr(os, "fsync", fail))
        assert command.run("--chunk-lines", 4) == 2
    said = capsys.readouterr().err
    assert "000003.output: cannot be written (No space left on device); 3 of 8 chunks are kept in" in said
    (folder,) = command.chunks()
    assert list(folder.glob("*.partial")) == []
    assert command.run("--chunk-lines", 4) == 0
    assert command.output.read_bytes() == command.whole()


def test_a_mistake_in_a_line_is_named_by_its_place(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any chunk is translated, which would be of no use beside the corrected text; and no folder is left."""
    prefixes = command.folder / "prefixes"
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("it has begun"))
    prefixes.write_text("\n" * 13 + "dog\n" + "\n" * (LINES - 14), encoding="utf-8")  # of a blank line
    assert command.run("--prefix", prefixes, "--chunk-lines", "10") == 2
    assert "error: line 14 is blank and is to have 'dog'; do the files go together?\n" in capsys.readouterr().err
    assert command.chunks() == []


def test_what_cannot_be_cut(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    assert main(["--model", str(command.model), "--resume"]) == 2
    said = capsys.readouterr().err
    assert "nmt-translate: 2 problems:" in said
    assert "--input - can be read only once, and --resume needs it several times; give a file that stays" in said
    assert "--output -: --resume needs a file, beside which chunks are kept" in said
    command.source = pipe
    assert command.run("--shard", "1/2", "--alignments", "/dev/null", output="/dev/null") == 2
    said = capsys.readouterr().err
    assert f"--input {pipe} can be read only once, and --shard needs it several times" in said
    for option in ("--output", "--alignments"):
        assert f"{option} /dev/null: --shard needs a file" in said


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/2/3", "-1/3", "1/1000000", "1/ 3", "¹/3"])
def test_shards_that_there_are_not(command: Command, shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(f"--shard={shard}", "--beam-size", 0) == 2
    said = capsys.readouterr().err
    assert "allowed: I/N, such as 1/8 to 8/8, N at most 100,000; shards are counted from 1" in said
    assert "--beam-size is 0; allowed: " in said, "with the other mistakes"


def test_what_does_not_go_with_merge(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["--shard", "1/2", "--soft-alignments", "/dev/null", "--chunk-lines", "0"]
    assert main(["--merge", "--model", str(command.model), *wrong]) == 2
    said = capsys.readouterr().err
    assert "--chunk-lines 0: allowed: " in said
    for option in ("--model", "--shard"):
        assert f"{option} has no effect with --merge, which translates nothing; leave it out" in said
    assert "--output -: --merge needs the name of the file that shards were translated for" in said
    assert "--soft-alignments /dev/null: --merge needs the name of the file" in said
    assert command.merge() == 2
    assert f"{command.output}: no chunk of it is there" in capsys.readouterr().err


def test_every_option_decides_unless_it_is_known_not_to(tmp_path: Path) -> None:
    """Those that are still to come, too: files by their content, whatever their names."""
    files = [tmp_path / name for name in ("input", "model", "one", "two")]
    for path in files:
        path.write_text("the same" if path.name in ("one", "two") else path.name, encoding="utf-8")
    source, model, one, two = files
    usual = {"input": str(source), "output": "out", "model": [tmp_path], "resume": True, "chunk_lines": None}

    def facts(batch_tokens: int = 4, **more: object) -> object:
        return facts_of({**usual, **more}, [model], batch_tokens=batch_tokens)

    plain = facts()
    assert facts(output="elsewhere", resume=False, device="cuda", new_file=None, new_flag=False) == plain
    assert facts(new_file=one) == facts(new_file=two) == facts(new_file=[one]) != plain
    two.write_text("another", encoding="utf-8")
    assert facts(new_file=one) != facts(new_file=two)
    assert facts(new_file=[one, two]) != facts(new_file=[two, one])
    assert facts(new_value="1") != facts(new_value="2") != plain
    assert facts(new_flag=True) != plain
    assert facts(alignments="here") == facts(alignments="there") != plain
    assert facts(plot_alignments=tmp_path / "a") == facts(plot_alignments=tmp_path / "b" / ".." / "a")
    assert facts(plot_alignments=tmp_path / "a") != facts(plot_alignments=tmp_path / "b")
    assert facts(5) != plain  # where chunks end
    assert facts(5, chunk_lines="3") == facts(4, chunk_lines="3") != plain
