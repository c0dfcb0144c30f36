"""nmt-translate in chunks: the outputs of one piece, whatever stops it in between, and whose parts it refuses."""

import errno
import fcntl
import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.common import TELLING
from nmt.cli.parts_request import facts_of
from nmt.cli.translate import main
from nmt.decoding import translator
from nmt.decoding.reading import Reader
from nmt.decoding.translator import Translator
from nmt.evaluation import alignment_plot
from nmt.jobs.parts import PROCESSES, Parts
from nmt.jobs.records import JOB, JOINED
from nmt.jobs.resuming import Job, open_parts
from nmt.models.model_file import rebuild
from nmt.models.seq2seq import Seq2Seq
from tests.random_model import save_random_model, text

LINES = 25


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("run") / "best.safetensors")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_text(text(LINES), encoding="utf-8")
    return path


class Command:
    """nmt-translate with a model and an input; `output` is where the translations go."""

    def __init__(self, model: Path, source: Path) -> None:
        self.model, self.source = model, source
        self.output = source.with_name("out")
        self.parts = source.with_name("out.parts")

    def run(self, *options: object, output: Path | str | None = None) -> int:
        arguments = ("--model", self.model, "--input", self.source, "--output", output or self.output, *options)
        return main([str(argument) for argument in arguments])

    def whole(self, *options: object) -> bytes:
        """What a run without chunks writes."""
        output = self.source.with_name("whole")
        assert self.run(*options, output=output) == 0
        return output.read_bytes()

    def done(self) -> int:
        return len(list(self.parts.glob("*.output")))


@pytest.fixture
def command(model: Path, source: Path) -> Command:
    return Command(model, source)


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of each call that translates some."""
    counts: list[int] = []
    before = Reader.segments

    def counted(self: Reader, lines: Any, *more: Any) -> Any:
        counts.append(len(lines))
        return before(self, lines, *more)

    monkeypatch.setattr(Reader, "segments", counted)
    return counts


def stop_at(monkeypatch: pytest.MonkeyPatch, chunk: int, stop: Callable[[], object]) -> None:
    """Call `stop` where the translation of a chunk, counted from 0 among those of this process, begins."""
    before, calls = Reader.segments, iter(range(1000))

    def stopping(self: Reader, *arguments: Any) -> Any:
        if next(calls) == chunk:
            stop()
        return before(self, *arguments)

    monkeypatch.setattr(Reader, "segments", stopping)


def killed_by(number: signal.Signals) -> Callable[[], object]:
    return lambda: signal.raise_signal(number)


@pytest.mark.parametrize("chunk_lines", [1, 4, 100])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--n-best", 3),
        ("--scores", "--beam-size", 1),
        ("--sample", "--seed", 5, "--n-best", 2),
        ("--n-best", 2, "--diversity", 0.5, "--beam-size", 4),
        ("--precision", "int8", "--replace-unknown"),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_chunks_make_no_difference(command: Command, chunk_lines: int, options: tuple[object, ...]) -> None:
    whole = command.whole(*options)
    assert len(set(whole.splitlines())) > LINES / 3
    assert command.run("--chunk-lines", chunk_lines, *options) == 0
    assert command.output.read_bytes() == whole
    assert not command.parts.exists()


@pytest.fixture
def _in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Translate with the model in float64, where no digit that is written depends on the order of sums."""

    def double(file: Any) -> Seq2Seq:
        return rebuild(file).double()

    monkeypatch.setattr(translator, "rebuild", double)


