"""Cached files whose every byte is checked when they are opened, and what becomes of damaged ones.

A seal is the size of a file and its BLAKE2b hash, computed from what was to be written. A small file has its seal next
to it, in `NAME.seal`; the seals of token ids are in their `meta.json`. Seals detect accidents of any kind and size, not
attacks: whoever can write to the cache can write seals too. BLAKE2b also hashes the corpora; it needs no special
processor instructions and reads a gigabyte per second on each core, outside Python's lock.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from nmt.files import temporary_name, written_atomically

_OF_THE_PROCESS = frozenset((errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM))
_LONGEST = 100  # bytes of a seal file
_SEAL = re.compile(rb"([0-9a-f]{40}) ([0-9]{1,18})\n")


class Seal(NamedTuple):
    """What a file must contain."""

    size: int
    checksum: str


def new_checksum() -> "hashlib.blake2b":
    """The hash function of seals, with nothing hashed yet."""
    return hashlib.blake2b(digest_size=20)


def sealed(content: bytes) -> Seal:
    """The seal of a file with this content."""
    checksum = new_checksum()
    checksum.update(content)
    return Seal(len(content), checksum.hexdigest())


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file with its seal, replacing whatever is there; raises OSError.

    The seal comes first: a file without a seal is damaged, while a seal without its file is just interrupted work.
    """
    discard(path)
    seal = sealed(content)
    with written_atomically(_seal_of(path)) as file:
        file.write(f"{seal.checksum} {seal.size}\n")
    with written_atomically(path, "wb") as file:
        file.write(content)


@contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Turn an OSError into a ValueError unless the process is at fault, as it lacks memory or permission."""
    try:
        yield
    except OSError as error:
        if error.errno in _OF_THE_PROCESS:
            raise
        name = Path(error.filename or path).name
        missing = isinstance(error, FileNotFoundError)
        raise ValueError(f"there is no {name}" if missing else f"{name}: {error.strerror or error}") from None


def read_sealed(path: Path) -> bytes:
    """The content of a file as it was written.

    Raises ValueError saying how the file is damaged, and OSError when the file is not at fault.
    """
    with telling_damage(path):
        with opened(_seal_of(path)) as file:
            text = file.read(_LONGEST)
        parts = _SEAL.fullmatch(text)
        if parts is None:
            raise ValueError(f"{_seal_of(path).name} is not a seal")
        seal = Seal(int(parts[2]), parts[1].decode())
        with opened(path) as file:
            check_size(file, path.name, seal)
            content = file.read(seal.size)
    if sealed(content) != seal:
        raise ValueError(f"{path.name} is not as it was written")
    return content


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, without waiting for the writer of a pipe.

    Raises OSError, and ValueError for a folder, pipe or device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path.name} is not a file")
    return os.fdopen(descriptor, "rb")


def check_size(file: IO[bytes], name: str, seal: Seal) -> None:
    """Raise ValueError unless an open file has the size in its seal."""
    size = os.fstat(file.fileno()).st_size
    if size != seal.size:
        raise ValueError(f"{name} has {size:,} bytes instead of {seal.size:,}")


def discard(path: Path) -> None:
    """Remove a cache entry, a file or a folder, and its seal; raises OSError.

    It is renamed first, so that it disappears at once, and whoever has it open can go on reading.
    """
    for entry in (path, _seal_of(path)):
        aside = temporary_name(entry)
        try:
            entry.rename(aside)
        except FileNotFoundError:
            continue
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
        else:
            aside.unlink()


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.seal")
