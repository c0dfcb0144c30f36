"""A cache with damage of any kind: training has the data it would have had, and says in a line what is rebuilt."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Config
from nmt.data import binarised, binarising, cache, checked_corpora
from nmt.data import sealed as sealed_module
from nmt.data.binarised import PairedIds
from nmt.data.preparation import Prepared, prepare
from nmt.data.sealed import discard, read_sealed, write_sealed
from nmt.errors import UserError
from tests.conftest import data_section

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
    names = (train.folder, valid.folder, prepared.valid_digests, train.report, valid.report)
    return [models, rows, [train.text(row) for row in range(len(train))], names]


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power fails here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("made")
    for name, lines in TEXTS.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder, content(run(folder))


@pytest.fixture
def folder(made: tuple[Path, list[Any]]) -> Iterator[Path]:
    """A prepared corpus whose cache may be damaged; the paths are always the same."""
    kept = made[0].with_name("kept")
    shutil.copytree(made[0] / "cache", kept, dirs_exist_ok=True)
    yield made[0]
    discard(made[0] / "cache")
    kept.rename(made[0] / "cache")


def flipped(path: Path) -> None:
    """One bit, in the middle."""
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)


def of_another_kind(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def replaced(path: Path) -> None:
    """By as many bytes of a sort that JSON and numbers may have."""
    path.write_bytes(b"1" * path.stat().st_size)


def filled_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("a file", encoding="utf-8")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a bit flipped": flipped,
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,
    "digits": replaced,
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "extended": lambda path: path.write_bytes(path.read_bytes() + b"\0") and None,
    "missing": Path.unlink,
    "a folder": of_another_kind(filled_folder),
    "a pipe": of_another_kind(os.mkfifo),
    "a link to itself": of_another_kind(lambda path: path.symlink_to(path.name)),
}
FILES = [
    "ids/*/source.ids",
    "ids/*/target.ids",
    "ids/*/source.offsets",
    "ids/*/target.text",
    "ids/*/source.text_offsets",
    "ids/*/meta.json",
    "ids/*/meta.json.seal",
    "subwords/*.model",
    "subwords/*.model.seal",
    "checked/*.json",
    "checked/*.json.seal",
    "faults/*.json",
    "faults/*.json.seal",
]
WARNINGS = [  # of the corpus above
    "warning: data.train: 35 of 40 pairs (87.5%) repeat another one; ",
    "warning: data.valid: 3 of 3 pairs (100.0%) are training pairs, too, ",
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", FILES)
def test_damage_is_said_and_mended(made: tuple[Path, list[Any]], folder: Path, pattern: str, damage: str) -> None:
    path = sorted((folder / "cache").glob(pattern))[0]
    entry = path.parent if pattern.startswith("ids") else path.with_name(path.name.removesuffix(".seal"))
    DAMAGES[damage](path)
    log: list[str] = []
    assert content(run(folder, log)) == made[1]
    said = [line for line in log if "rebuilt" in line]
    if damage == "missing" and path == entry:
        assert said == []  # as if it had never been there
    else:
        (line,) = said
        assert line.startswith(f"{entry}: damaged, or of another version, and rebuilt (")
    assert all(any(line.startswith(warning) for line in log) for warning in WARNINGS)
    log.clear()
    assert content(run(folder, log)) == made[1]
    warnings, reused = log[:2], log[2:]
    assert all(map(str.startswith, warnings, WARNINGS))
    assert [line.rsplit(" ", 1)[1] for line in reused] == ["reused"] * 3
    assert not list((folder / "cache").rglob("*.partial"))


@pytest.mark.parametrize("damage", ["missing", "a folder", "a pipe", "a link to itself", "empty"])
def test_a_whole_folder_of_ids_may_be_gone_or_something_else(
    made: tuple[Path, list[Any]], folder: Path, damage: str
) -> None:
    path = sorted((folder / "cache" / "ids").iterdir())[0]
    shutil.rmtree(path)
    path.touch()
    DAMAGES[damage](path)
    assert content(run(folder)) == made[1]


NOT_OURS = {
    "null": b"null",
    "a number": b"7",
    "text": b'"text"',
    "a list": b"[1, 2, 3]",
    "a list of a text": b'["2"]',
    "a list of true": b"[true]",
    "a list of a number and a text": b'[1, "2"]',
    "an object": b"{}",
    "an object of null": b'{"format": null, "report": null, "files": null, "pieces": null, "id_type": null}',
    "nested deeply": b"[" * 100_000 + b"]" * 100_000,
    "a number of 5,000 digits": b"9" * 5000,
    "cut off": b'{"format": 2',
    "no UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("wrong", NOT_OURS)
@pytest.mark.parametrize("pattern", ["ids/*/meta.json", "checked/*.json", "faults/*.json", "subwords/*.model"])
def test_other_content_with_a_right_seal(made: tuple[Path, list[Any]], folder: Path, pattern: str, wrong: str) -> None:
    path = sorted((folder / "cache").glob(pattern))[0]
    write_sealed(path, NOT_OURS[wrong])
    log: list[str] = []
    assert content(run(folder, log)) == made[1]
    assert sum("rebuilt" in line for line in log) == 1


def resealed(folder: Path, name: str, values: Any) -> None:
    """Write other values into a file of ids, with a seal that is right."""
    data = np.asarray(values).tobytes()
    (folder / name).write_bytes(data)
    meta = json.loads(read_sealed(folder / "meta.json"))
    meta["files"][name] = [len(data), hashlib.blake2b(data, digest_size=20).hexdigest()]
    write_sealed(folder / "meta.json", json.dumps(meta).encode())


@pytest.mark.parametrize(
    ("name", "type_", "change", "said"),
    [
        ("source.ids", "<u2", lambda ids: np.where(ids == ids[-1], 60, ids), "piece 60 of a vocabulary of 60"),
        ("target.ids", "<u2", lambda ids: np.full_like(ids, 65535), "piece 65535 of a vocabulary of 60"),
        ("source.ids", "<u2", lambda ids: ids[:-1], "the rows do not fill their files"),
        ("source.offsets", "<i8", lambda offsets: offsets * 0, "the rows do not fill their files"),
        ("source.offsets", "<i8", lambda offsets: offsets[:-1], "the rows do not fill their files"),
        ("target.offsets", "<i8", lambda offsets: offsets + 1, "the rows do not fill their files"),
        ("target.offsets", "<i8", lambda offsets: offsets[[0, 2, 1, *range(3, len(offsets))]], "not in order"),
        ("target.text_offsets", "<i8", lambda offsets: np.where(offsets == offsets[1], -9, offsets), "not in order"),
    ],
)
def test_ids_and_rows_that_cannot_be(
    made: tuple[Path, list[Any]],
    folder: Path,
    name: str,
    type_: str,
    change: Callable[[Any], Any],
    said: str,
) -> None:
    (train,) = (path.parent for path in (folder / "cache").glob("ids/*/source.text"))
    resealed(train, name, change(np.fromfile(train / name, dtype=type_)))
    with pytest.raises(ValueError, match=said):
        PairedIds(train)
    log: list[str] = []
    assert content(run(folder, log)) == made[1]
    assert sum(said in line for line in log) == 1


def test_a_model_with_another_text_of_one_piece_is_not_used(made: tuple[Path, list[Any]], folder: Path) -> None:
    """It would load, and train on other words."""
    (path,) = (folder / "cache" / "subwords").glob("*.model")
    model = path.read_bytes()
    assert b"dog" in model
    path.write_bytes(model.replace(b"dog", b"cat"))
    assert content(run(folder)) == made[1]


def test_the_cache_of_an_earlier_version_is_made_anew(
    made: tuple[Path, list[Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids keep their name, by which a run knows its data."""
    shutil.rmtree(folder / "cache")
    for module in (binarised, binarising):
        monkeypatch.setattr(module, "FORMAT", 1)
    run(folder)
    monkeypatch.undo()
    log: list[str] = []
    assert content(run(folder, log)) == made[1]
    assert sum("of format 1, not 2" in line for line in log) == 2


