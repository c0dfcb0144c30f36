"""A cache with damage of any kind: training has the data it would have had, and says in a line what is rebuilt."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import Config
from nmt.data import cache
from nmt.data import prepare as preparation
from nmt.data.cache import Facts, built, checked_facts, discard, reused
from nmt.data.prepare import Prepared, prepare
from nmt.errors import UserError
from tests.conftest import ROOT, data_section, flip_a_bit, write_lines, write_texts

ENGLISH = ["a small dog runs", "two men walk along the river", "the dogs run", "snow", "men and dogs"] * 8
GERMAN = ["ein Hund läuft", "zwei Männer gehen am Fluss", "die Hunde laufen", "Schnee", "Männer und Hunde"] * 8
TEXTS = {"train.en": ENGLISH, "train.de": GERMAN, "valid.en": ENGLISH[:3], "valid.de": GERMAN[:3]}


def config(folder: Path) -> Config:
    """Segmentations are sampled, so that the text is kept as well."""
    return Config.model_validate(
        {"name": "test", "data": data_section(folder), "subwords": {"size": 60, "sampling": {"alpha": 0.1}}}
    )


def run(folder: Path, log: list[str] | None = None) -> Prepared:
    return prepare(config(folder), cache=folder / "cache", log=(log if log is not None else []).append)


def content(prepared: Prepared) -> list[Any]:
    """All that training reads of it."""
    train, valid = prepared.train, prepared.valid
    rows = [(ids.source(row).tolist(), ids.target(row).tolist()) for ids in (train, valid) for row in range(len(ids))]
    models = [subwords.model for subwords in prepared.vocabularies]
    names = (train.folder, valid.folder, train.report, valid.report)
    return [models, rows, [ids.text(row) for ids in (train, valid) for row in range(len(ids))], names]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = write_texts(tmp_path_factory.mktemp("made"), TEXTS)
    return folder, content(run(folder))


@pytest.fixture
def folder(made: tuple[Path, list[Any]]) -> Iterator[Path]:
    """A prepared corpus whose cache may be damaged; the paths are always the same."""
    kept = made[0].with_name("kept")
    shutil.copytree(made[0] / "cache", kept, dirs_exist_ok=True)
    yield made[0]
    discard(made[0] / "cache")
    kept.rename(made[0] / "cache")


def replaced(path: Path) -> None:
    """By as many bytes of a sort that JSON and numbers may have."""
    path.write_bytes(b"1" * path.stat().st_size)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a bit flipped": flip_a_bit,
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,
    "digits": replaced,
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "extended": lambda path: path.write_bytes(path.read_bytes() + b"\0") and None,
    "missing": Path.unlink,
}
FILES = ["ids/*/source.values", "ids/*/target_text.offsets", "ids/*/contents", "subwords/*/model", "corpora/*/contents"]
WARNINGS = [  # of the corpus above
    "warning: data.train: 35 of 40 pairs (87.5%) repeat another one; ",
    "warning: data.valid: 3 of 3 pairs (100.0%) are training pairs, too, ",
]


CASES = [*zip(cycle(FILES), DAMAGES, strict=False), *product(FILES[1:], ["a bit flipped"])]


@pytest.mark.parametrize(("pattern", "damage"), CASES)
def test_damage_is_said_and_mended(made: tuple[Path, list[Any]], folder: Path, pattern: str, damage: str) -> None:
    path = sorted((folder / "cache").glob(pattern))[0]
    DAMAGES[damage](path)
    log: list[str] = []
    assert content(run(folder, log)) == made[1]
    (line,) = [line for line in log if "rebuilt" in line]
    assert line.startswith(f"{path.parent}: damaged, or of another version, and rebuilt (")
    assert path.name in line
    assert all(any(line.startswith(warning) for line in log) for warning in WARNINGS)
    log.clear()
    assert content(run(folder, log)) == made[1]
    warnings, reused = log[:2], log[2:]
    assert all(map(str.startswith, warnings, WARNINGS))
    assert [line.rsplit(" ", 1)[1] for line in reused] == ["reused"] * 3
    assert not list((folder / "cache").rglob("*.partial"))


@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError])
def test_an_intact_file_that_cannot_be_read_is_made_again(tmp_path: Path, kind: type[Exception]) -> None:
    """Such as a subword model, or facts, of another version."""

    def refused(folder: Path, facts: Facts) -> None:
        assert facts == {"number": 7}
        raise kind("of another kind")

    with built(tmp_path / "entry") as (_, facts):
        facts["number"] = 7
    log: list[str] = []
    assert reused(tmp_path / "entry", refused, log.append) is None
    assert log == [f"{tmp_path / 'entry'}: damaged, or of another version, and rebuilt ({kind('of another kind')})"]
    discard(tmp_path / "entry")  # as another process does that was slower
    assert list(tmp_path.iterdir()) == []


def test_two_that_find_the_same_damage(
    made: tuple[Path, list[Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has mended it already when this one removes it; both have the data, and so has the next."""
    ids = run(folder).train.folder
    flip_a_bit(ids / "source.values")
    (model,) = (folder / "cache" / "subwords").glob("*/model")
    flip_a_bit(model)
    others: list[Prepared] = []

    def discard_later(path: Path) -> None:
        monkeypatch.undo()
        others.append(run(folder))
        discard(path)

    monkeypatch.setattr(cache, "discard", discard_later)
    assert content(run(folder)) == made[1]
    assert [content(other) for other in others] == [made[1]]
    log: list[str] = []
    run(folder, log)
    assert [line.rsplit(" ", 1)[1] for line in log[len(WARNINGS) :]] == ["reused"] * 3


