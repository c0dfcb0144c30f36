"""nmt-translate --shard and --merge: the bytes of the unsharded run, whatever the options; and what is not merged."""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli.translate import main
from nmt.decoding.options import TranslationOptions
from nmt.decoding.reading import Reader
from nmt.decoding.translator import Translator
from tests.random_model import save_random_model, text

LINES = 31
PIECES = ("--batch-tokens", 4)  # 160 characters are translated together, so the text has several such pieces
N = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("run") / "best.safetensors")


class Job:
    """nmt-translate with a model, an input, and small pieces, in a folder."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.source, self.output = folder / "source", folder / "out"
        self.source.write_text(text(LINES), encoding="utf-8")

    def run(self, *options: object, output: Path | None = None, pieces: tuple[object, ...] = PIECES) -> int:
        command = ("--model", self.model, "--input", self.source, "--output", output or self.output, *pieces, *options)
        return main([str(argument) for argument in command])

    def whole(self, *options: object) -> bytes:
        output = self.folder / "whole"
        assert self.run(*options, output=output) == 0
        return output.read_bytes()

    def shards(self, *options: object, numbers: tuple[int, ...] = (2, 3, 1)) -> None:
        for number in numbers:
            assert self.run("--shard", f"{number}/{N}", *options) == 0

    def merge(self, *options: object) -> int:
        return main(["--merge", "--output", str(self.output), *map(str, options)])

    def record(self, number: int) -> Path:
        return self.folder / f"out.{number}-of-{N}.json"


@pytest.fixture
def job(model: Path, tmp_path: Path) -> Job:
    return Job(model, tmp_path)


@pytest.fixture(scope="module")
def finished(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all shards."""
    job = Job(model, tmp_path_factory.mktemp("finished"))
    job.shards("--beam-size", 1)
    return job.folder


@pytest.fixture
def sharded(model: Path, finished: Path, tmp_path: Path) -> Job:
    """The job with all its shards."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Job(model, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        ("--beam-size", 1),
        ("--n-best", 3, "--scores"),
        ("--sample", "--seed", 5, "--n-best", 2),
        ("--n-best", 2, "--diversity", 0.5, "--beam-size", 4),
        ("--precision", "int8", "--replace-unknown", "--scores"),
        ("--split-sentences", "--sample"),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_shards_are_the_whole(job: Job, options: tuple[object, ...], capsys: pytest.CaptureFixture[str]) -> None:
    whole = job.whole(*options)
    job.shards(*options)
    sizes = [job.output.with_name(f"out.{number}-of-{N}").read_bytes().count(b"\n") for number in (1, 2, 3)]
    assert min(sizes) > 0
    assert not job.output.exists()
    assert capsys.readouterr() == ("", "")
    assert job.merge() == 0
    assert job.output.read_bytes() == whole
    assert capsys.readouterr().err == f"nmt-translate: {job.output}: merged 3 shards; their files may be deleted\n"


@pytest.mark.slow
def test_files_beside_the_text_and_alignments(job: Job, tmp_path: Path) -> None:
    lines = text(LINES).splitlines()
    beside: list[object] = []
    for name, content in (
        ("prefix", [f"two {number % 3 * 'dog '}".strip() if line else "" for number, line in enumerate(lines)]),
        ("constraints", [["ball", "a\tgreen", ""][number % 3] if line else "" for number, line in enumerate(lines)]),
    ):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        beside += [f"--{name}", path]

    def alignments(name: str) -> list[object]:
        return ["--alignments", tmp_path / f"{name}.hard", "--soft-alignments", tmp_path / f"{name}.soft"]

    options = [*beside, "--beam-size", 6, "--n-best", 2, "--max-length-ratio", 2]
    whole = job.whole(*options, *alignments("whole"))
    job.shards(*options, *alignments("out"))
    assert job.merge(*alignments("out")) == 0
    assert job.output.read_bytes() == whole
    for kind in ("hard", "soft"):
        assert (tmp_path / f"out.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()


def test_pictures_are_numbered_by_the_lines_of_the_text(job: Job, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    job.source.write_text("a dog runs across the green field .\n\ntwo men\nis a boy\n", encoding="utf-8")
    for number in (1, 2):
        options = ("--shard", f"{number}/2", "--plot-alignments", tmp_path / "pictures")
        assert job.run(*options, pieces=("--batch-tokens", 1)) == 0
    assert job.record(1).with_name("out.1-of-2").read_bytes().count(b"\n") == 3
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["000001.png", "000003.png", "000004.png"]


def test_a_shard_can_be_resumed(job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its finished chunks are kept as those of a whole text are; sampled lines and n-best numbers are those of it."""
    options = ("--sample", "--seed", 3, "--n-best", 2)
    whole = job.whole(*options)
    job.shards(*options, numbers=(1, 3))
    with monkeypatch.context() as patch:
        calls = iter(range(100))
        before = Reader.segments

        def failing(self: Reader, *arguments: object) -> object:
            if next(calls) == 2:
                raise KeyboardInterrupt
            return before(self, *arguments)  # type: ignore[arg-type]

        patch.setattr(Reader, "segments", failing)
        assert job.run("--shard", "2/3", *options, "--chunk-lines", 2) == 130
    assert (job.folder / "out.2-of-3.parts").is_dir()
    assert job.merge() == 2
    said = capsys.readouterr().err
    assert said.endswith("out: 1 of 3 shards are missing: 2/3 (begun, to be continued with --resume: 2/3)\n")
    damaged = job.folder / "out.2-of-3.parts" / "000001.output"
    flipped(damaged)
    assert job.run("--shard", "2/3", *options, "--resume") == 0
    said = capsys.readouterr().err
    assert f"{damaged}: has been altered since it was finished; lines 3 to 4 of shard 2/3 are translated again" in said
    assert job.merge() == 0
    assert job.output.read_bytes() == whole
    assert not (job.folder / "out.2-of-3.parts").exists()


