"""Writing files so that a crash at any moment leaves either the old file or the new one, never half of one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_atomically(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file beside `path` for writing, and rename it to `path` once the block ends without an exception.

    `mode` is "w" (UTF-8 text, `\\n` line ends) or "wb". The content is flushed to the disk before the rename.
    A file that is replaced hands its permissions on.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(beside, mode, **text) as file:  # type: ignore[call-overload]
            with suppress(FileNotFoundError):
                shutil.copymode(path, beside)  # before anything is written: others must not read it meanwhile
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _sync(folder: Path) -> None:
    """Put the folder's list of names on the disk too, so that files keep their order through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def first_stranger(folder: Path, *ours: str) -> str | None:
    """The first name in `folder` that none of the patterns `ours` has; None where there is no other."""
    names = sorted(entry.name for entry in folder.iterdir())
    return next((name for name in names if not any(fnmatchcase(name, pattern) for pattern in ours)), None)
