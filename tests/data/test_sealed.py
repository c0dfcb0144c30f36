"""Files with a seal: what was written is read, what is damaged is told, and what is thrown away is gone."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data import sealed
from nmt.data.sealed import discard, opened, read_sealed, write_sealed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sealed file in a folder of its own."""
    (tmp_path / "cache").mkdir()
    write_sealed(tmp_path / "cache" / "entry", b"content")
    return tmp_path / "cache" / "entry"


def seal_of(path: Path) -> Path:
    return path.with_name("entry.seal")


def lengthen_seal(path: Path) -> None:
    seal_of(path).write_bytes(seal_of(path).read_bytes() + b"\n")


def filled_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("a file", encoding="utf-8")


def link_to_a_folder(path: Path) -> None:
    filled_folder(path.parents[1] / "elsewhere")
    path.symlink_to(path.parents[1] / "elsewhere")


OTHERS: dict[str, Callable[[Path], None]] = {
    "a file": Path.touch,
    "nothing": lambda path: None,
    "a folder": filled_folder,
    "a link to a folder": link_to_a_folder,
    "a link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_in_the_place_is_replaced(path: Path, other: str) -> None:
    path.unlink()
    OTHERS[other](path)
    write_sealed(path, b"new")
    assert read_sealed(path) == b"new"
    assert sorted(path.parent.iterdir()) == [path, seal_of(path)]


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_thrown_away_is_gone_and_its_seal(path: Path, other: str) -> None:
    path.unlink()
    OTHERS[other](path)
    discard(path)
    assert list(path.parent.iterdir()) == []
    assert other != "a link to a folder" or (path.parents[1] / "elsewhere" / "inside").exists()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no file": (Path.unlink, "there is no entry$"),
    "no seal": (lambda path: seal_of(path).unlink(), r"there is no entry\.seal$"),
    "an empty seal": (lambda path: seal_of(path).write_bytes(b""), r"entry\.seal is not a seal"),
    "a long seal": (lengthen_seal, r"entry\.seal is not a seal"),
    "another byte": (lambda path: path.write_bytes(b"Content"), "entry is not as it was written"),
    "fewer bytes": (lambda path: path.write_bytes(b"conten"), "entry has 6 bytes instead of 7"),
    "more bytes": (lambda path: path.write_bytes(b"content."), "entry has 8 bytes instead of 7"),
    "a folder": (lambda path: (path.unlink(), filled_folder(path)), "entry is not a file"),
    "a link to itself": (lambda path: (path.unlink(), path.symlink_to(path.name)), "entry: .*symbolic links"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage(path: Path, damage: Callable[[Path], object], message: str) -> None:
    assert read_sealed(path) == b"content"
    damage(path)
    with pytest.raises(ValueError, match=message):
        read_sealed(path)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
def test_what_the_process_lacks_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refused(path: Path) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(sealed, "opened", refused)
    with pytest.raises(OSError, match=os.strerror(number)):
        read_sealed(path)


def test_a_pipe_is_not_waited_for_and_nothing_stays_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    told: list[str] = []

    def attempt(path: Path) -> None:
        with pytest.raises(ValueError, match=f"{path.name} is not a file"):
            opened(path)
        told.append(path.name)

    before = len([*Path("/dev/fd").iterdir()])
    thread = threading.Thread(target=attempt, args=[tmp_path / "pipe"], daemon=True)  # or a mistake waits for ever
    thread.start()
    thread.join(5)
    attempt(tmp_path / "folder")
    assert told == ["pipe", "folder"]
    assert len([*Path("/dev/fd").iterdir()]) == before
