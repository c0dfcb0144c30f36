"""A job in parts by functions of its caller: neither a model nor a text is needed to share, stop and resume it."""

import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.jobs.in_parts import translate_in_parts, usual_chunk
from nmt.jobs.records import file_states
from nmt.jobs.resuming import Job
from nmt.processes import Processes

LINES = 7


def make_job(folder: Path, **changes: Any) -> Job:
    outputs = {"output": str(folder / "out"), "alignments": str(folder / "alignments")}
    usual: dict[str, Any] = {"facts": {"--power": "2"}, "texts": {}, "chunk_lines": 3, "resume": False}
    return Job(program="nmt-any", folder=folder / "parts", lines=LINES, outputs=outputs, **{**usual, **changes})


def write(numbers: Iterable[int], files: Mapping[str, str], first: int) -> int:
    """One line a number, and its square in the other file; a chunk begins with its first line."""
    values = list(numbers)
    assert values[0] == first
    Path(files["output"]).write_text("".join(f"{number}\n" for number in values))
    Path(files["alignments"]).write_text("".join(f"{number**2}\n" for number in values))
    return len(values)


def run(job: Job, translate: Callable[[int, int], Iterable[int]]) -> int:
    return translate_in_parts(job, Processes(), load=lambda: translate, write=write)


def test_a_job_writes_all_outputs_and_leaves_nothing_else(tmp_path: Path) -> None:
    assert run(make_job(tmp_path), lambda first, count: range(first, first + count)) == 0
    assert (tmp_path / "out").read_text().split() == [str(number) for number in range(LINES)]
    assert (tmp_path / "alignments").read_text().split() == [str(number**2) for number in range(LINES)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alignments", "out"]


def test_what_was_finished_is_not_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []

    def translate(first: int, count: int) -> Iterable[int]:
        done.append(first)
        if done == [0, 3, 6]:
            signal.raise_signal(signal.SIGTERM)
        return range(first, first + count)

    assert run(make_job(tmp_path), translate) == 143
    said = f"nmt-any: stopped by SIGTERM; 2 of 3 chunks are kept in {tmp_path / 'parts'}, continue with --resume\n"
    assert capsys.readouterr().err == said
    with pytest.raises(UserError, match="--power: 2 there, 3 here"):
        run(make_job(tmp_path, resume=True, facts={"--power": "3"}), translate)
    assert run(make_job(tmp_path, resume=True, chunk_lines=None), translate) == 0
    assert done == [0, 3, 6, 6]
    assert (tmp_path / "alignments").read_text().split() == [str(number**2) for number in range(LINES)]


def test_a_text_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("before")

    def translate(first: int, count: int) -> Iterable[int]:
        text.write_text("after it")
        return range(first, first + count)

    with pytest.raises(UserError, match="text: has changed since the translation began; leave it as it is"):
        run(make_job(tmp_path, texts=file_states({str(text): str(text)})), translate)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("lines", "processes", "chunk"),
    [
        (0, 1, 1),
        (3, 4, 1),  # fewer lines than processes
        (1_000, 1, 500),  # two chunks for each process
        (1_000, 4, 125),
        (1_000_000, 4, 2_000),
        (4_000_000, 4, 2_000),  # 2,000 chunks
        (4_000_001, 4, 2_001),
        (100_000_000, 4, 50_000),
        (100_000_000, 5_000, 10_000),  # two chunks for each process, however many files these are
    ],
)
def test_the_chunks_of_a_long_text_are_longer_and_not_more(lines: int, processes: int, chunk: int) -> None:
    assert usual_chunk(lines, processes=processes) == chunk


def test_what_is_noted_with_the_chunks_is_told_once(tmp_path: Path) -> None:
    """Also that of the chunks which another process has finished, and of those before a stop."""
    done: list[int] = []
    told: list[int] = []

    def translate(first: int, count: int) -> Iterable[int]:
        done.append(first)
        if done == [0, 3]:
            signal.raise_signal(signal.SIGTERM)
        return range(first, first + count)

    def noting(job: Job) -> int:
        note = lambda: 10 ** len(done)  # noqa: E731
        return translate_in_parts(job, Processes(), load=lambda: translate, write=write, note=note, tell=told.append)

    assert noting(make_job(tmp_path)) == 143
    assert told == []
    assert noting(make_job(tmp_path, resume=True)) == 0
    assert told == [10 + 1000 + 10000]