# ------------------------------------------------------------------------------------- corpora that change meanwhile


def change_before(pass_: str, path: Path, monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    """Replace the file as a user does with `mv`, when the files are read for the n-th time in the way of `pass_`."""
    is_valid = path.name.startswith("valid")
    name, number = {
        "count": ("read_pairs", 1 + is_valid),  # both corpora, one after the other
        "train": ("read_lines", 1 + (path.suffix == ".de")),
        "encode": ("read_pairs", 3 + is_valid),
    }[pass_]
    original, calls = getattr(preparation, name), 0

    def read(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            os.replace(kept, path)
        return original(*arguments, **keywords)

    monkeypatch.setattr(preparation, name, read)


@pytest.mark.parametrize(
    ("pass_", "name", "more"),
    [
        (*where, number // 2 % 2)
        for number, where in enumerate(
            [
                *product(("count", "train", "encode"), ("train.en", "train.de")),
                *product(("count", "encode"), ("valid.en", "valid.de")),
            ]
        )
    ],
)
def test_a_file_replaced_while_it_is_prepared_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pass_: str, name: str, more: int
) -> None:
    write_texts(tmp_path, TEXTS)
    shutil.copytree(tmp_path, tmp_path / "old")
    lines = [f"other words {number}" for number in range(len(TEXTS[name]) + more)]
    write_lines(tmp_path / "new", lines)
    path = tmp_path / name
    change_before(pass_, path, monkeypatch, tmp_path / "new")
    with pytest.raises(UserError) as error:
        run(tmp_path)
    monkeypatch.undo()
    assert str(error.value) == f"{path}: was changed while it was being read; leave it as it is, and start again"
    for old in TEXTS:  # the files of before again: whatever is in the cache must be of them
        shutil.copy(tmp_path / "old" / old, tmp_path / old)
    with_it = content(run(tmp_path))
    shutil.rmtree(tmp_path / "cache")
    assert with_it == content(run(tmp_path))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
def test_what_the_process_lacks_is_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """It is told, and nothing of the cache is thrown away."""
    before = {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}

    def refused(path: Path) -> Any:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(cache, "file_digest", refused)
    with pytest.raises(UserError, match=re.escape(os.strerror(number))):
        run(folder)
    assert {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()} == before


# ------------------------------------------------------------------------------------------- builds that are cut short


def build(path: Path, *names: str) -> None:
    with built(path) as (folder, _):
        for name in names:
            (folder / name).write_text(name)


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with built(tmp_path / "entry") as (folder, _):
            (folder / "file").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_two_builders_of_one_entry(tmp_path: Path) -> None:
    with built(tmp_path / "entry") as (folder, _):
        (folder / "file").write_text("slow")
        build(tmp_path / "entry", "file")  # the other one is faster
    assert checked_facts(tmp_path / "entry") == {}
    assert (tmp_path / "entry" / "file").read_text() == "file"
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


KILLED = """
import os, signal, sys
from pathlib import Path
from nmt.data.cache import built

with built(Path(sys.argv[1])) as (folder, facts):
    (folder / "file").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_build_leaves_nothing_that_counts(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    killed = subprocess.run([sys.executable, "-c", KILLED, entry], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left != entry
    build(entry, "file")
    assert left.exists()  # its process could still be alive
    yesterday = time.time() - 25 * 3600
    for path in (*left.iterdir(), left):
        os.utime(path, (yesterday, yesterday))
    build(tmp_path / "other", "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entry", "other"]


def test_only_folders_of_ours_that_are_abandoned_are_removed(tmp_path: Path) -> None:
    ours, recent = (tmp_path / f"{name}.{'0' * 32}.partial" for name in ("old", "recent"))
    theirs = tmp_path / "their.partial"
    for folder in (ours, theirs, recent):
        folder.mkdir()
        os.utime(folder, (0, 0))
    (recent / "file").touch()
    os.utime(recent, (0, 0))
    file, link = tmp_path / f"file.{'0' * 32}.partial", tmp_path / f"link.{'0' * 32}.partial"
    file.touch()
    os.utime(file, (0, 0))
    link.symlink_to(theirs)
    build(tmp_path / "entry", "file")
    assert set(tmp_path.iterdir()) == {theirs, recent, file, link, tmp_path / "entry"}
