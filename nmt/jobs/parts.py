"""A long translation in parts: which chunks of the input are done, who translates which, and how they become one file.

A chunk is a run of consecutive lines. The folder beside the output holds what is translated and how (`description`),
and for each finished chunk a file for each output and a record of what is in them (`finished`), written last, so that a
chunk is done or not begun. What a record does not vouch for is translated again. Processes claim a chunk by locking a
byte of one file (POSIX record locks): the faster ones do more, and the system releases what a process had claimed when
it ends, however it ends.

It knows files and numbers of chunks, no text, no options and no models.
"""

import fcntl
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from nmt.errors import UserError
from nmt.files import first_foreign_name, open_refusing_links
from nmt.jobs.chunks import MAIN, RECORD, Chunks, finished_chunks, unwritable
from nmt.jobs.description import (
    CHUNK_LINES,
    JOB,
    JOINED,
    Description,
    Facts,
    differences,
    listed,
    occupied,
    read_description,
    without_records,
)
from nmt.jobs.finished import Damaged, check, content, joined
from nmt.jobs.states import states

LOCK = ".lock"
PROCESSES = 1 << 20  # bytes of the lock for processes, by their rank; those of the chunks follow
_OURS = re.compile(r"([0-9]{6,}\.[a-z_]+|job\.json|joined\.json)(\.[0-9a-f]+\.partial)?")
PAUSE = 0.1  # seconds between two looks at what others have not finished


class Parts(Chunks):
    """An open folder of parts, held inside its `with` block by the first process of a job; others `follow` it."""

    def __init__(self, path: Path, lock: IO[str], outputs: Mapping[str, str] | None = None) -> None:
        super().__init__(path, outputs)
        self._lock = lock
        self.damages: list[str] = []  # what was found when the folder was opened, and is mended

    @classmethod
    def open(
        cls,
        path: Path,
        facts: Facts,
        *,
        outputs: Mapping[str, str],
        lines: int,
        chunk_lines: int | None,
        usual_chunk: int,
        resume: bool,
        job: str | None,
    ) -> "Parts":
        """Make `path` the folder of a job, as its first process; with `resume` it may hold finished chunks of it.

        `outputs` are files by their kinds. `chunk_lines` None: those of the job that is resumed, or `usual_chunk`.
        `job` names what started the processes, perhaps not for the first time: what it began, it may resume. A folder
        without a finished chunk has nothing to lose, nor one whose outputs were joined but are not there as they were.
        Chunks that are not what their records say are not finished any more, which `damages` then tells.
        Raises UserError when the folder cannot be written, is in use, holds something else, another job (with the
        differences), or finished chunks although `resume` was not asked for.
        """
        try:
            _refuse_strangers(path)
            path.mkdir(exist_ok=True)
            lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8", errors="replace")
            try:
                if not _taken(lock, 0, length=0):  # all of it: nobody is there, not even a process without a first one
                    raise UserError(f"{path}: in use by another translation; wait for it, or stop it")
                parts = cls(path, lock, outputs)
                lock.seek(0)
                resume = resume or (job is not None and lock.read() == job)
                parts._settle(facts, lines, chunk_lines, usual_chunk, resume)
                lock.truncate(0)
                lock.write(job or "")
                lock.flush()
                fcntl.lockf(lock, fcntl.LOCK_UN, 0, 1)  # chunks, and the other processes' bytes
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise unwritable(path, error) from error
        return parts

    @classmethod
    def follow(cls, path: Path, facts: Facts, *, outputs: Mapping[str, str], rank: int) -> "Parts":
        """The folder that the first process has opened. Raises UserError unless this one is to do the same job."""
        try:
            lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8")
        except OSError as error:
            raise unwritable(path, error) from error
        _taken(lock, rank)
        parts = cls(path, lock, outputs)
        try:
            there = read_description(path)
        except Damaged as damage:
            raise UserError(f"{damage}; delete the folder to begin again") from None
        if there is None:
            raise UserError(f"{path}: has no {JOB}, which process 0 has written; all must see the same folder")
        if changes := differences(there.facts, {**facts, CHUNK_LINES: there.facts[CHUNK_LINES]}):
            raise UserError(f"{path}: process {rank} was given another job than process 0:{listed(changes)}")
        parts.take(there)
        return parts

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def _settle(self, facts: Facts, lines: int, chunk_lines: int | None, usual_chunk: int, resume: bool) -> None:
        new = Description.of(facts, lines, chunk_lines or usual_chunk)
        try:
            there = read_description(self.path)
        except Damaged as damage:
            self.take(new)
            self._mend(damage, resume=resume)
        else:
            if there is not None:
                self.take(there)
                if self._is_resumed(facts, chunk_lines, resume=resume):
                    return
            self.take(new)
            self._clear_parts()
            self._clear_notes()
        new.write(self.path)

    def _is_resumed(self, facts: Facts, chunk_lines: int | None, *, resume: bool) -> bool:
        """Whether to go on from what is there. Raises UserError where that is not wanted, or is of another job."""
        there, joined = self.description.facts, self.description.joined
        if not (self.done() if joined is None else joined == states(self.outputs)):
            return False
        changes = differences(there, {**facts, CHUNK_LINES: str(chunk_lines or there[CHUNK_LINES])})
        if joined is None:
            if changes or not resume:
                raise UserError(occupied(self.path, changes, resume=resume))
            self.damages = self.undo_damaged()
        return resume and not changes

    def _mend(self, damage: Damaged, *, resume: bool) -> None:
        """Keep what is of this job although what described it is damaged. Raises UserError if it may be another's."""
        if _holds_parts(self.path):
            if not self.done():
                raise UserError(without_records(damage))
            if not resume:
                raise UserError(occupied(self.path, [], resume=False))
            if all(self.damage(chunk) for chunk in self.done()):
                raise UserError(
                    f"{damage}, and none of its parts is known to be of this translation; delete the folder to begin "
                    "again"
                )
        self.damages = [f"{damage}; it is written anew", *self.undo_damaged()]
        (self.path / JOINED).unlink(missing_ok=True)

    def claims(self, *, stay: bool, look: Callable[[], object]) -> Iterator[int]:
        """Chunks for this process to translate, one after another; each is its own until the next is asked for.

        Ends when all the others are finished or claimed; with `stay` when all are finished, calling `look` while others
        are at work.
        """
        pending = list(range(self.chunks))
        while pending:
            unfinished = []
            for chunk in pending:
                if self.part(chunk, RECORD).exists():
                    continue
                if not _taken(self._lock, PROCESSES + chunk):
                    unfinished.append(chunk)
                    continue
                try:
                    if not self.part(chunk, RECORD).exists():
                        if not (self.path / JOB).exists():  # looked for second: it is removed before the parts
                            return
                        yield chunk
                finally:
                    fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, PROCESSES + chunk)
            if not stay:
                return
            pending = unfinished
            if pending:
                look()
                time.sleep(PAUSE)

    def join(self) -> list[str]:
        """Write the outputs from the parts in order; only the folder is then left to remove.

        Where parts are not what their records say, they are made unfinished instead, and told.
        """
        try:
            for kind, name in self.outputs.items():
                with joined(name) as whole:
                    for chunk in range(self.chunks):
                        part, record = self.part(chunk, kind), self.record(chunk)
                        check(part, kind, record, content(part, to=whole))
        except Damaged as damage:
            return self.undo_damaged() or [f"{damage}; the parts are read again"]
        self.is_joined = True
        try:
            self.description._replace(joined=states(self.outputs)).write(self.path)
            (self.path / JOB).unlink()
        except OSError as error:
            raise unwritable(self.path, error) from error
        return []

    def remove(self) -> None:
        """Remove the folder. Raises UserError when that is not possible, or somebody's file is in it."""
        try:
            self._clear_parts()
            if (stranger := first_foreign_name(self.path, JOB, JOINED, LOCK)) is not None:
                raise UserError(f"{self.path / stranger}: is of no translation, and its folder is not removed")
            self._clear_notes()
            (self.path / LOCK).unlink()
            self._lock.close()  # some network file systems keep a file that is open
            self.path.rmdir()
        except OSError as error:
            raise UserError(f"{error.filename or self.path}: cannot be removed ({error.strerror or error})") from error

    def _clear_parts(self) -> None:
        """Remove what processes of a job have written, but not what says whose it is."""
        for path in sorted(self.path.iterdir()):
            if _OURS.fullmatch(path.name) and path.name not in (JOB, JOINED):
                path.unlink(missing_ok=True)

    def _clear_notes(self) -> None:
        """Remove what says whose the parts are, after them."""
        for name in (JOB, JOINED):
            (self.path / name).unlink(missing_ok=True)


