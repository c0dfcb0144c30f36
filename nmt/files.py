"""Writing files so that a crash at any moment leaves either the old file or the new one, never half of one.

Links are not followed when a file is created, so whoever can write to a folder cannot use one to have another file
overwritten. What a killed process leaves behind is removed by the next process that writes the same file. A running
process holds a lock on its unfinished file; on a file system without locks, leftovers are kept for a day.
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
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.partial")  # the end of an unfinished file's name
_STEM = 64  # bytes of the final name that an unfinished file's name begins with
ABANDONED = 24 * 60 * 60  # seconds without a change after which a file counts as abandoned where locks cannot tell
# What a file system answers that cannot flush a folder; anything else, such as EIO, is a failure
_NO_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def written_atomically(path: Path, mode: str = "w", *, former: Path | None = None) -> Iterator[IO[Any]]:
    """Open a temporary file next to `path` for writing, and rename it to `path` if the block ends without an exception.

    `mode` is "w" (UTF-8 text, `\\n` line ends) or "wb". The content is flushed to disk before the rename. The new file
    takes over the permissions of the one it replaces. A link at `path` is replaced and its target left alone; resolve
    the path first to write to the target. The replaced file is renamed to `former`, if that is given; the two names
    never refer to the same file, which damage would then ruin under both.
    """
    permissions = _permissions(path)
    remove_unfinished(path)
    temporary, descriptor = _created_temporary(path, permissions)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(descriptor, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
            with _second_name(path, former) if former is not None and path.exists() else nullcontext():
                _rename(temporary, path)  # while it is open, and so locked
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    remove_unfinished(path)  # of a process that was killed meanwhile


def linked_atomically(existing: Path, path: Path) -> None:
    """Give the file `existing` the second name `path`, replacing any file there; `path` is never missing meanwhile.

    Replacing the file under one name later leaves the other name as it is. Without hard links `path` becomes a copy.
    """
    with _second_name(existing, path):
        pass


@contextmanager
def _second_name(existing: Path, path: Path) -> Iterator[None]:
    """Give the file that is `existing` before the block the second name `path` after it, unless the block fails."""
    if _are_one(existing, path):
        yield
        return
    temporary = temporary_name(path)
    try:
        os.link(existing, temporary)
    except OSError:  # a file system without links; or no such file, which open reports
        with open(existing, "rb") as original, written_atomically(path, "wb") as copy:
            shutil.copyfileobj(original, copy)
            yield
        return
    try:
        yield
        _rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _are_one(left: Path, right: Path) -> bool:
    """Whether both are names of the same file; renaming one to the other would then do nothing."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(left), os.lstat(right))
    return False


def open_refusing_links(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Like `open`, but raise OSError if the file is a link."""

    def opener(name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise OSError(error.errno, "is a link, and links are not followed here", name) from error
            raise

    return open(path, mode, opener=opener, **options)


def temporary_name(path: Path) -> Path:
    """An unpredictable name in the same folder, for a file that is to become `path` or that was `path`."""
    return path.with_name(f"{_stem(path.name)}.{secrets.token_hex(16)}.partial")


def remove_unfinished(path: Path) -> None:
    """Remove the unfinished files of processes that were killed while writing `path`; running ones keep theirs."""
    with suppress(OSError), os.scandir(path.parent) as files:  # a folder can be writable and not readable
        names = [file.name for file in files if file.name.endswith(".partial")]  # out of perhaps tens of thousands
        for name in names:
            if is_unfinished(name, of=path.name):
                _remove_abandoned(path.with_name(name))


def is_unfinished(name: str, *, of: str) -> bool:
    """Whether `written_atomically` could have given `name` to a file on its way to becoming `of`."""
    stem = _stem(of)
    return name.startswith(stem) and UNFINISHED.fullmatch(name, len(stem)) is not None


def locked(descriptor: int) -> bool | None:
    """Try to lock an open file: whether it worked, or None on a file system without locks.

    The system releases the lock when the file is closed or the process ends, however it ends.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # EWOULDBLOCK or EACCES, depending on the system
        return False
    except OSError:
        return None
    return True


def first_foreign_name(folder: Path, *ours: str) -> str | None:
    """The first name in `folder` that matches none of the patterns `ours`; None if all match."""
    names = sorted(entry.name for entry in folder.iterdir())
    return next((name for name in names if not any(fnmatchcase(name, pattern) for pattern in ours)), None)


def _permissions(path: Path) -> int | None:
    """The permissions of the file at `path`; None if there is none. Raises OSError for an impossible name."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def _created_temporary(path: Path, permissions: int | None) -> tuple[Path, int]:
    """Create a file with an unpredictable name next to `path`; returns its path and descriptor, open and locked."""
    while True:
        temporary = temporary_name(path)
        # Until it has the permissions of the file it will replace, nobody else may open it.
        mode = 0o666 if permissions is None else 0o600
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(path)) from error
        if locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            if permissions is not None:
                with suppress(OSError):  # a file system without permissions
                    os.fchmod(descriptor, permissions)
            return temporary, descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _rename(temporary: Path, path: Path) -> None:
    """Move a file to its final place. Raises OSError that names that place, not the temporary file."""
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    _flush_names(path.parent)


def _flush_names(folder: Path) -> None:
    """Flush a folder's list of names to disk, where that is possible: renames keep their order in a power failure."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder can be writable and not readable
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise
    finally:
        os.close(descriptor)


def _remove_abandoned(path: Path) -> None:
    """Remove an unfinished file unless some process is writing it."""
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        flags = os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags | os.O_RDWR)  # some network file systems lock only files open for writing
        except PermissionError:
            descriptor = os.open(path, flags)
        try:
            free = locked(descriptor)
            if free is None:
                free = time.time() - os.fstat(descriptor).st_mtime > ABANDONED
            if free:
                path.unlink()
        finally:
            os.close(descriptor)


def _stem(name: str) -> str:
    """The beginning of an unfinished file's name: `name`, shortened to its beginning and a checksum if it is long."""
    encoded = os.fsencode(name)
    if len(encoded) <= _STEM:
        return name
    return f"{encoded[:_STEM].decode(errors='ignore')}.{hashlib.blake2b(encoded, digest_size=4).hexdigest()}"
