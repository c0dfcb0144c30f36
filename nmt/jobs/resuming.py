"""Whose a folder of parts is: whether a job may begin in it, or go on from what is there. Nothing finished is lost.

It compares facts, and knows nothing of what they mean; its messages name the options with which users go on.
"""

import fcntl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import UserError
from nmt.files import first_foreign_name, open_refusing_links
from nmt.jobs.parts import LOCK, MAIN, Parts, finished_chunks, taken, writing
from nmt.jobs.records import CHUNK_LINES, JOB, JOINED, Damaged, Description, Facts, State, read_description, states

BEGIN_AGAIN = "delete the folder to begin again"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is to be translated in parts.

    `outputs` are files by their kinds, MAIN among them; `folder` is where their parts are. `facts` decide what they
    become. `texts` are what is read, as it was before the facts were. `chunk_lines` None: those of the job that is
    resumed, or as many as usual.
    """

    program: str  # which tells the user
    folder: Path
    lines: int  # of the input
    outputs: Mapping[str, str]
    facts: Facts
    texts: Mapping[str, State]
    chunk_lines: int | None
    resume: bool


def open_parts(job: Job, *, usual_chunk: int, started_by: str | None) -> Parts:
    """Make the folder that of the job, as its first process; to be resumed it may hold finished chunks of it.

    `usual_chunk`: the lines of a chunk where nothing else says how many. `started_by` names what started the processes,
    perhaps not for the first time: what it began, it may resume. A folder without a finished chunk has nothing to lose,
    nor one whose outputs were joined but are not there as they were. Chunks that are not what their records say are not
    finished any more, which `Parts.damages` then tells.
    Raises UserError when the folder cannot be written, is in use, holds something else, another job (with the
    differences), or finished chunks although they were not to be resumed.
    """
    path = job.folder
    with writing(path):
        _refuse_strangers(path)
        path.mkdir(exist_ok=True)
        lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8", errors="replace")
        try:
            if not taken(lock, 0, length=0):  # all of it: nobody is there, not even a process without a first one
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
            fcntl.lockf(lock, fcntl.LOCK_UN, 0, 1)  # chunks, and the other processes' bytes
        except BaseException:
            lock.close()
            raise
    return parts


def follow_parts(job: Job, *, rank: int) -> Parts:
    """The folder that the first process has opened. Raises UserError unless this one is to do the same job."""
    path = job.folder
    with writing(path):
        lock = open_refusing_links(path / LOCK, "a+", encoding="utf-8")
    taken(lock, rank)
    try:
        description = read_description(path)
    except Damaged as damage:
        raise UserError(f"{damage}; {BEGIN_AGAIN}") from None
    if description is None:
        raise UserError(f"{path}: has no {JOB}, which process 0 has written; all must see the same folder")
    if changes := _differences(description, job.facts, None):
        raise UserError(f"{path}: process {rank} was given another job than process 0:{_listed(changes)}")
    return Parts(path, lock, job.outputs, description)


def unfinished(path: Path) -> str | None:
    """Why a translation must not begin as if the folder `path` were not there; None if it may."""
    with suppress(OSError):  # what cannot even be asked about was not made by us
        if (path / JOB).exists() and finished_chunks(path):
            return _occupied(path, [], resume=False)
        try:
            if _holds_parts(path):
                read_description(path)
        except Damaged as damage:
            return _without_records(damage)
    return None


def remove_joined(path: Path) -> None:
    """Remove the folder `path` if all in it is in the outputs and no process is at work; it may stay without harm."""
    with suppress(OSError, UserError):
        if (path / JOINED).exists() and not (path / JOB).exists():
            with open_refusing_links(path / LOCK, "a+", encoding="utf-8") as lock:
                if taken(lock, 0, length=0):
                    Parts(path, lock, {}, Description(0, {})).remove()


def _is_resumed(parts: Parts, job: Job, *, resume: bool) -> bool:
    """Whether to go on from what is there. Raises UserError where that is not wanted, or it is of another job."""
    joined = parts.description.joined
    if not (parts.done() if joined is None else joined == states(parts.outputs)):
        return False  # there is nothing to lose
    changes = _differences(parts.description, job.facts, job.chunk_lines)
    if joined is None:
        if changes or not resume:
            raise UserError(_occupied(parts.path, changes, resume=resume))
        parts.damages = parts.undo_damaged()
    return resume and not changes


def _mend(parts: Parts, damage: Damaged, *, resume: bool) -> None:
    """Keep what is of this job although what described it is damaged. Raises UserError if it may be another's."""
    if _holds_parts(parts.path):
        if not parts.done():
            raise UserError(_without_records(damage))
        if not resume:
            raise UserError(_occupied(parts.path, [], resume=False))
        if all(parts.damage(chunk) for chunk in parts.done()):
            raise UserError(f"{damage}, and none of its parts is known to be of this translation; {BEGIN_AGAIN}")
    parts.damages = [f"{damage}; it is written anew", *parts.undo_damaged()]
    (parts.path / JOINED).unlink(missing_ok=True)


def _holds_parts(path: Path) -> bool:
    """Whether a chunk of a job has been written, with a record or without."""
    return (path / JOB).exists() and next(path.glob(f"*.{MAIN}"), None) is not None


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


def _differences(description: Description, facts: Facts, chunk_lines: int | None) -> list[str]:
    """What differs between a folder's job and one of these facts, each in a line; `chunk_lines` None is any."""
    there, here = description.facts, {**facts, CHUNK_LINES: str(chunk_lines or description.chunk_lines)}
    return [
        f"{name}: {there.get(name, 'absent')} there, {here.get(name, 'absent')} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    ]


def _listed(changes: Sequence[str]) -> str:
    """Lines below a headline."""
    return "".join(f"\n  {change}" for change in changes)


def _occupied(path: Path, changes: Sequence[str], *, resume: bool) -> str:
    """Why nothing else may begin in the folder."""
    if not changes:
        return (
            f"{path}: holds finished parts of this output, whose translation was stopped; go on with --resume, or "
            f"{BEGIN_AGAIN}"
        )
    refusal = "cannot be resumed" if resume else "holds finished parts"
    return (
        f"{path}: {refusal}, because it is of another translation; give another --output, or {BEGIN_AGAIN}. The "
        f"differences:{_listed(changes)}"
    )


def _without_records(damage: Damaged) -> str:
    """Why parts are not gone on with that have no records, as those of versions before there were any."""
    return (
        f"{damage}, and its finished parts have no records; finish them with the version that began them, or "
        f"{BEGIN_AGAIN}"
    )