def unfinished(path: Path) -> str | None:
    """Why a translation must not begin as if the folder `path` were not there; None if it may."""
    with suppress(OSError):  # what cannot even be asked about was not made by us
        if (path / JOB).exists() and finished_chunks(path):
            return occupied(path, [], resume=False)
        try:
            if _holds_parts(path):
                read_description(path)
        except Damaged as damage:
            return without_records(damage)
    return None


def _holds_parts(path: Path) -> bool:
    """Whether a chunk of a job has been written, with a record or without."""
    return (path / JOB).exists() and next(path.glob(f"*.{MAIN}"), None) is not None


def remove_joined(path: Path) -> None:
    """Remove the folder `path` if all in it is in the outputs and no process is at work; it may stay without harm."""
    with suppress(OSError, UserError):
        if (path / JOINED).exists() and not (path / JOB).exists():
            with open_refusing_links(path / LOCK, "a+", encoding="utf-8") as lock:
                if _taken(lock, 0, length=0):
                    Parts(path, lock).remove()


def _refuse_strangers(path: Path) -> None:
    """Raise UserError when the folder's name is taken by something that is not ours."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file, where the folder of parts has to be; rename it, or give another --output")
    if path.is_dir() and not (path / JOB).exists() and not (path / JOINED).exists():
        stranger = first_foreign_name(path, LOCK, f"{JOB}.*.partial")  # the last is left by a process killed early
        if stranger is not None:
            raise UserError(
                f"{path}: is not empty and holds no parts (found {stranger}); remove it, or give another --output"
            )


def _taken(lock: IO[str], byte: int, *, length: int = 1) -> bool:
    """Lock bytes of the open file, unless another process has any of them; `length` 0 is to the end of all bytes.

    Raises UserError where the file system has no locks.
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
