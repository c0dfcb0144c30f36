"""The folder of parts of a long translation: which chunks are done, which process translates which, and joining them.

A chunk is a run of consecutive lines. For each finished chunk the folder holds one file per output and a record of
their contents. The record is written last, so a chunk is either done or not begun, and whatever a record does not vouch
for is translated again. Processes claim a chunk by locking a byte of one file (POSIX record locks): faster processes do
more, and the system releases the claims of a process that ends, however it ends.

It knows files and chunk numbers; `resuming` knows which job a folder belongs to.
"""

import fcntl
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nmt.errors import UserError, first_of
from nmt.files import first_foreign_name, written_atomically
from nmt.jobs.records import (
    JOB,
    JOINED,
    SHARD,
    Content,
    Damaged,
    Description,
    check,
    file_states,
    read_content,
    read_noted,
    read_record,
    write_record,
)

MOST_LINES = 2000  # of a chunk: enough to sort by length, few to translate again
MOST_CHUNKS = 2000  # of a text for which that would be more, so that its folder has thousands of files, not a million
CHUNKS = 2  # at least, for each process
RECORD = "done"  # the kind of a chunk's record, beside those of its files
LOCK = ".lock"
PROCESSES = 1 << 20  # bytes of the lock that stand for processes, by rank; the bytes of chunks follow
PAUSE = 0.1  # seconds between two looks at what other processes have not finished
MOST_TOLD = 5  # damaged parts, one a line
KINDS = ("output", "alignments", "soft_alignments")  # of a chunk's files; another file of the folder is the user's
_OURS = re.compile(rf"([0-9]{{6,}}\.({'|'.join((RECORD, *KINDS))})|job\.json|joined\.json)(\.[0-9a-f]+\.partial)?")


