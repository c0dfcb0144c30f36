"""A long translation in chunks: neither a model nor a text is needed to share, stop, damage, resume, and join them."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nmt.decoding.chunks import (
    JOB,
    Chunks,
    Description,
    Job,
    Shard,
    file_state,
    folders_of,
    grouped,
    merge,
    open_chunks,
    translate_chunks,
)
from nmt.errors import UserError
from nmt.processes import ALONE, Processes
from nmt.signals import Stopped, raised
from tests.conftest import flip_a_bit

SIZES = [3, 2, 3, 2, 1]  # lines of the chunks
LINES = sum(SIZES)
KINDS = ("output", "alignments")

Damage = Callable[[Path], object]


class Translation:
    """A job in a folder, which "translates" a number to itself, and aligns it with its square."""

    def __init__(self, folder: Path, **facts: str) -> None:
        self.folder, self.facts = folder, {"--power": "2", **facts}
        self.outputs = {kind: str(folder / name) for kind, name in zip(KINDS, ("out", "hard"), strict=True)}
        self.text = folder / "text"
        self.text.touch()
        self.firsts: list[int] = []  # lines of the chunks that were translated
        self.said: list[str] = []
        self.before_chunk: Callable[[int], object] = lambda chunk: None

    @property
    def chunks(self) -> Chunks:
        return Chunks(self.outputs["output"], Description(self.facts, KINDS, SIZES))

    def translate(self, advance: Callable[[], object], first: int, count: int, files: Mapping[str, str]) -> None:
        self.before_chunk(len(self.firsts))
        self.firsts.append(first)
        numbers = range(first, first + count)
        Path(files["output"]).write_text("".join(f"{number}\n" for number in numbers))
        Path(files["alignments"]).write_text("".join(f"{number**2}\n" for number in numbers))

    def run(self, shard: Shard | None = None) -> None:
        self.firsts, self.said = [], []
        job = Job(self.chunks, self.outputs, {self.text: file_state(self.text)}, shard)
        open_chunks(job, ALONE, say=self.said.append)
        with raised("nmt-any"):
            translate_chunks(job, ALONE, self.translate, say=self.said.append)

    def stop_at(self, chunk: int) -> None:
        """Run until a signal comes before that chunk."""
        self.before_chunk = lambda number: signal.raise_signal(signal.SIGTERM) if number == chunk else None
        with pytest.raises(Stopped) as stop:
            self.run()
        self.before_chunk = lambda number: None
        done = f"{chunk} of 5 chunks are kept in {self.chunks.path}; the same command continues"
        assert stop.value.saved == (done if chunk else "")

    def merge(self) -> int:
        return merge(self.outputs, main="output")

    def assert_whole(self) -> None:
        """Both outputs are complete, and nothing else is left."""
        assert (self.folder / "out").read_text().split() == [str(number) for number in range(LINES)]
        assert (self.folder / "hard").read_text().split() == [str(number**2) for number in range(LINES)]
        assert sorted(path.name for path in self.folder.iterdir()) == ["hard", "out", "text"]


@pytest.fixture
def translation(tmp_path: Path) -> Translation:
    return Translation(tmp_path)


@pytest.fixture
def begun(translation: Translation) -> Translation:
    """It was stopped after two chunks."""
    translation.stop_at(2)
    return translation


@pytest.fixture
def sharded(translation: Translation) -> Translation:
    """Both shards are there."""
    for number in (2, 1):
        translation.run(Shard(number, 2))
    return translation


def test_all_outputs_and_nothing_else(translation: Translation) -> None:
    translation.run()
    assert translation.said == []
    translation.assert_whole()


def test_what_is_finished_is_not_done_again(begun: Translation) -> None:
    begun.run()
    assert begun.firsts == [5, 8, 10]
    assert begun.said == ["resuming: 2 of 5 chunks are finished"]
    begun.assert_whole()


def test_shards_take_every_nth_chunk(translation: Translation) -> None:
    """So a translation that was begun as a whole can go on in shards of any number, and the other way round."""
    for number, firsts in ((3, [5]), (1, [0, 8]), (2, [3, 10])):
        translation.run(Shard(number, 3))
        assert translation.firsts == firsts
    translation.run(Shard(1, 2))
    assert translation.firsts == []
    assert translation.said == ["resuming: 3 of 3 chunks are finished"]
    assert not (translation.folder / "out").exists()
    assert translation.merge() == 5
    translation.assert_whole()


def test_nothing_is_left_of_what_was_stopped_before_its_first_chunk(translation: Translation) -> None:
    translation.stop_at(0)
    assert folders_of(translation.outputs["output"]) == []
    translation.run()
    translation.assert_whole()


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


def test_killed_at_any_operation_on_the_disk(translation: Translation) -> None:
    for operations in range(1000):
        for name in ("out", "hard"):
            (translation.folder / name).unlink(missing_ok=True)
        finished = False
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, operations)
            with suppress(Killed):
                translation.run()
                finished = True
        translation.run()
        translation.assert_whole()
        if finished:
            break
    assert operations > 40


# ---------------------------------------------------------------------------------------------------------- damage


def flipped(name: str) -> Damage:
    return lambda folder: flip_a_bit(folder / name)


def swapped(*names: tuple[str, str]) -> Damage:
    def swap(folder: Path) -> None:
        for left, right in names:
            (folder / left).rename(folder / "third")
            (folder / right).rename(folder / left)
            (folder / "third").rename(folder / right)

    return swap


def record(**values: Any) -> Damage:
    def replace(folder: Path) -> None:
        path = folder / "000000.record"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}), encoding="utf-8")

    return replace


DAMAGES: dict[str, Damage] = {
    "emptied": lambda folder: (folder / "000000.output").write_bytes(b""),
    "a flipped bit": flipped("000000.output"),
    "a flipped bit in alignments": flipped("000000.alignments"),
    "no output": lambda folder: (folder / "000000.output").unlink(),
    "swapped outputs": swapped(("000000.output", "000001.output")),
    "swapped chunks": swapped(*((f"000000.{kind}", f"000001.{kind}") for kind in (*KINDS, "record"))),
    "no files": record(files={}),
    "another job": record(job="0" * 64),
    "nothing": lambda folder: (folder / "000000.record").write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_chunk_is_reported_and_translated_again(begun: Translation, damage: Damage) -> None:
    damage(begun.chunks.path)
    begun.run()
    resuming, warning = begun.said
    assert resuming == "resuming: 2 of 5 chunks are finished"
    both = begun.firsts == [5, 8, 10, 0, 3]  # swapped with the other one
    assert both or begun.firsts == [5, 8, 10, 0]
    which = "2 chunks (1, 2) are" if both else "1 chunk (1) is"
    assert warning == f"warning: {begun.chunks.path}: {which} not as written, and translated again"
    begun.assert_whole()


def test_a_disk_that_does_not_keep_what_is_written(begun: Translation, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Chunks.join
    damage = flipped("000002.output")
    monkeypatch.setattr(Chunks, "join", lambda self, outputs: (damage(self.path), before(self, outputs))[1])
    with pytest.raises(UserError, match=r"chunks keep differing .* chunks are kept in"):
        begun.run()
    assert not (begun.folder / "out").exists()


def test_a_damaged_description_is_written_again(begun: Translation) -> None:
    (begun.chunks.path / JOB).write_text("[")
    begun.run(Shard(1, 1))
    assert begun.firsts == [5, 8, 10]
    assert begun.merge() == 5
    begun.assert_whole()


def test_a_file_of_somebody_else_stays(begun: Translation) -> None:
    for name in ("letter.txt", "7.record"):
        (begun.chunks.path / name).write_text("mine")
    begun.run()
    assert sorted(path.name for path in begun.chunks.path.iterdir()) == ["7.record", "letter.txt"]


# ---------------------------------------------------------------------------------- other translations, other commands


def test_another_translation_is_not_mixed_with_it(begun: Translation) -> None:
    other = Translation(begun.folder, **{"--power": "3", "--scores": "given"})
    with pytest.raises(UserError) as error:
        other.run()
    (message,) = error.value.messages
    assert message.startswith(f"{begun.chunks.path}: holds finished chunks of another translation; give another --out")
    assert message.endswith("The differences:\n  --power: 2 there, 3 here\n  --scores: not given there, given here")
    begun.run()
    begun.assert_whole()


def test_a_text_that_changes_meanwhile(translation: Translation) -> None:
    """What was finished before the change is kept, and of use to whoever takes the change back."""
    translation.before_chunk = lambda chunk: translation.text.write_text("new") if chunk == 1 else None
    with pytest.raises(UserError, match="text: has changed since the translation began; restore it; 1 of 5"):
        translation.run()
    assert not (translation.folder / "out").exists()
    assert translation.chunks.finished() == {0}


def test_a_process_that_is_slow_to_begin_does_nothing_again(sharded: Translation) -> None:
    """Whether its chunks are finished was found out before the first process could join and remove them."""

    class Second(Processes):
        rank, size = 1, 2

        def together(self, body: Callable[[], Any]) -> Any:
            result = body()
            if isinstance(result, set):
                sharded.run()  # as the first process
            return result

    job = Job(sharded.chunks, sharded.outputs, {})
    translate_chunks(job, Second(), lambda *_: pytest.fail("again"), say=print)
    sharded.assert_whole()


def test_two_commands_at_once_ruin_nothing(translation: Translation) -> None:
    """The one that is overtaken finds its chunks gone, after the other has joined them."""
    overtaking = Translation(translation.folder)
    translation.before_chunk = lambda chunk: overtaking.run() if chunk == 3 else None
    with pytest.raises((UserError, FileNotFoundError)):
        translation.run()
    assert overtaking.firsts == [8, 10]
    translation.assert_whole()


def test_a_folder_that_is_gone(translation: Translation) -> None:
    """Before the last chunk is written, which begins it anew."""
    translation.before_chunk = lambda chunk: (shutil.rmtree(path := translation.chunks.path), path.mkdir())
    with pytest.raises(UserError, match=r"is gone; has another command translated to .*out\?"):
        translation.run()


# ------------------------------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flipped("000001.output"), "of 5, 1 chunk (2) is missing or damaged; run the shards of these again"),
        (flipped("000001.alignments"), "1 chunk (2) is missing or damaged"),
        (flipped("000001.record"), "1 chunk (2) is missing or damaged"),
        (lambda folder: (folder / "000001.output").unlink(), "1 chunk (2) is missing or damaged"),
        (lambda folder: (folder / "000001.record").unlink(), "1 chunk (2) is missing or damaged"),
        (
            lambda folder: [path.unlink() for path in folder.glob("00000[13].*")],
            "2 chunks (2, 4) are missing or damaged",
        ),
        (lambda folder: (folder / JOB).write_text("{}"), "job.json: damaged; any command with --shard writes it again"),
        (
            lambda folder: (folder / JOB).write_text('{"facts": {}, "kinds": [["a"]], "sizes": [1]}'),
            "job.json: damaged",
        ),
        (flipped(JOB), "job.json: damaged"),
    ],
)
def test_nothing_is_merged_if_a_chunk_is_missing_or_damaged(sharded: Translation, damage: Damage, told: str) -> None:
    (sharded.folder / "out").write_text("before")
    damage(sharded.chunks.path)
    with pytest.raises(UserError) as error:
        sharded.merge()
    assert told in str(error.value)
    assert (sharded.folder / "out").read_text() == "before"
    assert not (sharded.folder / "hard").exists()
    assert list(sharded.folder.glob("*.partial")) == []
    sharded.run(Shard(2, 2))
    sharded.merge()
    sharded.assert_whole()


def test_other_outputs_than_those_of_the_shards_are_not_merged(sharded: Translation) -> None:
    for outputs in ({"output": sharded.outputs["output"]}, {**sharded.outputs, "soft_alignments": "soft"}):
        with pytest.raises(UserError, match="shards were translated with --output, --alignments; give the files"):
            merge(outputs, main="output")


def test_chunks_of_several_translations_are_not_merged(sharded: Translation) -> None:
    """As when shards with other options are copied together; one alone would be refused where it is translated."""
    elsewhere = sharded.folder / "elsewhere"
    elsewhere.mkdir()
    other = Translation(elsewhere, **{"--power": "3"})
    other.run(Shard(2, 2))
    shutil.copytree(other.chunks.path, there := sharded.folder / other.chunks.path.name)
    with pytest.raises(UserError) as error:
        sharded.merge()
    assert all(str(path) in str(error.value) for path in (sharded.chunks.path, there))
    assert not (sharded.folder / "out").exists()


def test_no_shards(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    (tmp_path / "out.chunks-mine").mkdir()
    for name in (output, "out", str(tmp_path / "nowhere" / "out")):
        with pytest.raises(UserError, match="no chunk of it is there: --shard I/N with --output"):
            merge({"output": name}, main="output")


@pytest.mark.parametrize(
    ("sizes", "most", "chunks"),
    [([], 2, []), ([5], 2, [5]), ([1, 2, 3, 4], 2, [3, 7]), ([1, 2, 3, 4, 5], 2, [6, 9]), ([1, 2, 3], 3, [1, 2, 3])],
)
def test_the_chunks_of_a_long_text_are_longer_and_not_more(sizes: list[int], most: int, chunks: list[int]) -> None:
    assert grouped(sizes, most) == chunks
