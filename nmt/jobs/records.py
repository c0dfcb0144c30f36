"""The notes beside the parts of a long translation, which say what each part is and how it was finished.

job.json describes the job by its facts: everything that determines the outputs, under the names that users know.
joined.json replaces it once the outputs are in place. The record of a finished part names its job and chunk, and gives
the lines, the size and the SHA-256 of each of its files. Here facts are text and files are bytes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

from nmt.errors import counted
from nmt.files import written_atomically

JOB, JOINED = "job.json", "joined.json"
CHUNK_LINES = "--chunk-lines"  # a fact of every job
SHARD = "--shard"  # a fact of those that have only a part of a text
MOST_BYTES = 1 << 22  # of a record or a description; ours have a few hundred
MOST_LINES = 10**18
BLOCK = 1 << 20  # bytes read at a time

Facts = Mapping[str, str]
State = list[str | int]  # a file's resolved name, its size, and the time of its last change in nanoseconds


class Damaged(Exception):
    """A file is not what was written; the text says in what way."""


class Description(NamedTuple):
    """A job; `joined` is the state of the outputs when they were put in place, None before."""

    lines: int
    facts: Facts  # with CHUNK_LINES
    joined: Mapping[str, State] | None = None

    @property
    def chunk_lines(self) -> int:
        """How many lines each chunk but the last has."""
        return int(self.facts[CHUNK_LINES])

    @property
    def digest(self) -> str:
        """The checksum that identifies the job."""
        return digest_of({"lines": self.lines, "facts": self.facts})

    def write(self, folder: Path) -> None:
        """Write it into the folder."""
        content = {"lines": self.lines, "facts": self.facts, "digest": self.digest}
        joined = {} if self.joined is None else {"outputs": self.joined}
        with written_atomically(folder / (JOB if self.joined is None else JOINED)) as file:
            json.dump({**content, **joined}, file, indent=2)


class Content(NamedTuple):
    """What is in a file."""

    lines: int
    size: int
    digest: str


def read_description(folder: Path) -> Description | None:
    """Read the description in a folder; None if there is none. Raises Damaged if it is not what was written."""
    path = next((folder / name for name in (JOB, JOINED) if (folder / name).exists()), None)
    if path is None:
        return None
    values = read_json(path)
    lines, facts, joined = values.get("lines"), values.get("facts"), values.get("outputs")
    if not is_count(lines) or not isinstance(facts, dict) or not isinstance(joined, dict | None):
        raise Damaged(f"{path}: damaged")
    chunk_lines = facts.get(CHUNK_LINES)
    if not isinstance(chunk_lines, str) or not re.fullmatch("[1-9][0-9]{0,17}", chunk_lines):
        raise Damaged(f"{path}: damaged ({CHUNK_LINES} is not a number of lines)")
    if values.get("digest") != digest_of({"lines": lines, "facts": facts}):
        raise Damaged(f"{path}: damaged (it does not fit its checksum)")
    return Description(lines, facts, joined if path.name == JOINED else None)


def write_record(path: Path, *, job: str, chunk: int, lines: int, files: Mapping[str, Content], noted: int = 0) -> None:
    """Write the record of a chunk: its files by kind, with `lines` lines each, and a number that the job notes."""
    sizes = {kind: (file.size, file.digest) for kind, file in files.items()}
    with written_atomically(path) as record:
        json.dump({"job": job, "chunk": chunk, "lines": lines, "files": sizes, "noted": noted}, record)


def read_record(path: Path, *, job: str, chunk: int) -> dict[str, Content]:
    """The contents of a chunk's files by kind. Raises Damaged if the record is missing, unreadable, or another's."""
    values = read_json(path)
    lines, files = values.get("lines"), values.get("files")
    if not is_count(lines) or not isinstance(files, dict) or not all(map(_is_size_and_digest, files.values())):
        raise Damaged(f"{path}: damaged")
    if values.get("job") != job or values.get("chunk") != chunk or isinstance(values["chunk"], bool):
        raise Damaged(f"{path}: belongs to another part or another translation")
    return {kind: Content(lines, size, digest) for kind, (size, digest) in files.items()}


def read_noted(path: Path) -> int:
    """The number that was noted with a chunk; 0 if there is none."""
    try:
        noted = read_json(path).get("noted")
    except Damaged:
        return 0
    return noted if is_count(noted) else 0


def read_content(path: Path, to: IO[bytes] | None = None) -> Content:
    """Measure a file, and copy it to another one if that is given. Raises Damaged if it is missing."""
    lines, size, digest = 0, 0, hashlib.sha256()
    try:
        file = open(path, "rb")  # noqa: SIM115 - `with` comes below, since a failure there is another one
    except FileNotFoundError:
        raise Damaged(f"{path}: is missing") from None
    with file:
        while block := file.read(BLOCK):
            lines, size = lines + block.count(b"\n"), size + len(block)
            digest.update(block)
            if to is not None:
                to.write(block)
    return Content(lines, size, digest.hexdigest())


def check(path: Path, content: Content, recorded: Content) -> None:
    """Raise Damaged unless a file has the content that was recorded."""
    if content.size != recorded.size:
        raise Damaged(f"{path}: has {counted(content.size, 'byte')}, and had {recorded.size:,} when it was finished")
    if content.digest != recorded.digest:
        raise Damaged(f"{path}: has been altered since it was finished")
    if content.lines != recorded.lines:
        raise Damaged(f"{path}: has {counted(content.lines, 'line')}, and its record says {recorded.lines:,}")


def file_states(files: Mapping[str, str]) -> dict[str, State]:
    """The states of files, by the caller's keys, to compare later; a missing file has only its name."""
    result: dict[str, State] = {}
    for key, name in files.items():
        path = Path(name).resolve()
        result[key] = [str(path)]
        with suppress(OSError):
            status = path.stat()
            result[key] += [status.st_size, status.st_mtime_ns]
    return result


def changes(before: Mapping[str, State]) -> list[str]:
    """A message about each file that is not in the state that it was in."""
    after = file_states({name: name for name in before})
    return [
        f"{name}: has changed since the translation began; leave it as it is"
        for name in before
        if after[name] != before[name]
    ]


def digest_of(job: Mapping[str, Any]) -> str:
    """The checksum of a job, over everything that defines it."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file. Raises Damaged if there is none, or the file is too large to be ours."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise Damaged(f"{path}: damaged (it has more than {MOST_BYTES:,} bytes)")
        values = json.loads(text)
    except FileNotFoundError:
        raise Damaged(f"{path}: is missing") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of too many digits, nested too deep
        raise Damaged(f"{path}: damaged ({error})") from None
    if not isinstance(values, dict):
        raise Damaged(f"{path}: damaged (it holds no object)")
    return values


def is_count(value: object) -> TypeGuard[int]:
    """Whether it is a possible number of lines or bytes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_LINES


def _is_size_and_digest(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and is_count(value[0]) and isinstance(value[1], str)


def is_content(value: object) -> bool:
    """Whether it is a Content, as JSON has it."""
    return isinstance(value, list) and len(value) == 3 and is_count(value[0]) and _is_size_and_digest(value[1:])
