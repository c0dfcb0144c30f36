"""nmt-translate as if under torchrun: the outputs of one process, killed processes, and who tells of mistakes."""

import signal
import time
from pathlib import Path

import pytest

from nmt.cli.translate import main
from tests.end_to_end.forked import Job
from tests.random_model import text

pytestmark = pytest.mark.slow

LINES = 150


@pytest.fixture(scope="module")
def arguments(model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a command needs, but for the output."""
    folder = tmp_path_factory.mktemp("text")
    (source := folder / "source").write_text(text(LINES), encoding="utf-8")
    (terms := folder / "terms").write_text("dog\tball\nboy\tÜ\n", encoding="utf-8")
    return ["--model", str(model), "--input", str(source), "--n-best", "2", "--glossary", str(terms)]


@pytest.fixture(scope="module")
def whole(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the outputs of one process."""
    folder = tmp_path_factory.mktemp("whole")
    assert main([*arguments, "--output", str(folder / "out"), "--alignments", str(folder / "out.align")]) == 0
    return folder


def finished(folder: Path) -> list[Path]:
    """The records of the chunks that are kept in a folder."""
    return sorted(folder.glob("out.chunks-*/*.record"))


def wait_for_a_chunk(folder: Path) -> None:
    deadline = time.monotonic() + 120
    while not finished(folder):
        assert time.monotonic() < deadline, "no chunk in time"
        time.sleep(0.005)


def test_two_processes_write_what_one_writes(arguments: list[str], whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    more = ("--alignments", tmp_path / "out.align", "--chunk-lines", 5)
    code, errors = Job(2, "translate", *arguments, "--output", output, *more).finish()
    assert code == 0, errors
    expected = {path.name: path.read_bytes() for path in whole.iterdir()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected


def test_all_killed_and_resumed_by_another_number(arguments: list[str], whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    job = Job(2, "translate", *arguments, "--output", output, "--chunk-lines", 1)
    try:
        wait_for_a_chunk(tmp_path)
    finally:
        job.kill()
    done = len(finished(tmp_path))
    assert 0 < done < LINES
    assert not output.exists()
    code, errors = Job(3, "translate", *arguments, "--output", output, "--chunk-lines", 1).finish()
    assert code == 0, errors
    assert errors.count(f"nmt-translate: resuming: {done} of {LINES} chunks are finished") == 1
    assert output.read_bytes() == (whole / "out").read_bytes()
    assert not finished(tmp_path)


def test_one_killed_ends_the_job(arguments: list[str], whole: Path, tmp_path: Path) -> None:
    """The first process says what is kept; one process alone goes on, translating only what is missing."""
    output = tmp_path / "out"
    job = Job(2, "translate", *arguments, "--output", output, "--chunk-lines", 1)
    try:
        wait_for_a_chunk(tmp_path)
    finally:
        job.processes[1].kill()
    _, errors = job.finish(as_torchrun=True)
    assert job.codes == [128 + signal.SIGTERM, -signal.SIGKILL], errors
    assert "nmt-translate: terminated; " in errors
    assert f" of {LINES} chunks are kept in {tmp_path / 'out.chunks-'}" in errors
    done = len(finished(tmp_path))
    assert main([*arguments, "--output", str(output)]) == 2
    assert len(finished(tmp_path)) == done
    assert main([*arguments, "--output", str(output), "--chunk-lines", "1"]) == 0
    assert output.read_bytes() == (whole / "out").read_bytes()


def test_a_shard_in_two_processes(arguments: list[str], whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    for number, processes in ((1, 1), (2, 2)):
        shard = ("--shard", f"{number}/2", "--chunk-lines", 5)
        code, errors = Job(processes, "translate", *arguments, "--output", output, *shard).finish()
        assert code == 0, errors
    assert main(["--merge", "--output", str(output)]) == 0
    assert output.read_bytes() == (whole / "out").read_bytes()


def test_a_mistake_is_told_once(arguments: list[str], tmp_path: Path) -> None:
    """By the first process, also where others find it; and one that is found while translating by who finds it."""
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("\n" * 6 + "dog\n" + "\n" * (LINES - 7), encoding="utf-8")  # of a blank line
    for more, told, codes in (
        (("--output", "-", "--beam-size", "0"), "nmt-translate: 2 problems:", {2}),
        (
            ("--output", tmp_path / "out", "--prefix", prefixes),
            "nmt-translate: error: line 7 ",
            {2, 128 + signal.SIGTERM},
        ),
    ):
        job = Job(2, "translate", *arguments, *more)
        _, errors = job.finish(as_torchrun=len(codes) > 1)
        assert {2} <= set(job.codes) <= codes, errors
        lines = [line for line in errors.splitlines() if ": waiting for " not in line]  # what a busy machine waits for
        assert sum(line.startswith("nmt-translate: ") for line in lines) == 1, errors
        assert errors.count(told) == 1, errors
        assert "nmt/cli" not in errors  # no traceback of ours