class Parts:
    """The open folder of the job in `description`, used in a `with` block; `outputs` are the job's files by kind."""

    def __init__(self, path: Path, lock: IO[str], outputs: Mapping[str, str], description: Description) -> None:
        self.path, self.outputs, self.description = path, outputs, description
        self.is_joined = description.joined is not None  # only the folder is left to remove
        self.damages: Sequence[str] = ()  # found and repaired when the folder was opened
        self._lock = lock

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.description.lines // self.description.chunk_lines)

    def range(self, chunk: int) -> tuple[int, int]:
        """The first line of a chunk, and its number of lines."""
        first = chunk * self.description.chunk_lines
        return first, min(self.description.chunk_lines, self.description.lines - first)

    def part(self, chunk: int, kind: str) -> Path:
        """A chunk's file of one kind, or its record."""
        return self.path / f"{chunk:06}.{kind}"

    def done(self) -> list[int]:
        """The finished chunks."""
        return [chunk for chunk in finished_chunks(self.path) if chunk < self.chunks]

    def done_lines(self) -> int:
        """How many lines the finished chunks have."""
        return sum(self.range(chunk)[1] for chunk in self.done())

    def claims(self, *, stay: bool, look: Callable[[], object]) -> Iterator[int]:
        """Yield chunks for this process to translate; each is claimed until the next one is asked for.

        Ends when the remaining chunks are finished or claimed by others; with `stay`, when all are finished, calling
        `look` while others work.
        """
        pending: Iterable[int] = range(self.chunks)
        while pending := [chunk for chunk in pending if not self.part(chunk, RECORD).exists()]:
            others_work = False
            for chunk in pending:
                if not taken(self._lock, PROCESSES + chunk):
                    others_work = True
                    continue
                try:
                    if not self.part(chunk, RECORD).exists():
                        if not (self.path / JOB).exists():  # looked for second: it is removed before the parts
                            return
                        yield chunk
                finally:
                    fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, PROCESSES + chunk)
            if not (stay and others_work):
                return
            look()
            time.sleep(PAUSE)

    def finish(self, chunk: int, *, lines: int, noted: int = 0) -> None:
        """Record a chunk as done, whose files have `lines` lines each, with a number that is noted with it.

        Raises UserError if they do not.
        """
        try:
            with writing(self.path):
                files = {kind: read_content(self.part(chunk, kind)) for kind in self.outputs}
                for kind, content in files.items():
                    check(self.part(chunk, kind), content, content._replace(lines=lines))
                job = self.description.digest
                write_record(self.part(chunk, RECORD), job=job, chunk=chunk, lines=lines, files=files, noted=noted)
        except Damaged as damage:
            raise UserError(f"{damage}, as soon as it was written") from None

    def noted(self) -> int:
        """The sum of the numbers that were noted with the finished chunks."""
        return sum(read_noted(self.part(chunk, RECORD)) for chunk in self.done())

    def damage(self, chunk: int) -> Damaged | None:
        """How a chunk differs from its record; None if it does not."""
        try:
            for kind, recorded in self._recorded(chunk).items():
                check(self.part(chunk, kind), read_content(self.part(chunk, kind)), recorded)
        except Damaged as damage:
            return damage
        return None

    def undo_damaged(self) -> Sequence[str]:
        """Discard finished chunks that differ from their records; returns a message about each."""
        told, shard = [], self.description.facts.get(SHARD)
        whole = "" if shard is None else f" of shard {shard}"
        for chunk in self.done():
            if damage := self.damage(chunk):
                first, count = self.range(chunk)
                told.append(f"{damage}; lines {first + 1:,} to {first + count:,}{whole} are translated again")
                for kind in (RECORD, *self.outputs):
                    self.part(chunk, kind).unlink(missing_ok=True)
        return first_of(told, MOST_TOLD, after=" parts")

    def _recorded(self, chunk: int) -> Mapping[str, Content]:
        """The recorded contents of a finished chunk. Raises Damaged if the record does not fit the job."""
        path = self.part(chunk, RECORD)
        files = read_record(path, job=self.description.digest, chunk=chunk)
        if files.keys() != self.outputs.keys() or any(file.lines < self.range(chunk)[1] for file in files.values()):
            raise Damaged(f"{path}: does not have all lines of all outputs")
        return files

    def join(self) -> Sequence[str]:
        """Write the outputs from the parts in order, so that only the folder is left to remove.

        If parts differ from their records, they are discarded instead; returns a message about each.
        """
        try:
            for kind, name in self.outputs.items():
                with written_atomically(Path(name).resolve(), "wb") as whole:  # where a link points
                    for chunk in range(self.chunks):
                        recorded, part = self._recorded(chunk)[kind], self.part(chunk, kind)
                        check(part, read_content(part, to=whole), recorded)
        except Damaged as damage:
            return self.undo_damaged() or [f"{damage}; the parts are read again"]
        except OSError as error:
            raise UserError(f"{name}: cannot be written ({error.strerror or error})") from None
        self.is_joined = True
        with writing(self.path):
            self.description._replace(joined=file_states(self.outputs)).write(self.path)
            (self.path / JOB).unlink()
        return ()

    def remove(self) -> None:
        """Remove the folder. Raises UserError if that is impossible, or it holds a file that is not ours."""
        try:
            self.clear_parts()
            if (stranger := first_foreign_name(self.path, JOB, JOINED, LOCK)) is not None:
                raise UserError(f"{self.path / stranger}: belongs to no translation, so its folder is not removed")
            self.clear_notes()
            (self.path / LOCK).unlink()
            self._lock.close()  # some network file systems keep open files
            self.path.rmdir()
        except OSError as error:
            raise UserError(f"{error.filename or self.path}: cannot be removed ({error.strerror or error})") from error

    def clear_parts(self) -> None:
        """Remove the chunks of a job, but not the notes that say which job it is."""
        for path in sorted(self.path.iterdir()):
            if _OURS.fullmatch(path.name) and path.name not in (JOB, JOINED):
                path.unlink(missing_ok=True)

    def clear_notes(self) -> None:
        """Remove the notes that say which job it is, after the chunks."""
        for name in (JOB, JOINED):
            (self.path / name).unlink(missing_ok=True)


def finished_chunks(path: Path) -> list[int]:
    """The chunks in a folder that have records."""
    stems = [part.stem for part in path.glob(f"*.{RECORD}")]
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and f"{int(stem):06}" == stem)


def taken(lock: IO[str], byte: int, *, length: int = 1) -> bool:
    """Lock bytes of the open file unless another process holds one of them; `length` 0: all that follow.

    Raises UserError if the file system has no locks.
    """
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, length, byte)
    except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
        return False
    except OSError as error:
        raise UserError(
            f"{lock.name}: cannot be locked ({error.strerror or error}), which is how parts are shared; give an "
            "--output on a file system with locks, or translate by one process without --resume and --chunk-lines"
        ) from error
    return True


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError in the block into a UserError about writing the folder of parts."""
    try:
        yield
    except OSError as error:
        reason = f"the folder of parts cannot be written ({error.strerror or error})"
        raise UserError(f"{error.filename or folder}: {reason}") from error
