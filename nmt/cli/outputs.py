"""Outputs: standard output, a device, or a file that appears complete or not at all; checked before any work.

It knows file names and the options that give them, but nothing about what is written.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from nmt.errors import UserError, collected
from nmt.files import written_atomically

STANDARD = "-"  # standard input or output

Files = Sequence[tuple[str, Path | None]]  # options and their files


def check_outputs(
    outputs: Mapping[str, str | None], problems: list[str], *, others: Files, file: str | None = None
) -> Files:
    """Find out now, not when all is done, whether outputs can be written; `outputs` are file names by option.

    They must overwrite neither `others` nor each other. `file`: what is not written as it comes, such as a model.
    Returns the others with the outputs.
    """
    for option, name in outputs.items():
        if name is not None:
            if file is not None and is_in_place(name):
                problems.append(f"{option} {name}: {file} is a file; give a name")
            with collected(problems):
                check_output(option, name, others=others)
            others = others if name == STANDARD else [*others, (option, Path(name))]
    return others


def check_output(option: str, name: str, *, others: Files, is_folder: bool = False) -> None:
    """Raise UserError unless the output `name`, a file or a folder, can be written and is none of the `others`."""
    path = Path(name)
    if name == STANDARD and sys.stdout is None:
        raise UserError("standard output is closed; open it, or redirect it to a file or to /dev/null")
    if not is_folder and (name == STANDARD or is_device(path)):
        return
    shown = f"{option} {name}"
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()  # which tells of an impossible name; since Python 3.14 is_dir() does not
    if path.exists() and path.is_dir() != is_folder:
        raise UserError(f"{shown}: is a {'file, not a folder' if is_folder else 'folder, not a file'}")
    if path.suffix.lower() == ".gz" and not is_folder:
        raise UserError(f"{shown}: output is not compressed; give a name without {path.suffix}, and gzip the file then")
    for other, used in others:
        if used is not None and _same(path, used):
            raise UserError(f"{shown}: would overwrite {other} {used}; give another name")
    if is_in_place(name):
        return
    folder = path if path.is_dir() else Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise UserError(f"{shown}: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=folder):  # only trying tells: root, read-only disks, …
            pass
    except OSError as error:
        place = path if path.is_dir() else path.parent
        raise UserError(f"{shown}: the folder {place} cannot be written to ({error.strerror})") from None


def is_device(path: Path) -> bool:
    """Whether it is no file that stays, but such as /dev/null or a named pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_in_place(name: str) -> bool:
    """Whether an output is written as it comes: to standard output or a device."""
    return _is_standard(name) or is_device(Path(name))


def _is_standard(name: str) -> bool:
    """Whether an output is standard output, also as /dev/stdout or as the file that it was redirected to."""
    return name == STANDARD or is_of(sys.stdout, Path(name))


def is_of(stream: IO[Any] | None, path: Path) -> bool:
    """Whether the path, such as /dev/stdin, is of the file, pipe, or terminal of a standard stream."""
    try:
        return stream is not None and os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except (OSError, ValueError, AttributeError):  # no such file, or the stream is closed or none of the system's
        return False


def write_text(name: str, text: str) -> None:
    """Write an output all at once."""
    with opened_for_writing(name) as file:
        file.write(text.encode("utf-8"))


def write_report(name: str | None, table: str, numbers: Mapping[str, Any]) -> None:
    """Write a table to standard output, and its numbers as JSON to `name`; standard output gets one of the two."""
    if name != STANDARD:
        write_text(STANDARD, f"{table}\n")
    if name is not None:
        write_text(name, f"{json.dumps(numbers, indent=2)}\n")


@contextmanager
def opened_for_writing(name: str) -> Iterator[IO[bytes]]:
    """Open standard output, a device or named pipe in place, or a file that appears complete or not at all.

    Raises UserError if the disk is full and the like; `run` handles a reader that is gone.
    """
    name, path = STANDARD if _is_standard(name) else name, Path(name)
    with failing_as(name), ExitStack() as stack:
        if name == STANDARD:
            file: IO[bytes] = sys.stdout.buffer
        elif is_device(path):
            file = stack.enter_context(open(path, "wb"))
        else:
            file = stack.enter_context(written_atomically(Path(os.path.realpath(path)), "wb"))  # where a link points
        yield cast(IO[bytes], _Output(file, name))
        file.flush()


def abandon_standard_output() -> None:
    """Point standard output nowhere after a failure, so that the interpreter's final flush stays silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def failing_as(name: str) -> Iterator[None]:
    """Turn an OSError in the block into a UserError about writing the output `name`, unless its reader is gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if name == STANDARD:
            abandon_standard_output()
            name = "standard output"
        raise UserError(f"{name}: cannot be written ({error.strerror or error})") from None


class _Output:
    """A file whose errors bear its own name, even within `failing_as` of another file."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name

    def write(self, content: bytes) -> int:
        with failing_as(self._name):
            return self._file.write(content)

    def flush(self) -> None:
        with failing_as(self._name):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _same(path: Path, other: Path) -> bool:
    """Whether both are the same file, or will be when it is there."""
    # realpath, as resolve() raises RuntimeError for a link to itself
    return os.path.realpath(path) == os.path.realpath(other) or (
        path.exists() and other.exists() and path.samefile(other)
    )
