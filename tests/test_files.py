"""Files appear whole or not at all, links are not followed, and only our own unfinished files are removed."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt import files
from nmt.files import (
    is_unfinished,
    open_refusing_links,
    remove_unfinished,
    written_atomically,
)
from tests.conftest import ROOT

TOKEN = "0123456789abcdef" * 2


def write(path: Path, text: str = "new") -> None:
    with written_atomically(path) as file:
        file.write(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_files() -> int:
    return len([*Path("/dev/fd").iterdir()])


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, "old")
    with pytest.raises(TypeError), written_atomically(path) as file:
        file.writelines(["half", 1])
    assert path.read_text(encoding="utf-8") == "old"
    write(path)
    assert path.read_text(encoding="utf-8") == "new"
    assert names(tmp_path) == ["out"]


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    """Not the file beside it, of which the user knows nothing."""
    (tmp_path / "out").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write(tmp_path / "out")
    assert raised.value.filename == str(tmp_path / "out")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["out", "n" * 255, "ü" * 127, "ä" * 40 + ".txt"])
def test_the_name_beside_cannot_be_foreseen(tmp_path: Path, name: str) -> None:
    """Neither by the process nor by the name of before; a link planted there would have its target overwritten."""
    seen = set()
    for _ in range(3):
        with written_atomically(tmp_path / name) as file:
            (beside,) = {*names(tmp_path)} - {name}
            assert is_unfinished(beside, of=name)
            assert str(os.getpid()) not in beside.split(".")
            assert file.name == str(tmp_path / beside)
            seen.add(beside)
    assert len(seen) == 3
    assert names(tmp_path) == [name]


def test_a_link_at_a_name_beside_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by somebody who knows the name."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: TOKEN)
    (tmp_path / f"out.{TOKEN}.partial").symlink_to(victim)
    with pytest.raises(FileExistsError, match="out"):
        write(tmp_path / "out")
    assert victim.read_text(encoding="utf-8") == "mine"
    assert (tmp_path / f"out.{TOKEN}.partial").is_symlink()


def test_a_link_in_place_of_the_file_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "out").symlink_to(victim)
    write(tmp_path / "out")
    assert victim.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "out").is_symlink()


def test_a_file_open_refusing_links_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine", encoding="utf-8")
    (tmp_path / "log").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("log", "dangling"):
        with pytest.raises(OSError, match=f"is a link, and links are not followed here: .*{name}"):
            open_refusing_links(tmp_path / name, "a")
    with open_refusing_links(tmp_path / "victim", "a", encoding="utf-8", newline="\r\n") as file:
        file.write(", longer\n")
    assert (tmp_path / "victim").read_bytes() == b"mine, longer\r\n"
    with pytest.raises(FileNotFoundError):
        open_refusing_links(tmp_path / "absent" / "log", "a")
    assert names(tmp_path) == ["dangling", "log", "victim"]


@pytest.mark.parametrize(("mask", "new"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions(tmp_path: Path, mask: int, new: int) -> None:
    """Those of any new file, or those of the file that is replaced."""
    before = os.umask(mask)
    try:
        write(tmp_path / "new")
        (tmp_path / "old").touch()
        (tmp_path / "old").chmod(0o640)
        with written_atomically(tmp_path / "old"):
            (beside,) = (path for path in tmp_path.iterdir() if is_unfinished(path.name, of="old"))
            assert permissions(beside) == 0o640
        with open_refusing_links(tmp_path / "log", "a"):
            pass
    finally:
        os.umask(before)
    assert permissions(tmp_path / "new") == permissions(tmp_path / "log") == new
    assert permissions(tmp_path / "old") == 0o640


def test_only_our_own_unfinished_files_are_removed(tmp_path: Path) -> None:
    kept = [
        *("out.2024.partial", "out.partial", f"out.{TOKEN}", f"out.{TOKEN.upper()}.partial", f"out.x.{TOKEN}.partial"),
        *(f"output.{TOKEN}.partial", f"my.out.{TOKEN}.partial", f"out.{TOKEN}0.partial"),
    ]
    for name in [*kept, f"out.{TOKEN}.partial"]:
        (tmp_path / name).touch()
    (tmp_path / f"out.{TOKEN[::-1]}.partial").mkdir()
    (tmp_path / f"out.{'a' * 32}.partial").symlink_to(kept[0])
    write(tmp_path / "out")
    links = [f"out.{TOKEN[::-1]}.partial", f"out.{'a' * 32}.partial"]
    assert names(tmp_path) == sorted([*kept, *links, "out"])


WRITER = """
import sys, time
from pathlib import Path
from nmt.files import written_atomically
with written_atomically(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_what_another_process_is_writing_stays_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        write(path, "mine")
        assert len(names(tmp_path)) == 2
        writer.send_signal(signal.SIGKILL)
    assert len(names(tmp_path)) == 2
    remove_unfinished(path)
    assert names(tmp_path) == ["out"]
    assert path.read_text(encoding="utf-8") == "mine"


def test_without_locks_what_was_left_stays_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", none)
    old, young = tmp_path / f"out.{'0' * 32}.partial", tmp_path / f"out.{'1' * 32}.partial"
    old.touch()
    young.touch()
    for path, age in ((old, 86_500), (young, 86_300)):
        os.utime(path, (time.time() - age,) * 2)
    write(tmp_path / "out")
    assert names(tmp_path) == sorted(["out", young.name])


def test_a_name_that_is_too_long_fails_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"), written_atomically(tmp_path / ("n" * 300)):
        pytest.fail("nothing is to be written")
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------------------------- when things go wrong


def test_the_file_that_is_replaced_takes_another_name_once_the_new_one_is_whole(tmp_path: Path) -> None:
    """So that at no time one damaged file is both, and one of the two names always has a whole file."""
    path, former = tmp_path / "state", tmp_path / "state.1"
    for content in ("oldest", "old"):
        with written_atomically(path, former=former) as file:
            file.write(content)
    with pytest.raises(TypeError), written_atomically(path, former=former) as file:
        file.writelines(["new", 1])
    assert (path.read_text(encoding="utf-8"), former.read_text(encoding="utf-8")) == ("old", "oldest")
    with written_atomically(path, former=former) as file:
        file.write("new")
    assert (path.read_text(encoding="utf-8"), former.read_text(encoding="utf-8")) == ("new", "old")
    assert names(tmp_path) == ["state", "state.1"]


# ------------------------------------------------------------------------------------------------- when things go wrong


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And then the names: a power failure leaves no name without its content."""
    synced: list[object] = []

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append(names(tmp_path) if stat.S_ISDIR(status.st_mode) else status.st_size)

    monkeypatch.setattr(os, "fsync", sync)
    write(tmp_path / "state", "old")
    with written_atomically(tmp_path / "state", former=tmp_path / "state.1") as file:
        file.write("newer")
    assert [*synced[:3], synced[4]] == [3, ["state"], 5, ["state", "state.1"]]


def test_a_disk_that_fails_is_an_error_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write(tmp_path / "out", "old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write(tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["open", "fsync"])
def test_a_folder_that_cannot_be_flushed_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As on some file systems, or with the permissions -wx; the file is whole, and in its place."""
    usual, before = getattr(os, name), open_files()

    def refused(file: Path | int, *others: int) -> object:
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode) if isinstance(file, int) else file.is_dir()
        if is_folder:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return usual(file, *others)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, refused)
        write(tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "new"
    assert names(tmp_path) == ["out"]
    assert open_files() == before


def test_without_permissions_a_file_stays_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else opens it before it has those of the file that it replaces, which a file system may refuse."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    write(tmp_path / "out", "old")
    monkeypatch.setattr(os, "fchmod", refused)
    write(tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "new"
    assert permissions(tmp_path / "out") == 0o600


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_another_process_takes_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """Before it is locked; the other has removed it, or is about to."""
    locked, taken, before = files.locked, [], open_files()

    def locked_late(descriptor: int) -> bool | None:
        if taken:
            return locked(descriptor)
        taken.extend(tmp_path.iterdir())
        if is_gone:
            taken[0].unlink()
        return is_gone

    monkeypatch.setattr(files, "locked", locked_late)
    write(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert open_files() == before