@pytest.mark.usefixtures("_in_float64")
def test_nor_in_float64(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores with 12 digits."""

    def shown(index: int, translations: Any, **_: object) -> str:
        return "".join(f"{index} {(translation.text, round(translation.score, 12))}\n" for translation in translations)

    monkeypatch.setattr("nmt.cli.translate._written", shown)
    whole = command.whole("--n-best", 3)
    assert command.run("--chunk-lines", 4, "--n-best", 3) == 0
    assert command.output.read_bytes() == whole


@pytest.mark.usefixtures("_in_float64")
def test_alignments_prefixes_and_constraints_follow_the_chunks(command: Command, tmp_path: Path) -> None:
    lines = text(LINES).splitlines()
    prefixes = [f"two {number % 3 * 'dog '}".strip() if line else "" for number, line in enumerate(lines)]
    phrases = [["ball", "a\tgreen", ""][number % 3] if line else "" for number, line in enumerate(lines)]
    beside = []
    for name, content in (("prefix", prefixes), ("constraints", phrases)):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        beside += [f"--{name}", path]

    def alignments(name: str) -> list[object]:
        return ["--alignments", tmp_path / f"{name}.hard", "--soft-alignments", tmp_path / f"{name}.soft"]

    options = [*beside, "--beam-size", 9, "--max-length-ratio", 3]
    whole = command.whole(*options, *alignments("whole"))
    assert all(line.startswith(prefix) for line, prefix in zip(whole.decode().splitlines(), prefixes, strict=True))
    assert command.run(*options, *alignments("out"), "--chunk-lines", 4) == 0
    assert not command.parts.exists()
    assert command.output.read_bytes() == whole
    for kind in ("hard", "soft"):
        assert (tmp_path / f"out.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
        assert (tmp_path / f"out.{kind}").read_bytes().count(b"\n") == LINES


def test_pictures_are_numbered_by_the_lines_of_the_input(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command.source.write_text("a dog\n\ntwo men\nis a boy\n", encoding="utf-8")
    assert command.run("--chunk-lines", 2, "--plot-alignments", tmp_path / "pictures") == 0
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["000001.png", "000003.png", "000004.png"]


def test_missing_glyphs_are_told_once(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(alignment_plot, "FONTS", ("DejaVu Sans",))
    command.source.write_text("猫 dog\n猫 men\n猫 ξ boy\n", encoding="utf-8")
    assert command.run("--chunk-lines", 1, "--plot-alignments", tmp_path / "pictures") == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert "no installed font has glyphs for some characters" in warning


def test_gzip_and_nothing(command: Command) -> None:
    whole = command.whole()
    command.source.write_bytes(gzip.compress(command.source.read_bytes()))
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == whole
    command.source.write_bytes(b"")
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_with_what_is_done(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    translated: list[int],
    number: signal.Signals,
    code: int,
) -> None:
    whole = command.whole()
    translated.clear()
    with monkeypatch.context() as patch:
        stop_at(patch, 2, killed_by(number))
        assert command.run("--chunk-lines", 4) == code
    said = capsys.readouterr().err
    assert said == (
        f"nmt-translate: stopped by {number.name}; 2 of 7 chunks are kept in {command.parts}, continue with --resume\n"
    )
    assert not command.output.exists()
    assert command.run("--resume") == 0
    assert capsys.readouterr().err == "nmt-translate: resuming: 2 of 7 chunks are finished\n"
    assert translated == [4, 4, 4, 4, 4, 4, 1]  # each chunk once, of four lines although that was not given again
    assert command.output.read_bytes() == whole


class Killed(BaseException):
    """Stands for the end of the process."""


def dying(patch: pytest.MonkeyPatch, operations: int) -> None:
    """Let so many operations change the disk; the next one, and all that clean up after it, are not done any more."""
    left = iter(range(operations))

    def mortal(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return function(*arguments, **keywords)

        return call

    for name in ("replace", "unlink", "rmdir", "mkdir"):
        patch.setattr(os, name, mortal(getattr(os, name)))
    patch.setattr(os, "fsync", mortal(lambda descriptor: None))


@pytest.mark.slow
def test_killed_at_any_operation_on_the_disk(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was killed at, --resume completes the outputs and leaves nothing beside them."""
    command.source.write_text(text(3), encoding="utf-8")
    options = ("--alignments", tmp_path / "hard")
    loaded = Translator.load(command.model)
    monkeypatch.setattr(Translator, "load", lambda *_, **__: loaded)
    whole, hard = command.whole(*options), (tmp_path / "hard").read_bytes()
    names = {path.name for path in tmp_path.iterdir()} | {"out"}
    for operations in range(1000):
        for path in (command.output, tmp_path / "hard"):
            path.unlink(missing_ok=True)
        finished = False
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, operations)
            with suppress(Killed):
                finished = command.run(*options, "--chunk-lines", 2) == 0
        assert command.run(*options, "--resume") == 0
        assert (command.output.read_bytes(), (tmp_path / "hard").read_bytes()) == (whole, hard)
        left = {path.name for path in tmp_path.iterdir()}
        assert left == names, operations
        if finished:
            break
    assert operations > 20


