"""A long translation in parts: which chunks of the input are done, who translates which, and how they become one file.

A chunk is a run of consecutive lines. The folder beside the output holds job.json, which says what is translated and
how, and for each finished chunk a file for each output. Files are written beside and renamed, the chunk's main file
last, so that a chunk is done or not begun. Processes claim a chunk by locking a byte of one file (POSIX record locks):
the faster ones do more, and the system releases what a process had claimed when it ends, however it ends.

It knows files and numbers of chunks, no text, no options and no models.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from nmt.cli.options import opened_for_writing
from nmt.cli.states import State, states
from nmt.errors import UserError
from nmt.files import first_stranger, opened_itself, written_atomically

JOB, JOINED, LOCK = "job.json", "joined.json", ".lock"
MAIN = "output"  # the kind of output whose file makes a chunk done; the others are those of alignments
CHUNK_LINES = "--chunk-lines"
PROCESSES = 1 << 20  # bytes of the lock for processes, by their rank; those of the chunks follow
PAUSE = 0.1  # seconds between two looks at what others have not finished

Facts = Mapping[str, str]  # what decides about the output, by what the user calls it


class Parts:
    """An open folder of parts, held inside its `with` block by the first process of a job; others `follow` it."""

    def __init__(self, path: Path, lock: IO[str], outputs: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._lock = lock
        self._outputs = outputs or {}
        self.lines = self.chunk_lines = 0
        self.is_joined = False  # the outputs are in place, and only the folder is left to remove
        self._joined: Mapping[str, State] = {}  # the outputs as they were then

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
        Raises UserError when the folder cannot be written, is in use, holds something else, another job (with the
        differences), or finished chunks although `resume` was not asked for.
        """
        try:
            _refuse_strangers(path)
            path.mkdir(exist_ok=True)
            lock = opened_itself(path / LOCK, "a+", encoding="utf-8")
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
            raise _unwritable(path, error) from error
        return parts

    @classmethod
    def follow(cls, path: Path, facts: Facts, *, rank: int) -> "Parts":
        """The folder that the first process has opened. Raises UserError unless this one is to do the same job."""
        try:
            lock = opened_itself(path / LOCK, "a+", encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error) from error
        _taken(lock, rank)
        parts = cls(path, lock)
        there = parts._load()
        if there is None:
            raise UserError(f"{path}: has no {JOB}, which process 0 has written; all must see the same folder")
        if changes := _differences(there, {**facts, CHUNK_LINES: there[CHUNK_LINES]}):
            raise UserError(f"{path}: process {rank} was given another job than process 0:{_listed(changes)}")
        return parts

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def _settle(self, facts: Facts, lines: int, chunk_lines: int | None, usual_chunk: int, resume: bool) -> None:
        there = self._load()
        kept = self._joined == states(self._outputs) if self.is_joined else bool(self.done())
        if there is not None and kept:
            here = {**facts, CHUNK_LINES: str(chunk_lines) if chunk_lines else there.get(CHUNK_LINES, "")}
            changes = _differences(there, here)
            if resume and not changes:
                return
            if not self.is_joined:
                raise UserError(_occupied(self.path, changes, resume=resume))
        self.is_joined = False
        self._clear()
        self.lines, self.chunk_lines = lines, chunk_lines or usual_chunk
        with written_atomically(self.path / JOB) as file:
            json.dump({"lines": lines, "facts": {**facts, CHUNK_LINES: str(self.chunk_lines)}}, file, indent=2)

    def _load(self) -> Facts | None:
        """Take over what the folder's job is, if it has one. Raises UserError when it cannot be read."""
        for name in (JOB, JOINED):
            path = self.path / name
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                facts = dict(content["facts"])
                self.lines, self.chunk_lines = int(content["lines"]), int(facts[CHUNK_LINES])
                self._joined = dict(content.get("outputs", {}))
            except FileNotFoundError:
                continue
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"{path}: damaged ({error}); delete the folder to begin again") from error
            self.is_joined = name == JOINED
            return facts
        return None

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.lines // self.chunk_lines)

    def range(self, chunk: int) -> tuple[int, int]:
        """The first line of a chunk, and how many it has."""
        first = chunk * self.chunk_lines
        return first, min(self.chunk_lines, self.lines - first)

    def part(self, chunk: int, kind: str) -> Path:
        """The file of a chunk that becomes part of the output of that kind."""
        return self.path / f"{chunk:06}.{kind}"

    def done(self) -> list[int]:
        """The chunks that are finished."""
        return _finished(self.path)

    def done_lines(self) -> int:
        """The lines of all chunks that are finished."""
        return sum(self.range(chunk)[1] for chunk in self.done())

    def claims(self, *, stay: bool, look: Callable[[], object]) -> Iterator[int]:
        """Chunks for this process to translate, one after another; each is its own until the next is asked for.

        Ends when all the others are finished or claimed; with `stay` when all are finished, calling `look` while others
        are at work.
        """
        pending = list(range(self.chunks))
        while pending:
            unfinished = []
            for chunk in pending:
                if self.part(chunk, MAIN).exists():
                    continue
                if not _taken(self._lock, PROCESSES + chunk):
                    unfinished.append(chunk)
                    continue
                try:
                    if not self.part(chunk, MAIN).exists():
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

    def join(self) -> None:
        """Write the outputs from the parts in order; only the folder is then left to remove."""
        for kind, name in self._outputs.items():
            with opened_for_writing(name) as whole:
                for chunk in range(self.chunks):
                    with open(self.part(chunk, kind), "rb") as part:
                        shutil.copyfileobj(part, whole)
        self.is_joined = True
        try:
            content = json.loads((self.path / JOB).read_text(encoding="utf-8"))
            with written_atomically(self.path / JOINED) as file:
                json.dump({**content, "outputs": states(self._outputs)}, file, indent=2)
            (self.path / JOB).unlink()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def remove(self) -> None:
        """Remove the folder. Raises UserError when that is not possible."""
        try:
            self._clear()
            (self.path / LOCK).unlink()
            self._lock.close()  # some network file systems keep a file that is open
            self.path.rmdir()
        except OSError as error:
            raise UserError(f"{error.filename or self.path}: cannot be removed ({error.strerror or error})") from error

    def _clear(self) -> None:
        """Remove all but the lock; what says whose the parts are goes last."""
        names = sorted(path.name for path in self.path.iterdir() if path.name not in (JOB, JOINED, LOCK))
        for name in (*names, JOB, JOINED):
            (self.path / name).unlink(missing_ok=True)


