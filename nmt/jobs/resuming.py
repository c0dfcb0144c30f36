"""Whether a job may start in a folder of parts or resume what is there. Nothing that is finished gets lost.

It compares facts without knowing what they mean; its messages name the options of nmt-translate with which users can
continue.
"""

import fcntl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import UserError
from nmt.files import first_foreign_name, open_refusing_links
from nmt.jobs.parts import LOCK, Parts, finished_chunks, taken, writing
from nmt.jobs.records import CHUNK_LINES, JOB, JOINED, Damaged, Description, Facts, State, file_states, read_description

START_OVER = "delete the folder to start over"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A translation to do in parts.

    `outputs` are files by kind; `folder` holds their parts. `facts` determine what the outputs become.
    `texts` are the states of the files that are read, taken before the facts. `chunk_lines` None: those of the job that
    is resumed, or the usual number.
    """

    program: str  # the name that messages begin with
    folder: Path
    lines: int  # of the input
    outputs: Mapping[str, str]
    facts: Facts
    texts: Mapping[str, State]
    chunk_lines: int | None
    resume: bool


def open_parts(job: Job, *, usual_chunk: int, started_by: str | None) -> Parts:
    """Open the folder for the job, as its first process; it may hold finished chunks if they are to be resumed.

    `usual_chunk`: lines of a chunk if nothing else determines them. `started_by` identifies what started the processes,
    which may resume what it started itself. A folder has nothing to lose if no chunk is finished, or if its outputs
    were joined and have changed since. Finished chunks that differ from their records are discarded, and reported in
    `Parts.damages`.
    Raises UserError if the folder cannot be written, is in use, holds something else, another job (with the
    differences), or finished chunks that were not to be resumed.
    """
    path = job.folder
    with writing(path):
        _refuse_strangers(path)
        path.mkdir(exist_ok=True)
        lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8", errors="replace")
        try:
            if not taken(lock, 0, length=0):  # all bytes: no process is there, first or not
                raise UserError(f"{path}: in use by another translation; wait for it, or stop it")
            new = Description(job.lines, {**job.facts, CHUNK_LINES: str(job.chunk_lines or usual_chunk)})
            lock.seek(0)
            resume = job.resume or (started_by is not None and lock.read() == started_by)
            try:
                former = read_description(path)
            except Damaged as damage:
                parts = Parts(path, lock, job.outputs, new)
                _mend(parts, damage, resume=resume)
                new.write(path)
            else:
                parts = Parts(path, lock, job.outputs, former or new)
                if former is None or not _is_resumed(parts, job, resume=resume):
                    parts.clear_parts()
                    parts.clear_notes()
                    parts = Parts(path, lock, job.outputs, new)
                    new.write(path)
            lock.truncate(0)
            lock.write(started_by or "")
            lock.flush()
            fcntl.lockf(lock, fcntl.LOCK_UN, 0, 1)  # for chunks and the other processes
        except BaseException:
            lock.close()
            raise
    return parts


def follow_parts(job: Job, *, rank: int) -> Parts:
    """Open the folder after the first process. Raises UserError unless this process has the same job."""
    path = job.folder
    with writing(path):
        lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8")
    taken(lock, rank)
    try:
        description = read_description(path)
    except Damaged as damage:
        raise UserError(f"{damage}; {START_OVER}") from None
    if description is None:
        raise UserError(f"{path}: has no {JOB}, which process 0 has written; all must see the same folder")
    if changes := _differences(description, job.facts, None):
        raise UserError(f"{path}: process {rank} was given a different job than process 0:{changes}")
    return Parts(path, lock, job.outputs, description)


def unfinished(path: Path) -> str | None:
    """Why a translation must not ignore the folder `path`; None if it may."""
    with suppress(OSError):  # a folder that cannot be examined is not ours
        if (path / JOB).exists() and finished_chunks(path):
            return _occupied(path, "", resume=False)
    return None


def remove_idle(path: Path) -> None:
    """Remove the folder `path` if nothing in it would be lost and no process uses it; no harm if that fails."""
    with suppress(OSError, UserError):
        if any((path / name).exists() for name in (JOB, JOINED, LOCK)):
            with open_refusing_links(path / LOCK, "a+", encoding="utf-8") as lock:
                if taken(lock, 0, length=0) and unfinished(path) is None:
                    Parts(path, lock, {}, Description(0, {})).remove()


def _is_resumed(parts: Parts, job: Job, *, resume: bool) -> bool:
    """Whether to resume what is there. Raises UserError if that was not asked for, or it belongs to another job."""
    joined = parts.description.joined
    if not (parts.done() if joined is None else joined == file_states(parts.outputs)):
        return False  # there is nothing to lose
    changes = _differences(parts.description, job.facts, job.chunk_lines)
    if joined is None:
        if changes or not resume:
            raise UserError(_occupied(parts.path, changes, resume=resume))
        parts.damages = parts.undo_damaged()
    return resume and not changes


def _mend(parts: Parts, damage: Damaged, *, resume: bool) -> None:
    """Keep the parts of this job although its description is damaged. Raises UserError if they may be another's."""
    if (parts.path / JOB).exists() and parts.done():
        if not resume:
            raise UserError(_occupied(parts.path, "", resume=False))
        if all(parts.damage(chunk) for chunk in parts.done()):
            raise UserError(f"{damage}, and none of its parts is known to belong to this translation; {START_OVER}")
    parts.damages = [f"{damage}; it is written again", *parts.undo_damaged()]
    (parts.path / JOINED).unlink(missing_ok=True)


def _refuse_strangers(path: Path) -> None:
    """Raise UserError if the folder's name is taken by something that is not ours."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file, where the folder of parts has to be; rename it, or give another --output")
    if path.is_dir() and not (path / JOB).exists() and not (path / JOINED).exists():
        stranger = first_foreign_name(path, LOCK, f"{JOB}.*.partial")  # the last is left by a process killed early
        if stranger is not None:
            raise UserError(
                f"{path}: is not empty and holds no parts (found {stranger}); remove it, or give another --output"
            )


def _differences(description: Description, facts: Facts, chunk_lines: int | None) -> str:
    """The differences between a folder's job and this one, one a line; `chunk_lines` None: any number."""
    there, here = description.facts, {**facts, CHUNK_LINES: str(chunk_lines or description.chunk_lines)}
    return "".join(
        f"\n  {name}: {_shown(there.get(name))} there, {_shown(here.get(name))} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    )


def _shown(fact: str | None) -> str:
    """A fact in a message; that of an option without a value says only that it was given."""
    return "not given" if fact is None else "given" if fact in ("True", "wanted") else fact


def _occupied(path: Path, changes: str, *, resume: bool) -> str:
    """Why no other translation may start in the folder."""
    if not changes:
        return (
            f"{path}: holds finished parts of this output, whose translation was stopped; continue with --resume, or "
            f"{START_OVER}"
        )
    problem = "cannot be resumed, because it belongs to" if resume else "holds finished parts of"
    return f"{path}: {problem} another translation; give another --output, or {START_OVER}. The differences:{changes}"
