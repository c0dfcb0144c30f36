"""Cached files whose every byte is checked when they are opened, and entries of a cache that are damaged.

A seal is the size of a file and its BLAKE2b hash, computed from what was to be written. A small file has its own beside
it, in `NAME.seal`; the seals of token ids are in their `meta.json`. The hash is to find accidents, of whatever kind and
size, and not to keep out who may write to the cache, for they may write seals too. BLAKE2b is what corpora are hashed
with, needs no instruction that a processor may lack, and reads a gigabyte a second on each core, without Python's lock.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
from pathlib import Path
from typing import IO, NamedTuple

from nmt.files import name_beside, written_atomically

_OF_THE_PROCESS = frozenset((errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM))
_LONGEST = 100  # bytes of a file with a seal
_SEAL = re.compile(rb"([0-9a-f]{40}) ([0-9]{1,18})\n")


class Seal(NamedTuple):
    """What a file must be."""

    size: int
    checksum: str


def new_checksum() -> "hashlib.blake2b":
    """The hash of a seal, of nothing yet."""
    return hashlib.blake2b(digest_size=20)


def sealed(content: bytes) -> Seal:
    """The seal of a file with this content."""
    checksum = new_checksum()
    checksum.update(content)
    return Seal(len(content), checksum.hexdigest())


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file with its seal, in place of whatever is there; raises OSError.

    The seal is first: a file without one is damaged, and a seal without its file is no more than work cut short.
    """
    discard(path)
    seal = sealed(content)
    with written_atomically(_seal_of(path)) as file:
        file.write(f"{seal.checksum} {seal.size}\n")
    with written_atomically(path, "wb") as file:
        file.write(content)


def is_damage(error: OSError) -> bool:
    """Whether a file that cannot be read is at fault, and not the process, which lacks memory or permission."""
    return error.errno not in _OF_THE_PROCESS


def read_sealed(path: Path) -> bytes:
    """The content of a file as it was written; raises ValueError when it is damaged in any way, saying how.

    Raises OSError when not the file is at fault.
    """
    try:
        with opened(_seal_of(path)) as file:
            text = file.read(_LONGEST)
        parts = _SEAL.fullmatch(text)
        if parts is None:
            raise ValueError(f"{_seal_of(path).name} is no seal")
        seal = Seal(int(parts[2]), parts[1].decode())
        with opened(path) as file:
            check_size(file, path.name, seal)
            content = file.read(seal.size)
    except FileNotFoundError as error:
        raise ValueError(f"there is no {Path(error.filename).name}") from None
    except OSError as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path.name}: {error.strerror or error}") from None
    if sealed(content) != seal:
        raise ValueError(f"{path.name} is not as it was written")
    return content


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading; raises OSError, or ValueError for what is none, without waiting for a pipe's writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path.name} is no file")
    return os.fdopen(descriptor, "rb")


def check_size(file: IO[bytes], name: str, seal: Seal) -> None:
    """Raise ValueError if an open file has another size than its seal."""
    size = os.fstat(file.fileno()).st_size
    if size != seal.size:
        raise ValueError(f"{name} has {size:,} bytes instead of {seal.size:,}")


def discard(path: Path) -> None:
    """Remove an entry of a cache, a file or a folder, and its seal; raises OSError.

    It is renamed first, so that it is gone at once, and whoever has it open goes on reading.
    """
    for each in (path, _seal_of(path)):
        aside = name_beside(each)
        try:
            each.rename(aside)
        except FileNotFoundError:
            continue
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
        else:
            aside.unlink()


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.seal")