def test_two_that_find_the_same_damage(
    made: tuple[Path, list[Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has mended it already when this one removes it; both have the data, and so has the next."""
    (ids,) = (path.parent for path in (folder / "cache").glob("ids/*/source.text"))
    flipped(ids / "source.ids")
    (model,) = (folder / "cache" / "subwords").glob("*.model")
    flipped(model)
    others: list[Prepared] = []

    def discard_later(path: Path) -> None:
        monkeypatch.undo()
        others.append(run(folder))
        discard(path)

    monkeypatch.setattr(cache, "discard", discard_later)
    assert content(run(folder)) == made[1]
    assert [content(other) for other in others] == [made[1]]
    flipped(ids / "target.ids")
    monkeypatch.setattr(cache, "discard", discard_later)
    assert content(run(folder)) == made[1]
    assert content(others[1]) == made[1]
    log: list[str] = []
    run(folder, log)
    assert [line.rsplit(" ", 1)[1] for line in log[len(WARNINGS) :]] == ["reused"] * 3


# ------------------------------------------------------------------------------------- corpora that change meanwhile


def change_before(pass_: str, path: Path, monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    """Replace the file as a user does with `mv`, when the files are read for the n-th time in the way of `pass_`."""
    is_valid = path.name.startswith("valid")
    name, number = {
        "check": ("check_corpora", 1),
        "count": ("read_pairs", 1 + is_valid),  # both corpora, one after the other
        "train": ("read_pairs", 3),
        "encode": ("read_pairs", 4 + is_valid),
    }[pass_]
    original, calls = getattr(checked_corpora, name), 0

    def read(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            os.replace(kept, path)
        return original(*arguments, **keywords)

    monkeypatch.setattr(checked_corpora, name, read)


@pytest.mark.parametrize(("name", "more"), [("train.en", 0), ("train.de", 1), ("valid.en", 1), ("valid.de", 0)])
@pytest.mark.parametrize("pass_", ["check", "count", "train", "encode"])
def test_a_file_replaced_while_it_is_prepared_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pass_: str, name: str, more: int
) -> None:
    for file, lines in TEXTS.items():
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    shutil.copytree(tmp_path, tmp_path / "old")
    lines = [f"other words {number}" for number in range(len(TEXTS[name]) + more)]
    (tmp_path / "new").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
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


def test_a_file_replaced_before_it_is_read_for_validation(made: tuple[Path, list[Any]], folder: Path) -> None:
    import torch

    from nmt.experiment.validation import build_validation

    prepared, path = run(folder), folder / "valid.de"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Hund", b"Mund"))
    try:
        with pytest.raises(UserError, match=r"valid\.de: was changed while it was being read"):
            build_validation(config(folder), prepared, torch.device("cpu"))
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
def test_what_the_process_lacks_is_no_damage(
    made: tuple[Path, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It is told, and nothing of the cache is thrown away."""
    folder = tmp_path / "copy"
    shutil.copytree(made[0], folder)
    before = {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}

    def refused(path: Path) -> Any:
        raise OSError(number, os.strerror(number), str(path))

    for module in (sealed_module, binarised):
        monkeypatch.setattr(module, "opened", refused)
    with pytest.raises(UserError, match=re.escape(os.strerror(number))):
        run(folder)
    assert {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()} == before