@pytest.mark.slow
def test_a_shard_in_processes_of_torchrun(job: Job, tmp_path: Path) -> None:
    whole = job.whole("--n-best", 2)
    job.shards("--n-best", 2, numbers=(1, 2))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    options = ["--model", job.model, "--input", job.source, "--output", job.output, *PIECES, "--n-best", 2]
    command = [*torchrun, "-m", "nmt.cli.translate", *options, "--shard", "3/3"]
    subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
    assert job.merge() == 0
    assert job.output.read_bytes() == whole


def test_more_shards_than_pieces(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    whole = job.whole("--beam-size", 1)
    for number in (1, 2):
        assert job.run("--beam-size", 1, "--shard", f"{number}/2", pieces=()) == 0
    assert capsys.readouterr().err == (
        f"nmt-translate: warning: shard 1/2 is empty: {job.source} can be divided into 1 at most, with these "
        "--batch-tokens\n"
    )
    assert job.output.with_name("out.1-of-2").read_bytes() == b""
    assert job.merge() == 0
    assert len(job.output.read_bytes().splitlines()) == len(whole.splitlines())


def test_nothing_and_gzip(job: Job) -> None:
    whole = job.whole()
    job.source.write_bytes(gzip.compress(job.source.read_bytes()))
    job.shards()
    assert job.merge() == 0
    assert job.output.read_bytes() == whole
    job.source.write_bytes(b"")
    job.shards()
    assert job.merge() == 0
    assert job.output.read_bytes() == b""


def test_a_text_cut_where_lines_are_translated_together(model: Path) -> None:
    """Pieces of at least 40 × batch_tokens characters, line ends counted; the last may have fewer."""
    translator = Translator.load(model)
    options = TranslationOptions(batch_tokens=1)
    lines = ["x" * 39, "", "y" * 38, "z" * 100, "", "w"]
    assert list(translator.together(lines, options)) == [1, 2, 1, 2]
    assert list(translator.together([], options)) == []


def test_everything_is_told_at_once(sharded: Job, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = save_random_model(tmp_path / "other.safetensors", seed=2)
    sharded.record(1).unlink()
    assert Job(other, tmp_path).run("--shard", "2/3", "--beam-size", 2) == 0
    third = sharded.output.with_name("out.3-of-3")
    third.write_bytes(third.read_bytes()[:-1])
    sharded.output.write_text("before", encoding="utf-8")
    capsys.readouterr()
    assert sharded.merge("--alignments", tmp_path / "hard") == 2
    headline, *problems = capsys.readouterr().err.splitlines()
    size = third.stat().st_size
    assert headline == "nmt-translate: 5 problems:"
    assert problems[0] == f"  - {sharded.output}: 1 of 3 shards are missing: 1/3"
    assert problems[1].startswith("  - --model differs: content ")
    assert problems[2] == "  - --beam-size differs: 2 in 2/3; 1 in 3/3"
    assert (
        problems[3] == f"  - --alignments {tmp_path / 'hard'}: no shard was translated with this option; leave it out"
    )
    assert problems[4] == (
        f"  - {third}: has {size:,} bytes, and had {size + 1:,} when it was finished; translate shard 3/3 again"
    )
    assert sharded.output.read_text(encoding="utf-8") == "before"
    assert not (tmp_path / "hard").exists()


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replaced(**values: object) -> Callable[[Path], None]:
    """Replace values in a record, whose checksum then does not fit."""

    def replace(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}), encoding="utf-8")

    return replace


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flipped, "out.2-of-3.json: damaged"),
        (lambda path: path.write_bytes(b""), "out.2-of-3.json: damaged"),
        (lambda path: path.write_text("[]"), "out.2-of-3.json: damaged (it holds no object)"),
        (replaced(lines=7), "out.2-of-3.json: damaged (it does not fit its checksum)"),
        (replaced(files={"output": [1]}), "out.2-of-3.json: damaged (it does not fit its checksum)"),
        (replaced(facts=None), "out.2-of-3.json: damaged"),
        (lambda path: shutil.copy(path.with_name("out.1-of-3.json"), path), "is the record of shard 1/3"),
        (lambda path: flipped(path.with_suffix("")), "out.2-of-3: has been altered since it was finished"),
        (lambda path: path.with_suffix("").unlink(), "out.2-of-3: is missing"),
    ],
)
def test_a_damaged_shard(
    sharded: Job, damage: Callable[[Path], object], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(sharded.record(2))
    assert sharded.merge() == 2
    said = capsys.readouterr().err
    assert said.startswith("nmt-translate: error: ")
    assert told in said
    assert said.endswith("; translate shard 2/3 again\n")
    assert not sharded.output.exists()
    assert list(sharded.folder.glob("*.partial")) == []
    sharded.shards("--beam-size", 1, numbers=(2,))
    assert sharded.merge() == 0


def test_a_folder_where_a_file_should_be(sharded: Job, capsys: pytest.CaptureFixture[str]) -> None:
    path = sharded.record(2).with_suffix("")
    path.unlink()
    path.mkdir()
    assert sharded.merge() == 2
    assert capsys.readouterr().err == f"nmt-translate: error: {path}: cannot be read or written (Is a directory)\n"
    assert not sharded.output.exists()
    sharded.record(1).unlink()  # files are then read, and none is written
    assert sharded.merge() == 2
    assert "cannot be read or written (Is a directory)" in capsys.readouterr().err


def test_shards_of_another_number(sharded: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert sharded.run("--shard", "2/4") == 0
    assert sharded.merge() == 2
    assert capsys.readouterr().err == (
        f"nmt-translate: error: {sharded.output}: there are shards of several numbers (of 3: 1/3, 2/3, 3/3; of 4: "
        "2/4); delete those that do not count\n"
    )


def test_no_shards(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    (job.folder / "out.0-of-3.json").touch()
    (job.folder / "out.4-of-3.json").touch()
    (job.folder / "out.x1-of-3.json").touch()
    assert job.merge() == 2
    assert f"{job.output}: no shard of it is there: --shard I/N with --output {job.output} writes" in (
        capsys.readouterr().err
    )


def test_other_batches_have_other_shards(sharded: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """Which would not go together; the number comes from the model where it is not given."""
    assert sharded.run("--beam-size", 1, "--shard", "2/3", pieces=()) == 0
    assert sharded.merge() == 2
    assert "--batch-tokens differs: 4 in 1/3, 3/3; 2000 in 2/3\n" in capsys.readouterr().err


def test_a_text_that_changes_meanwhile(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Reader.segments

    def changing(self: Reader, *arguments: object) -> object:
        job.source.write_text(text(LINES)[:-2] + "!\n", encoding="utf-8")
        return before(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Reader, "segments", changing)
    assert job.run("--shard", "3/3") == 2
    assert f"{job.source}: has changed since the translation began" in capsys.readouterr().err
    assert not job.record(3).exists()


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "/", "1/2/3", "-1/3", "1/1000000", "1/ 3", "¹/3"])
def test_shards_that_there_are_not(job: Job, shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", str(job.model), "--input", str(job.source), "--output", "x", f"--shard={shard}"]) == 2
    assert "allowed: I/N, such as 1/8 to 8/8, N at most 100,000; shards are counted from 1" in capsys.readouterr().err


def test_what_does_not_go_with_them(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", str(job.model), "--shard", "1/2"]) == 2
    said = capsys.readouterr().err
    assert "--input - can be read only once, and --shard needs all of it to find its lines" in said
    assert "--output -: --shard needs a file, beside which the shard and its record are kept" in said
    assert main(["--merge", "--model", str(job.model), "--shard", "1/2", "--soft-alignments", "/dev/null"]) == 2
    said = capsys.readouterr().err
    for option in ("--model", "--shard"):
        assert f"{option} has no effect with --merge, which translates nothing; leave it out" in said
    assert "--output -: --merge needs the name of the file that shards were translated for" in said
    assert "--soft-alignments /dev/null: --merge needs the name of the file" in said


def test_all_files_have_to_be_merged(job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.shards("--alignments", tmp_path / "hard")
    assert job.merge() == 2
    assert "--alignments is missing: shards were translated with it; give the name that they were given" in (
        capsys.readouterr().err
    )
