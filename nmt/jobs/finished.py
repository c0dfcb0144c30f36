"""What a finished part of a long translation is: its files, and a record by which they are known again.

The record says which chunk of which job the part is, how many lines each of its files has, and of each file the bytes
and their SHA-256. It is written last. It knows files and numbers, nothing of what is in them.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

from nmt.errors import UserError
from nmt.files import written_atomically

MOST_BYTES = 1 << 22  # of a record or the description of a job; theirs are of a few hundred
MOST_LINES = 10**18
BLOCK = 1 << 20  # bytes read at a time


class Damaged(Exception):
    """A file is not what was written; the text says how."""


class Content(NamedTuple):
    """What is in a file."""

    lines: int
    size: int
    digest: str


class Record(NamedTuple):
    """What a finished part has."""

    lines: int
    files: dict[str, tuple[int, str]]  # bytes and digest, by the kind of output


def content(path: Path, to: IO[bytes] | None = None) -> Content:
    """What is in a file, which is copied to another one if that is given. Raises Damaged when it is not there."""
    lines, size, digest = 0, 0, hashlib.sha256()
    for block in _blocks(path):
        lines, size = lines + block.count(b"\n"), size + len(block)
        digest.update(block)
        if to is not None:
            to.write(block)
    return Content(lines, size, digest.hexdigest())


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - inside `with`, but what fails there is not what fails here
    except FileNotFoundError:
        raise Damaged(f"{path}: is missing") from None
    with file:
        while block := file.read(BLOCK):
            yield block


@contextmanager
def joined(name: str) -> Iterator[IO[bytes]]:
    """The output `name` for writing: of a link the file that it points to, which appears complete or not at all."""
    try:
        with written_atomically(Path(name).resolve(), "wb") as file:
            yield file
    except OSError as error:
        raise UserError(f"{name}: cannot be written ({error.strerror or error})") from None


def check(path: Path, kind: str, record: Record, found: Content) -> None:
    """Raise Damaged unless the file of that kind has the content that the record says."""
    size, digest = record.files[kind]
    if found.size != size:
        raise Damaged(f"{path}: has {found.size:,} bytes, and had {size:,} when it was finished")
    if found.digest != digest:
        raise Damaged(f"{path}: has been altered since it was finished")
    if found.lines != record.lines:
        raise Damaged(f"{path}: has {found.lines:,} lines, and its record says {record.lines:,}")


def write_record(path: Path, *, job: str, chunk: int, record: Record) -> None:
    """Write the record of a chunk of a job."""
    with written_atomically(path) as file:
        json.dump({"job": job, "chunk": chunk, "lines": record.lines, "files": record.files}, file)


def read_record(path: Path, *, job: str, chunk: int) -> Record:
    """The record of a chunk. Raises Damaged when it is not there, not readable, or of another chunk or job."""
    there = read_json(path)
    lines, files = there.get("lines"), there.get("files")
    if not is_count(lines) or not isinstance(files, dict) or not all(map(_is_content, files.values())):
        raise Damaged(f"{path}: damaged")
    if there.get("job") != job or there.get("chunk") != chunk or isinstance(there["chunk"], bool):
        raise Damaged(f"{path}: is of another part, or of another translation")
    return Record(lines, {kind: (size, digest) for kind, (size, digest) in files.items()})


def _is_content(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and is_count(value[0]) and isinstance(value[1], str)


def is_count(value: object) -> TypeGuard[int]:
    """Whether it is a whole number of lines or bytes that there can be."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_LINES


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises Damaged when there is none, or the file is too large to be ours."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise Damaged(f"{path}: damaged (it has more than {MOST_BYTES:,} bytes)")
        found = json.loads(text)
    except FileNotFoundError:
        raise Damaged(f"{path}: is missing") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of too many digits, nested too deep
        raise Damaged(f"{path}: damaged ({error})") from None
    if not isinstance(found, dict):
        raise Damaged(f"{path}: damaged (it holds no object)")
    return found


def digest_of(job: Mapping[str, Any]) -> str:
    """What names a job, by all that makes it."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
