"""Writing files so that a crash at any moment leaves either the old file or the new one, never half of one.

No link is followed where a file is made: nobody who can write to a folder can thereby have another file overwritten.
What a killed process leaves is removed by the next that writes the same file. A process at work holds a lock on its
unfinished file; a file system without locks keeps what was left there for a day.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.partial")  # what the name of an unfinished file ends with
_STEM = 64  # bytes of the name of the file to be that the name of the unfinished one begins with
ABANDONED = 24 * 60 * 60  # seconds without a change, where no lock tells that nobody is at work


@contextmanager
def written_atomically(path: Path, mode: str = "w", *, former: Path | None = None) -> Iterator[IO[Any]]:
    """Open a file beside `path` for writing, and rename it to `path` once the block ends without an exception.

    `mode` is "w" (UTF-8 text, `\\n` line ends) or "wb". The content is flushed to the disk before the rename.
    A file that is replaced hands its permissions on. A link at `path` is replaced, and what it points to left alone;
    who wants that to be written resolves the path before. The file that is replaced is then called `former`, if that
    is given; at no time do both names stand for one file, which could be damaged.
    """
    permissions = _permissions(path)
    remove_unfinished(path)
    beside, descriptor = _made_beside(path, permissions)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(descriptor, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
            with _afterwards_called(former, path):
                _rename(beside, path)  # while it is open, and so locked
                _sync(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def _afterwards_called(former: Path | None, path: Path) -> Iterator[None]:
    """Call `former` what `path` stands for before the block, once the block has put something else there."""
    if former is None or not path.exists() or _are_one(path, former):
        yield
        return
    beside = name_beside(former)
    try:
        os.link(path, beside)
    except OSError:  # a file system without links
        linked_atomically(path, former)
        yield
        return
    try:
        yield
        _rename(beside, former)
        _sync(former.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _are_one(left: Path, right: Path) -> bool:
    """Whether both are names of one file; renaming one to the other would then do nothing."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(left), os.lstat(right))
    return False


def linked_atomically(existing: Path, path: Path) -> None:
    """Give the file `existing` a second name, `path`, in place of the file that has it; at no time is there neither.

    Neither name changes what the other stands for when it is replaced. Without links it becomes a copy.
    """
    if _are_one(existing, path):
        return
    beside = name_beside(path)
    try:
        os.link(existing, beside)
    except FileNotFoundError:
        raise
    except OSError:
        with open(existing, "rb") as original, written_atomically(path, "wb") as copy:
            shutil.copyfileobj(original, copy)
        return
    try:
        _rename(beside, path)
        _sync(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def open_refusing_links(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open as `open` does, but a link in place of the file is refused with an OSError."""

    def opener(name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise OSError(error.errno, "is a link, which is not followed here", name) from error
            raise

    return open(path, mode, opener=opener, **options)


def name_beside(path: Path) -> Path:
    """A path for what is not called `path` yet, or not any more: nobody can know its name before."""
    return path.with_name(f"{_stem(path.name)}.{secrets.token_hex(16)}.partial")


def remove_unfinished(path: Path) -> None:
    """Remove what processes left that were killed while they wrote `path`; those at work keep theirs."""
    with suppress(OSError), os.scandir(path.parent) as files:  # a folder may be one to write to and not to read
        names = [file.name for file in files if file.name.endswith(".partial")]  # of perhaps tens of thousands
        for name in names:
            if is_unfinished(name, of=path.name):
                _remove_abandoned(path.with_name(name))


def is_unfinished(name: str, *, of: str) -> bool:
    """Whether `name` is one that `written_atomically` gives to a file while it is not yet called `of`."""
    stem = _stem(of)
    return name.startswith(stem) and UNFINISHED.fullmatch(name, len(stem)) is not None


def locked(descriptor: int) -> bool | None:
    """Lock an open file for whoever holds it open; whether that was possible, or None where there are no locks.

    The system releases the lock when the file is closed, or the process ends, however it ends.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # EWOULDBLOCK or EACCES, as the system likes
        return False
    except OSError:
        return None
    return True


def first_foreign_name(folder: Path, *ours: str) -> str | None:
    """The first name in `folder` that none of the patterns `ours` has; None where there is no other."""
    names = sorted(entry.name for entry in folder.iterdir())
    return next((name for name in names if not any(fnmatchcase(name, pattern) for pattern in ours)), None)


def _permissions(path: Path) -> int | None:
    """Those of the file at `path`; None where there is none. Raises OSError for a name that no file can have."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def _made_beside(path: Path, permissions: int | None) -> tuple[Path, int]:
    """Make a file that was not there, under a name that nobody can know before; returns it open and locked."""
    while True:
        beside = name_beside(path)
        # Nobody else may open it before it has the permissions of the file that it will replace.
        mode = 0o666 if permissions is None else 0o600
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(path)) from error
        if locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            if permissions is not None:
                with suppress(OSError):  # a file system without permissions
                    os.fchmod(descriptor, permissions)
            return beside, descriptor
        os.close(descriptor)  # another process took it for one that was left, before it was locked


def _rename(beside: Path, path: Path) -> None:
    """Put a file in its place. Raises OSError, which names that place and not the file beside it."""
    try:
        os.replace(beside, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _remove_abandoned(path: Path) -> None:
    """Remove an unfinished file unless a process is writing it."""
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        flags = os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags | os.O_RDWR)  # some network file systems lock only what may be written
        except PermissionError:
            descriptor = os.open(path, flags | os.O_RDONLY)
        try:
            free = locked(descriptor)
            if free is None:
                free = time.time() - os.fstat(descriptor).st_mtime > ABANDONED
            if free:
                path.unlink()
        finally:
            os.close(descriptor)


def _stem(name: str) -> str:
    """What the name of the unfinished file begins with: `name`, or of a long one the beginning and a checksum."""
    encoded = os.fsencode(name)
    if len(encoded) <= _STEM:
        return name
    return f"{encoded[:_STEM].decode(errors='ignore')}.{hashlib.blake2b(encoded, digest_size=4).hexdigest()}"


def _sync(folder: Path) -> None:
    """Put the folder's list of names on the disk too, so that files keep their order through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
