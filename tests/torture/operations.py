"""Counts what a process does to the disk, and lets a fault strike at one of these operations.

A file operation is whatever changes something on the disk: making, linking, renaming, removing, cutting, syncing, and
opening, writing to or closing a file; writes without a flush between them are one. Python's own functions are replaced,
in a process that is forked for it; what C code writes by itself (a mapping, a thread of a library) is not seen.
"""

import builtins
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

CREATING = ("mkdir", "link", "symlink")  # what a full disk refuses
CHANGING = (*CREATING, "replace", "rename", "unlink", "remove", "rmdir", "fsync", "ftruncate", "chmod")
MAKES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Operation(NamedTuple):
    """One change: its kind (a function's name, "open", "write", "truncate" or "close") and the file's name."""

    kind: str
    path: str

    @property
    def needs_space(self) -> bool:
        """Whether a full disk refuses it."""
        return self.kind in (*CREATING, "open", "write")


Strike = Callable[
    [int, Operation], None
]  # called before each operation with its number from 1; may raise or not return
Half = Callable[[int], bool]  # whether the process dies in that write, half of it done


class Operations:
    """Counts operations, and calls `strike` before each."""

    def __init__(self, strike: Strike, dies_halfway: Half) -> None:
        self.seen: list[Operation] = []
        self._strike, self._dies_halfway = strike, dies_halfway
        self._open, self._system_open = builtins.open, os.open

    def install(self) -> None:
        """Replace Python's functions, in this process for good."""
        for name in CHANGING:
            setattr(os, name, self._counted(name, getattr(os, name)))
        os.open = self.system_open
        builtins.open = io.open = self.open

    def next(self, kind: str, path: str) -> int:
        """Count an operation; returns its number."""
        operation = Operation(kind, path)
        self.seen.append(operation)
        number = len(self.seen)
        self._strike(number, operation)
        return number

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            last = arguments[1] if name in ("replace", "rename", "link", "symlink") else arguments[0]
            self.next(name, self._name(last))
            return function(*arguments, **keywords)

        return call

    def _name(self, file: Any) -> str:
        if isinstance(file, int):
            try:
                return str(Path(f"/proc/self/fd/{file}").readlink())
            except OSError:
                return str(file)
        return os.fsdecode(file)

    def system_open(self, path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        """As os.open."""
        if flags & MAKES:
            self.next("open", self._name(path))
        return self._system_open(path, flags, *arguments, **keywords)

    def open(self, file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        """As open()."""
        if not set(mode) & set("wax+") or file == os.devnull:
            return self._open(file, mode, *arguments, **keywords)
        name = self._name(file)
        if not isinstance(file, int):
            self.next("open", name)
        return CountedFile(self, self._open(file, mode, *arguments, **keywords), name)

    def write(self, file: Any, name: str, content: Any) -> None:
        """Count a write, of which half may be the last thing that happens."""
        if self._dies_halfway(self.next("write", name)):
            file.write(content[: len(content) // 2])
            file.flush()
            os._exit(137)


class CountedFile:
    """An open file whose writes and whose end are operations."""

    def __init__(self, operations: Operations, file: Any, name: str) -> None:
        self._operations, self._file, self._name = operations, file, name
        self._flushed = True

    def flush(self) -> None:
        """As the file's."""
        self._flushed = True
        self._file.flush()

    def write(self, content: Any) -> Any:
        """As the file's."""
        is_first, self._flushed = self._flushed, False
        if is_first:
            self._operations.write(self._file, self._name, content)
        return self._file.write(content)

    def truncate(self, *size: int) -> Any:
        """As the file's."""
        self._operations.next("truncate", self._name)
        return self._file.truncate(*size)

    def close(self) -> None:
        """As the file's; it is closed whatever strikes."""
        if not self._file.closed:
            try:
                self._operations.next("close", self._name)
            finally:
                self._file.close()

    def __enter__(self) -> "CountedFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
