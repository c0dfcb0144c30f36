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
from nmt.files import is_unfinished, linked_atomically, open_refusing_links, remove_unfinished, written_atomically
from tests.conftest import ROOT

TOKEN = "0123456789abcdef" * 2


def write(path: Path, text: str = "new") -> None:
    with written_atomically(path) as file:
        file.write(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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


def test_the_name_beside_cannot_be_foreseen(tmp_path: Path) -> None:
    """Neither by the process nor by the name of before; a link planted there would have its target overwritten."""
    seen = set()
    for _ in range(3):
        with written_atomically(tmp_path / "out"):
            (name,) = {*names(tmp_path)} - {"out"}
            assert is_unfinished(name, of="out")
            assert str(os.getpid()) not in name.split(".")
            seen.add(name)
    assert len(seen) == 3


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


def test_a_file_opened_itself_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine", encoding="utf-8")
    (tmp_path / "log").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("log", "dangling"):
        with pytest.raises(OSError, match=f"is a link, and links are not followed here: .*{name}"):
            open_refusing_links(tmp_path / name, "a")
    with open_refusing_links(tmp_path / "victim", "a", encoding="utf-8") as file:
        file.write(", longer")
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "mine, longer"
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
    os.utime(old, (time.time() - 90_000,) * 2)
    write(tmp_path / "out")
    assert names(tmp_path) == sorted(["out", young.name])


@pytest.mark.parametrize("name", ["n" * 255, "ü" * 127, "ä" * 40 + ".txt"])
def test_long_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with written_atomically(path) as file:
        file.write("x")
        (beside,) = names(tmp_path)
        assert is_unfinished(beside, of=name)
        assert not is_unfinished(beside, of=f"{name[:-1]}x")
    (tmp_path / beside).touch()
    write(path)
    assert names(tmp_path) == [name]


def test_a_name_that_is_too_long_fails_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"), written_atomically(tmp_path / ("n" * 300)):
        pytest.fail("nothing is to be written")
    assert names(tmp_path) == []


@pytest.mark.parametrize("links", [True, False])
def test_a_second_name_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """It takes the place of the older file at once; a file that is written anew leaves the second name its content."""
    if not links:

        def refused(*_: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refused)
    newest, previous = tmp_path / "state", tmp_path / "state.1"
    for text in ("first", "second", "third"):
        write(newest, text)
        for _ in range(2):  # as a run that was killed after it, and does it again
            linked_atomically(newest, previous)
        assert previous.read_text(encoding="utf-8") == text
        write(newest, "newer")
        assert previous.read_text(encoding="utf-8") == text
    assert names(tmp_path) == ["state", "state.1"]


def test_a_second_name_for_nothing(tmp_path: Path) -> None:
    write(tmp_path / "state.1", "old")
    with pytest.raises(FileNotFoundError):
        linked_atomically(tmp_path / "state", tmp_path / "state.1")
    assert (tmp_path / "state.1").read_text(encoding="utf-8") == "old"


def test_the_file_that_is_replaced_takes_another_name_once_the_new_one_is_whole(tmp_path: Path) -> None:
    """So that at no time one damaged file is both."""
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
    assert sorted(each.name for each in tmp_path.iterdir()) == ["state", "state.1"]
