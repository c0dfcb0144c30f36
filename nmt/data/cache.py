"""The data cache: folders of files, each named by a hash of what it was made from and checked whenever it is used.

    CACHE/KIND/KEY/contents    facts about the entry, and the BLAKE2b hash of each of its files
    CACHE/KIND/KEY/...         its files

An entry is never out of date, so several runs may share a cache. It is built under another name and renamed, so it
exists completely or not at all. Reading it hashes every byte, and a damaged entry is removed and made again. The hashes
detect accidents of any kind and size, not attacks: whoever can write to the cache can write hashes, too.

It knows names and bytes; it knows nothing about what is in the files.
"""

import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from nmt.files import ABANDONED, UNFINISHED, file_digest, new_digest, temporary_name

Log = Callable[[str], None]
Facts = dict[str, Any]  # about an entry: whatever JSON can hold
Entry = TypeVar("Entry")

CONTENTS = "contents"
# What the process lacks, such as memory or permission: no damage, so nothing is removed
_NOT_DAMAGE = frozenset((errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM))
_UNFINISHED = re.compile(f".+{UNFINISHED.pattern}")  # whatever the folder was going to be called


def cache_key(made_from: Any) -> str:
    """The name of an entry that is made from this, which JSON can hold."""
    return new_digest(json.dumps(made_from).encode()).hexdigest()


def reused(path: Path, read: Callable[[Path, Facts], Entry], log: Log) -> Entry | None:
    """What `read` makes of the entry at `path` and its facts, or None if there is no entry.

    An entry that is damaged, that another process is removing, or that is of another version, so that `read` fails, is
    reported and removed. Raises OSError if the cache cannot be used.
    """
    if not path.exists():
        return None
    try:
        return read(path, checked_facts(path))
    except (ValueError, LookupError, TypeError, AttributeError, FileNotFoundError) as error:
        log(f"{path}: damaged, or of another version, and rebuilt ({error})")
        discard(path)
        return None


def checked_facts(path: Path) -> Facts:
    """The facts about the entry at `path`, all files of which are checked, on all cores.

    Raises ValueError that says what is damaged, and OSError if the entry cannot be read for another reason.
    """
    try:
        digest, _, body = (path / CONTENTS).read_bytes().partition(b"\n")
        if digest != new_digest(body).hexdigest().encode():
            raise ValueError(f"{CONTENTS} is not as it was written")
        contents = json.loads(body)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(file_digest, [path / name for name in contents["files"]])
        for (name, expected), actual in zip(contents["files"].items(), found, strict=True):
            if actual != expected:
                raise ValueError(f"{name} is not as it was written")
    except OSError as error:
        if error.errno in _NOT_DAMAGE:
            raise
        missing = isinstance(error, FileNotFoundError)
        name = Path(error.filename or path).name
        raise ValueError(f"there is no {name}" if missing else f"{name}: {error.strerror or error}") from None
    facts: Facts = contents["facts"]
    return facts


@contextmanager
def built(path: Path) -> Iterator[tuple[Path, Facts]]:
    """An empty folder and empty facts to fill, which become the entry at `path` if the block ends without an exception.

    Several processes may build the same entry: the first one to finish wins, and the others' are equal anyway.
    """
    facts: Facts = {}
    with unfinished(path) as folder:
        yield folder, facts
        files = sorted(folder.iterdir())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            digests = pool.map(file_digest, files)
        described = dict(zip((file.name for file in files), digests, strict=True))
        body = json.dumps({"facts": facts, "files": described}).encode()
        (folder / CONTENTS).write_bytes(new_digest(body).hexdigest().encode() + b"\n" + body)
        try:
            folder.rename(path)
        except OSError:
            if not path.is_dir():
                raise


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, which no other process has, to be renamed to it.

    Where it was not, it is removed after the block, or, where this process is killed, by who makes another a day later.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    folder = temporary_name(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def discard(path: Path) -> None:
    """Remove an entry; raises OSError.

    It is renamed first, so that it disappears at once, and whoever has its files open can go on reading.
    """
    aside = temporary_name(path)
    with suppress(FileNotFoundError):  # another process was faster
        path.rename(aside)
        shutil.rmtree(aside)


def _remove_abandoned(parent: Path) -> None:
    """Remove what killed processes left: unfinished folders to which nothing was written for a day."""
    for folder in parent.iterdir():
        if not _UNFINISHED.fullmatch(folder.name) or folder.is_symlink():
            continue
        try:
            newest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        except OSError:
            continue  # its process has just finished it
        if newest < time.time() - ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