def test_a_join_that_was_killed_leaves_nothing_to_translate(command: Command, translated: list[int]) -> None:
    for dead in (JOB, JOINED):  # where its folder was removed, and where the whole was not in place yet
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Parts, "join" if dead == JOB else "remove", lambda *_: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                command.run("--chunk-lines", 4)
        assert (command.parts / dead).exists()
        translated.clear()
        assert command.run("--resume") == 0
        assert translated == []
        assert not command.parts.exists()
        assert command.output.read_bytes().count(b"\n") == LINES


def joined_and_killed(command: Command, *options: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parts, "remove", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            command.run("--chunk-lines", 4, *options)
    assert (command.parts / JOINED).exists()
    assert not (command.parts / JOB).exists()


def test_joined_outputs_are_believed_only_if_they_are_there(command: Command, tmp_path: Path) -> None:
    hard, other = tmp_path / "hard", tmp_path / "other"
    joined_and_killed(command, "--alignments", hard)
    assert command.run("--resume", "--alignments", other) == 0
    assert other.read_bytes() == hard.read_bytes()
    whole = command.output.read_bytes()
    joined_and_killed(command)
    command.output.write_bytes(whole[::-1])
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == whole
    joined_and_killed(command)
    command.output.unlink()
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == whole
    assert not command.parts.exists()


def test_a_translation_in_one_piece_removes_what_was_joined(command: Command) -> None:
    joined_and_killed(command)
    assert command.run() == 0
    assert not command.parts.exists()


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Also where these tests are in the background, for which a shell has it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("resume", [False, True])
def test_an_interruption_before_the_first_chunk_leaves_nothing(
    command: Command, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    """While the model is loaded; if that is killed, the next translation to the output removes what is left."""
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "load", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        assert command.run("--resume") == 130
        assert not command.parts.exists()
        patch.setattr(Translator, "load", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            command.run("--resume")
        assert sorted(path.name for path in command.parts.iterdir()) == [".lock", JOB]
    assert command.run(*(["--resume"] if resume else [])) == 0
    assert not command.parts.exists()


def test_a_folder_without_a_finished_chunk_stays_while_it_is_used(command: Command) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "load", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            command.run("--resume")
    with holding(command.parts, PROCESSES + 1):
        assert command.run() == 0
    assert (command.parts / JOB).exists()


def test_pictures_go_to_one_folder(source: Path, tmp_path: Path) -> None:
    def facts(folder: Path) -> object:
        return facts_of({"input": str(source), "plot_alignments": folder}, [])

    assert facts(tmp_path / "a") != facts(tmp_path / "b")
    assert facts(tmp_path / "a") == facts(tmp_path / "b" / ".." / "a")


def test_outputs_in_the_folder_of_parts(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--alignments", command.parts, "--soft-alignments", command.parts / "soft")
    assert command.run("--resume", *options, "--plot-alignments", command.parts) == 2
    said = capsys.readouterr().err
    for option, path in (("alignments", ""), ("soft-alignments", "/soft"), ("plot-alignments", "")):
        assert f"--{option} {command.parts}{path}: is in {command.parts}, which is removed in the end" in said
    assert not command.parts.exists()


def test_a_signal_when_all_is_joined(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = command.whole()
    monkeypatch.setattr(Parts, "remove", lambda self: (self.clear_parts(), signal.raise_signal(signal.SIGTERM)))
    assert command.run("--chunk-lines", 4) == 143
    assert capsys.readouterr().err == "nmt-translate: stopped by SIGTERM; the outputs are complete\n"
    assert command.output.read_bytes() == whole


def test_a_full_disk_when_all_is_joined(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(files: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole = command.whole()
    with monkeypatch.context() as patch:
        patch.setattr("nmt.jobs.parts.file_states", fail)
        assert command.run("--chunk-lines", 4) == 2
    said = capsys.readouterr().err
    assert said.endswith("(No space left on device); the outputs are complete\n")
    assert "--resume" not in said
    assert command.output.read_bytes() == whole
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == whole
    assert not command.parts.exists()


def test_a_folder_that_cannot_be_removed(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def intrude() -> None:
        (command.parts / "sub").mkdir()
        (command.parts / "foo.output").touch()
        (command.parts / "20240101.csv").touch()

    whole = command.whole()
    stop_at(monkeypatch, 2, intrude)
    assert command.run("--chunk-lines", 4) == 0
    assert command.output.read_bytes() == whole
    said = capsys.readouterr().err
    assert said.startswith(
        f"nmt-translate: warning: {command.parts / '20240101.csv'}: belongs to no translation, so its "
    )
    assert said.endswith(f"; delete {command.parts}\n")
    assert sorted(path.name for path in command.parts.iterdir()) == [
        ".lock",
        "20240101.csv",
        "foo.output",
        JOINED,
        "sub",
    ]
    assert command.run("--resume") == 0
    assert command.run() == 0


@pytest.mark.parametrize("name", ["source", "prefixes"])
def test_a_text_that_changes_meanwhile(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Although it is as long as before."""
    path = command.source.with_name(name)
    if name == "prefixes":
        path.write_text("\n" * LINES, encoding="utf-8")
    stop_at(monkeypatch, 2, lambda: path.write_bytes(path.read_bytes()))
    options = ("--prefix", path) if name == "prefixes" else ()
    assert command.run("--chunk-lines", 4, *options) == 2
    said = capsys.readouterr().err
    assert f"{path}: has changed since the translation began" in said
    assert f"{command.parts}: has chunks from before and after the change; delete the folder" in said
    assert "--resume" not in said
    assert not command.output.exists()


def test_strange_files_are_no_chunks(begun: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.parts"
    subprocess.run(["cp", "-r", str(begun.parts), str(copy)], check=True)
    (copy / "foo.output").write_text("mine", encoding="utf-8")
    assert begun.run("--resume", "--beam-size", 2, output=tmp_path / "copy") == 0
    assert (copy / "foo.output").read_text(encoding="utf-8") == "mine"
    assert f"warning: {copy / 'foo.output'}: belongs to no translation" in capsys.readouterr().err


def test_a_full_disk(command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    whole = command.whole()
    with monkeypatch.context() as patch:

        def full() -> None:
            patch.setattr(os, "fsync", fail)

        def fail(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        stop_at(patch, 3, full)
        assert command.run("--chunk-lines", 4) == 2
    said = capsys.readouterr().err
    assert "000003.output: cannot be written (No space left on device); 3 of 7 chunks are kept in" in said
    assert "continue with --resume" in said
    assert command.done() == 3
    assert [path.name for path in command.parts.glob("*.partial")] == []
    assert command.run("--resume") == 0
    assert command.output.read_bytes() == whole


def test_a_mistake_in_a_line_is_named_by_its_place(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any chunk is translated, which would be of no use beside the corrected text; and no folder is left."""
    prefixes = command.source.with_name("prefixes")
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("it has begun"))
    for line in (13, 6):  # blank lines, counted from 0; the second is in the first chunk
        prefixes.write_text("\n" * line + "dog\n" + "\n" * (LINES - line - 1), encoding="utf-8")
        assert command.run("--prefix", prefixes, "--chunk-lines", "10") == 2
        assert capsys.readouterr().err == (
            f"nmt-translate: error: line {line + 1} is blank and has a prefix, 'dog'; do the files go together?\n"
        )
        assert not command.parts.exists()


@pytest.fixture
def begun(command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command, stopped after two chunks of four lines each."""
    with monkeypatch.context() as patch:
        stop_at(patch, 2, killed_by(signal.SIGTERM))
        assert command.run("--chunk-lines", 4, "--beam-size", 2) == 143
    capsys.readouterr()
    yield command
    assert command.done() == 2  # no refusal has cost anything


def test_another_job_is_not_resumed(begun: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("\n" * LINES, encoding="utf-8")
    assert begun.run("--resume", "--beam-size", 3, "--scores", "--prefix", prefixes, "--chunk-lines", 5) == 2
    headline, *changes = capsys.readouterr().err.splitlines()
    assert headline == (
        f"nmt-translate: error: {begun.parts}: cannot be resumed, because it belongs to another translation; give "
        "another --output, or delete the folder to start over. The differences:"
    )
    assert [change.split(": ")[0].strip() for change in changes] == [
        "--beam-size",
        "--chunk-lines",
        "--prefix",
        "--scores",
    ]
    assert "  --beam-size: 2 there, 3 here" in changes
    assert "  --chunk-lines: 4 there, 5 here" in changes
    assert "  --scores: not given there, given here" in changes


def test_other_contents_are_not_resumed(begun: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = Command(save_random_model(tmp_path / "other.safetensors", seed=2), begun.source)
    assert other.run("--resume", "--beam-size", 2) == 2
    assert "\n  --model: content " in capsys.readouterr().err
    begun.source.write_text(text(LINES)[:-2] + "!\n", encoding="utf-8")
    assert begun.run("--resume", "--beam-size", 2) == 2
    assert "\n  --input: content " in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--chunk-lines", 4)])
def test_parts_are_not_overlooked(
    begun: Command, capsys: pytest.CaptureFixture[str], options: tuple[object, ...]
) -> None:
    assert begun.run("--beam-size", 2, *options) == 2
    said = capsys.readouterr().err
    assert "continue with --resume, or delete the folder to start over" in said
    assert not begun.output.exists()


def test_parts_of_another_job_are_not_overlooked(begun: Command, capsys: pytest.CaptureFixture[str]) -> None:
    hard = begun.source.with_name("hard")
    assert begun.run("--beam-size", 2, "--chunk-lines", 4, "--alignments", hard) == 2
    assert capsys.readouterr().err == (
        f"nmt-translate: error: {begun.parts}: holds finished parts of another translation; give another --output, or "
        "delete the folder to start over. The differences:\n  --alignments: not given there, given here\n"
    )


def test_a_file_system_without_locks(
    begun: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", without)
    assert begun.run("--resume", "--beam-size", 2) == 2
    said = capsys.readouterr().err
    assert "cannot be locked (No locks available)" in said
    assert "give an --output on a file system with locks, or translate by one process without --resume" in said


@contextmanager
def holding(parts: Path, byte: int) -> Iterator[Callable[[], object]]:
    """Another process that has locked a byte of the lock; the function that is given ends it."""
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2])); "
        "print(flush=True); sys.stdin.read()"
    )
    holder = [sys.executable, "-c", program, str(parts / ".lock"), str(byte)]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def end() -> None:
            process.kill()
            process.wait()

        yield end
        end()


def test_chunks_are_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    """What a process had claimed that was killed is free again."""
    nothing: Any = {"outputs": {}, "facts": {}, "texts": {}, "resume": False}
    job = Job(program="nmt-any", folder=tmp_path / "parts", lines=9, chunk_lines=2, **nothing)
    with open_parts(job, usual_chunk=1, started_by=None) as parts, holding(parts.path, PROCESSES + 1) as kill:
        assert [parts.range(chunk) for chunk in range(parts.chunks)] == [(0, 2), (2, 2), (4, 2), (6, 2), (8, 1)]
        parts.finish(3, lines=2)
        assert list(parts.claims(stay=False, look=kill)) == [0, 2, 4]
        claimed = []
        for chunk in parts.claims(stay=True, look=kill):
            claimed.append(chunk)
            parts.finish(chunk, lines=parts.range(chunk)[1])
        assert claimed == [0, 2, 4, 1]
        assert parts.done_lines() == 9


def test_parts_in_use(begun: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with holding(begun.parts, 3):
        assert begun.run("--resume", "--beam-size", 2) == 2
    assert f"{begun.parts}: in use by another translation" in capsys.readouterr().err


def test_batches_may_change(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a lack of memory, say."""
    whole = command.whole()
    with monkeypatch.context() as patch:
        stop_at(patch, 2, killed_by(signal.SIGTERM))
        assert command.run("--chunk-lines", 4) == 143
    assert command.run("--resume", "--batch-tokens", 20, "--device", "cpu") == 0
    assert command.output.read_bytes() == whole


def test_a_damaged_description(begun: Command, capsys: pytest.CaptureFixture[str]) -> None:
    (begun.parts / JOB).write_text("{}", encoding="utf-8")
    assert begun.run("--resume", "--beam-size", 2) == 2
    assert f"{begun.parts / JOB}: damaged, and none of its parts is known to belong to this" in capsys.readouterr().err


def test_what_is_in_the_way(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    command.parts.write_text("mine", encoding="utf-8")
    assert command.run("--resume") == 2
    assert "out.parts: is a file" in capsys.readouterr().err
    command.parts.unlink()
    command.parts.mkdir()
    (command.parts / "letter.txt").write_text("mine", encoding="utf-8")
    assert command.run("--resume") == 2
    assert "out.parts: is not empty and holds no parts (found letter.txt)" in capsys.readouterr().err
    assert command.run() == 0  # no business of a translation in one piece
    assert (command.parts / "letter.txt").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_done_in_chunks(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["--model", str(command.model), "--resume", "--chunk-lines", "0"]) == 2
    said = capsys.readouterr().err
    assert "nmt-translate: 3 problems:" in said
    assert "--input - can be read only once, and --resume needs it several times; give a file that stays" in said
    assert "--output -: --resume needs a file, beside which finished parts are kept" in said
    assert "--chunk-lines 0: allowed: a whole number, at least 1" in said
    command.source = pipe
    assert command.run("--chunk-lines", 5, output="/dev/null") == 2
    said = capsys.readouterr().err
    assert f"--input {pipe} can be read only once, and --chunk-lines needs it several times" in said
    assert "--output /dev/null: --chunk-lines needs a file" in said


def test_a_number_that_is_too_long(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run("--chunk-lines", "1" * 5000) == 2
    assert "1: allowed: a whole number, at least 1" in capsys.readouterr().err


def test_every_option_decides_unless_it_is_known_not_to(tmp_path: Path) -> None:
    """Those that are still to come, too: files by their content, whatever their names."""
    files = [tmp_path / name for name in ("input", "model", "one", "two")]
    for path in files:
        path.write_text("the same" if path.name in ("one", "two") else path.name, encoding="utf-8")
    source, model, one, two = files
    usual = {"input": str(source), "output": "out", "model": [tmp_path], "resume": True, "device": "cpu"}

    def facts(**more: object) -> object:
        return facts_of({**usual, **more}, [model])

    plain = facts()
    assert facts(output="elsewhere", resume=False, device=None, new_file=None, new_flag=False) == plain
    assert facts(new_file=one) == facts(new_file=two) == facts(new_file=[one]) != plain
    two.write_text("another", encoding="utf-8")
    assert facts(new_file=one) != facts(new_file=two)
    assert facts(new_file=[one, two]) != facts(new_file=[two, one])
    assert facts(new_value="1") != facts(new_value="2") != plain
    assert facts(new_flag=True) != plain
    assert facts(precision="float32") == plain != facts(precision="int8")
    assert facts(alignments="here") == facts(alignments="there") != plain


def test_processes_that_nobody_started(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    assert command.run() == 2
    assert "nmt-translate: error: WORLD_SIZE is 2, but the other processes cannot be found" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"WORLD_SIZE": "two"}, "nmt-translate: error: WORLD_SIZE is two: must be a whole number"),
        ({"WORLD_SIZE": "2"}, "nmt-translate: error: --bean"),
    ],
)
def test_an_environment_that_torchrun_did_not_make(
    command: Command,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    told: str,
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with suppress(SystemExit):
        assert command.run(*(["--bean", 1] if "bean" in told else [])) == 2
    assert told in capsys.readouterr().err


def test_a_process_that_is_not_heard_leaves_the_first_one_time_to_tell(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert command.run("--bean", 1) == 2
    assert waits == [TELLING]
    assert capsys.readouterr() == ("", "")


def test_a_damaged_model_leaves_no_folder(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    command.model = command.source.with_name("model")
    command.model.write_bytes(b"nothing of the kind")
    assert command.run("--resume") == 2
    assert "model: damaged" in capsys.readouterr().err
    assert not command.parts.exists()


def test_the_folder_is_seldom_listed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each of its files, which are as many as chunks."""
    looks: list[Parts] = []
    before = Parts.done_lines
    monkeypatch.setattr(Parts, "done_lines", lambda self: (looks.append(self), before(self))[1])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("nmt.jobs.in_parts.PAUSE", 60.0)
    assert command.run("--chunk-lines", 1) == 0
    assert len(looks) == 1


def test_a_terminal_shows_the_lines_of_all(
    begun: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of the chunks that were finished before, too."""
    copy = tmp_path / "copy.parts"
    subprocess.run(["cp", "-r", str(begun.parts), str(copy)], check=True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert begun.run("--resume", "--beam-size", 2, output=tmp_path / "copy") == 0
    said = capsys.readouterr().err
    assert "| 8/25 [" in said
    assert "| 25/25 [" in said
    assert " lines/s]" in said
