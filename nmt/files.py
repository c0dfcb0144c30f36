"""Writing files so that a crash at any moment leaves either the old file or the new one, never half of one.

Links are not followed when a file is created, so whoever can write to a folder cannot use one to have another file
overwritten. What a killed process leaves behind is removed by the next process that writes the same file. A running
process holds a lock on its unfinished file; on a file system without locks, leftovers are kept for a day. So they are
on Windows, where an open file can be neither renamed nor removed, and so is closed before it gets its name.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl

    _OPEN_FILES_MOVE = True
except ImportError:  # Windows
    import msvcrt

    _OPEN_FILES_MOVE = False

UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.partial")  # the end of an unfinished file's name
ABANDONED = 24 * 60 * 60  # seconds without a change after which a file counts as abandoned where locks cannot tell
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_STEM = 40  # characters of the final name that an unfinished file's name begins with; a name has at most 255 bytes


def new_digest(content: bytes = b"") -> "hashlib.blake2b":
    """The hash function for everything that is recognized by its content, which has hashed `content` so far.

    BLAKE2b needs no special processor instructions and reads a gigabyte per second on each core.
    """
    return hashlib.blake2b(content, digest_size=16)


def file_digest(path: Path) -> str:
    """The hash of the bytes of a file. Raises OSError."""
    digest, buffer = new_digest(), bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
    return digest.hexdigest()


@contextmanager
def written_atomically(path: Path, mode: str = "w", *, former: Path | None = None) -> Iterator[IO[Any]]:
    """Open a temporary file next to `path` for writing, and rename it to `path` if the block ends without an exception.

    `mode` is "w" (UTF-8 text, `\\n` line ends) or "wb". The content is flushed to disk before the rename. The new file
    takes over the permissions of the one it replaces. A link at `path` is replaced and its target left alone; resolve
    the path first to write to the target. The replaced file is renamed to `former`, if that is given; for a moment
    there is then no file at `path`.
    """
    permissions = _permissions(path)
    remove_unfinished(path)
    temporary, descriptor = _created_temporary(path, permissions)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, mode, opener=lambda *_: descriptor, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not _OPEN_FILES_MOVE:
                file.close()
            if former is not None and path.exists():
                rename(path, former)
            rename(temporary, path)  # where it can be, while it is open, and so locked
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    remove_unfinished(path)  # of a process that was killed meanwhile


def copy_atomically(source: Path, path: Path) -> None:
    """Copy a file, as `written_atomically` writes one."""
    with open(source, "rb") as original, written_atomically(path, "wb") as copy:
        shutil.copyfileobj(original, copy)


def rename(source: Path, path: Path) -> None:
    """Rename a file to `path`, replacing any file there; a power failure keeps the order of renames.

    Raises OSError that names `path`.
    """
    try:
        os.replace(source, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    with suppress(OSError):  # a file system that cannot flush a folder, or a folder that may not be read
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def open_refusing_links(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Like `open`, but raise OSError if the file is a link."""

    def opener(name: str, flags: int) -> int:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "is a link, and links are not followed here", name)
        return os.open(name, flags | _NO_LINK, 0o666)

    return open(path, mode, opener=opener, **options)


def temporary_name(path: Path) -> Path:
    """An unpredictable name in the same folder, for a file that is to become `path` or that was `path`."""
    return path.with_name(f"{path.name[:_STEM]}.{secrets.token_hex(16)}.partial")


def remove_unfinished(path: Path) -> None:
    """Remove the unfinished files of processes that were killed while writing `path`; running ones keep theirs."""
    with suppress(OSError), os.scandir(path.parent) as files:  # a folder can be writable and not readable
        names = [file.name for file in files if file.name.endswith(".partial")]  # out of perhaps tens of thousands
        for name in names:
            if is_unfinished(name, of=path.name):
                _remove_abandoned(path.with_name(name))


def is_unfinished(name: str, *, of: str) -> bool:
    """Whether `written_atomically` could have given `name` to a file on its way to becoming `of`."""
    stem = of[:_STEM]
    return name.startswith(stem) and UNFINISHED.fullmatch(name, len(stem)) is not None


def locked(descriptor: int) -> bool | None:
    """Try to lock an open file: whether it worked, or None on a file system without locks.

    The system releases the lock when the file is closed or the process ends, however it ends.
    """
    try:
        if _OPEN_FILES_MOVE:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):  # EWOULDBLOCK or EACCES, depending on the system
        return False
    except OSError:
        return None
    return True


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
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, mode)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(path)) from error
        if locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            if permissions is not None:
                with suppress(OSError, AttributeError):  # a file system, or Windows, without permissions
                    os.fchmod(descriptor, permissions)
            return temporary, descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove an unfinished file unless some process is writing it."""
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        # Some network file systems lock only files open for writing.
        descriptor = os.open(path, _NO_LINK | getattr(os, "O_NONBLOCK", 0) | os.O_RDWR)
        try:
            free = locked(descriptor) if _OPEN_FILES_MOVE else None
            if free:
                path.unlink()
        finally:
            os.close(descriptor)
        if free is None and time.time() - os.lstat(path).st_mtime > ABANDONED:
            path.unlink()
