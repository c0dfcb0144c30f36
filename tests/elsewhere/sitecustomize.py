"""Python as on Windows, as far as Linux can show it; Python runs this file at its start where it is on the path.

What only POSIX has is gone, for the package or for all; `msvcrt` locks as there. Files that this process has open or
mapped can be neither renamed nor removed, nothing replaces a folder, folders cannot be opened, and names have none of
the characters that Windows refuses. `select` refuses pipes. Unless said otherwise, text is in Windows-1252, with
`\\r\\n`.
"""

import builtins
import errno
import fcntl
import io
import os
import re
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

GONE = (os, "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "sched_getaffinity", "getuid"), (signal, "SIGHUP", "SIGPIPE")
REFUSED = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$')
_import, _open, _system_open, _select, _mkdir = builtins.__import__, io.open, os.open, select.select, os.mkdir


def locking(descriptor: int, mode: int, count: int) -> None:
    """As msvcrt.locking(descriptor, LK_NBLCK, count)."""
    assert (mode, count) == (2, 1)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "is locked") from None


def imported(name: str, globals: Any = None, *more: Any, **others: Any) -> ModuleType:  # noqa: A002 - its name there
    """As __import__, in the package with what is there."""
    if (globals or {}).get("__name__", "").startswith("nmt."):
        if name == "fcntl":
            raise ImportError(name)
        if name == "msvcrt":
            return msvcrt
    return _import(name, globals, *more, **others)


def in_use(path: Path) -> bool:
    """Whether this process has the file, or one in the folder, open or mapped."""
    opened = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    mapped = [line.split(maxsplit=5)[-1].strip() for line in _open("/proc/self/maps", encoding="utf-8")]
    return any(path == Path(name) or path in Path(name).parents for name in {*opened, *mapped})


def free(change: Callable[..., Any], *, replaces: bool) -> Callable[..., Any]:
    """A function of `os` that changes names, which refuses those that are in use."""

    def changed(*names: Any, **more: Any) -> Any:
        if sys._getframe(1).f_globals["__name__"] == "tempfile":  # which has a way of its own there
            return change(*names, **more)
        paths = (
            [] if "dir_fd" in more else [Path(os.path.realpath(Path(name).parent), Path(name).name) for name in names]
        )
        refused = any(map(in_use, paths)) or (
            len(paths) > 1 and paths[1].exists() and not (replaces and paths[1].is_file())
        )
        if refused:
            raise PermissionError(errno.EACCES, "is used by a process", str(names[-1]))
        return change(*names, **more)

    return changed


def named(path: Any) -> None:
    """Raise OSError for a name that Windows refuses."""
    if isinstance(path, str | bytes | os.PathLike) and REFUSED.search(Path(os.fsdecode(path)).name):
        raise OSError(errno.EINVAL, "no such name on Windows", os.fsdecode(path))


def system_open(path: Any, flags: int, *more: Any, **others: Any) -> int:
    """As os.open."""
    named(path)
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(errno.EACCES, "is a folder", os.fsdecode(path))
    return _system_open(path, flags, *more, **others)


def opened(file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
           newline: str | None = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
    """As open()."""
    named(file)
    if "b" not in mode:
        encoding = encoding or "cp1252"
        newline = "\r\n" if newline is None and set(mode) & set("wax") else newline
    return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)


def selected(reading: Any, writing: Any, *more: Any) -> Any:
    """As select.select, for sockets alone."""
    if any(isinstance(file, int) for file in (*reading, *writing)):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    return _select(reading, writing, *more)


for module, *names in GONE:
    for name in names:
        delattr(module, name)
msvcrt = ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_NBLCK = locking, 2  # type: ignore[attr-defined]
builtins.__import__ = imported
builtins.open = io.open = opened
os.open, select.select = system_open, selected
os.mkdir = lambda path, *more, **others: named(path) or _mkdir(path, *more, **others)  # type: ignore[func-returns-value]
os.replace = free(os.replace, replaces=True)
os.rename, os.unlink, os.remove, os.rmdir = (
    free(change, replaces=False) for change in (os.rename, os.unlink, os.remove, os.rmdir)
)