def unfinished(path: Path) -> str | None:
    """Why a translation must not begin as if the folder `path` were not there; None if it may."""
    with suppress(OSError):  # what cannot even be asked about was not made by us
        if (path / JOB).exists() and _finished(path):
            return _occupied(path, [], resume=False)
    return None


def remove_joined(path: Path) -> None:
    """Remove the folder `path` if all in it is in the outputs and no process is at work; it may stay without harm."""
    with suppress(OSError, UserError):
        if (path / JOINED).exists() and not (path / JOB).exists():
            with opened_itself(path / LOCK, "a+", encoding="utf-8") as lock:
                if _taken(lock, 0, length=0):
                    Parts(path, lock).remove()


def _finished(path: Path) -> list[int]:
    return [int(part.stem) for part in path.glob(f"*.{MAIN}") if part.stem.isdecimal()]


def _occupied(path: Path, changes: list[str], *, resume: bool) -> str:
    if not changes:
        return (
            f"{path}: holds finished parts of this output, whose translation was stopped; go on with --resume, or "
            "delete the folder to begin again"
        )
    asked = "cannot be resumed" if resume else "holds finished parts"
    return (
        f"{path}: {asked}, because it is of another translation; give another --output, or delete the folder to begin "
        f"again. The differences:{_listed(changes)}"
    )


def _differences(there: Facts, here: Facts) -> list[str]:
    return [
        f"{name}: {there.get(name, 'absent')} there, {here.get(name, 'absent')} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    ]


def _listed(changes: list[str]) -> str:
    return "".join(f"\n  {change}" for change in changes)


def _refuse_strangers(path: Path) -> None:
    """Raise UserError when the folder's name is taken by something that is not ours."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file, where the folder of parts has to be; rename it, or give another --output")
    if path.is_dir() and not (path / JOB).exists() and not (path / JOINED).exists():
        stranger = first_stranger(path, LOCK, f"{JOB}.*.partial")  # ours is what a process leaves that was killed early
        if stranger is not None:
            raise UserError(
                f"{path}: is not empty and holds no parts (found {stranger}); remove it, or give another --output"
            )


def _taken(lock: IO[str], byte: int, *, length: int = 1) -> bool:
    """Lock bytes of the open file, unless another process has any of them; `length` 0 is to the end of all bytes."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, length, byte)
    except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
        return False
    return True


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(f"{error.filename or path}: the folder of parts cannot be written ({error.strerror or error})")
