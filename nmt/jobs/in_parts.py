"""A long translation in chunks, which several processes share, and which are kept until all are done.

Every process takes chunks that no other has claimed (see `parts`). It is given the functions that translate and write,
so it knows no models and no text; the translation of a chunk depends only on its lines and their places. What it has to
say goes to standard error, with the options of nmt-translate that help.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from tqdm import tqdm

from nmt.errors import UserError
from nmt.jobs.parts import CHUNKS, MOST_CHUNKS, MOST_LINES, Parts
from nmt.jobs.records import changes
from nmt.jobs.resuming import Job, follow_parts, open_parts
from nmt.processes import Processes, started_by
from nmt.signals import Interrupted, StopRequest, handled, leaving, reporting

ATTEMPTS = 3  # at joining parts that are as they were written
PAUSE = 3.0  # seconds between two looks at the progress of other processes

Translated = TypeVar("Translated")
Translate = Callable[[int, int], Iterable[Translated]]  # first line, number of lines → translations
Write = Callable[[Iterable[Translated], Mapping[str, str], int], int]  # …, files by kind, first line → lines


def translate_in_parts(
    job: Job,
    team: Processes,
    *,
    load: Callable[[], Translate[Translated]],
    write: Write[Translated],
    note: Callable[[], int] = lambda: 0,
    tell: Callable[[int], object] = lambda total: None,
) -> int:
    """Translate as one of the team, and return the exit code. Raises UserError.

    `load` returns what translates; `write` returns how many lines it has written to each file. The first process waits
    for the others and joins the parts. `note` gives a number that is kept with each finished chunk, and `tell` is
    called with the sum of them, whichever processes have finished them, in the first process once all are joined.
    """
    with ExitStack() as stack:

        def open_as_first() -> Parts | None:
            if not team.is_first:
                return None
            usual = usual_chunk(job.lines, processes=team.size)
            return stack.enter_context(open_parts(job, usual_chunk=usual, started_by=started_by()))

        opened = team.together(open_as_first)
        try:
            parts = team.together(lambda: opened or stack.enter_context(follow_parts(job, rank=team.rank)))
            if parts.is_joined:
                if team.is_first:
                    _remove(job, parts)
                return 0
            _warn(job, parts.damages)
            if team.is_first and (done := len(parts.done())):
                print(f"{job.program}: resuming: {done} of {parts.chunks} chunks are finished", file=sys.stderr)
            translate = team.together(load)
        except (UserError, KeyboardInterrupt):
            if opened is not None and not opened.done():
                _remove(job, opened)
            raise
        stop = StopRequest()
        try:
            with handled(leaving(job.program)), stop.installed(), stop.at_once():  # a signal ends it at once
                _work(job, team, parts, translate, write, note, tell, stop.check)
        except Interrupted as interruption:
            if team.is_first:
                by = f"process 0 of {team.size} " if team.size > 1 else ""
                with suppress(OSError), reporting():  # the terminal may be gone
                    print(f"{job.program}: {by}{interruption}; {_kept(parts)}", file=sys.stderr)
            return interruption.exit_code
        except _Changed as error:  # the user has to look at what is kept
            raise team.once(error) from None
        except UserError as error:
            if parts.is_joined or parts.done():
                *others, last = error.messages
                error = UserError(*others, f"{last}; {_kept(parts)}")
            elif team.size == 1:
                _remove(job, parts)  # there is nothing to lose
            raise team.once(error) from None
    return 0


def usual_chunk(lines: int, *, processes: int) -> int:
    """The lines of a chunk of so long a text, unless the user gives another number."""
    most = max(MOST_LINES, -(-lines // MOST_CHUNKS))
    return max(1, min(most, lines // (CHUNKS * processes)))


def _work(
    job: Job,
    team: Processes,
    parts: Parts,
    translate: Translate[Translated],
    write: Write[Translated],
    note: Callable[[], int],
    tell: Callable[[int], object],
    check: Callable[[], None],
) -> None:
    """Translate chunks while there are any; the first process joins them when all are done.

    `check` is called between chunks in case a library swallowed a signal. Raises UserError if a text has changed.
    """
    watched = team.is_first and sys.stderr.isatty()
    initial, looked = parts.done_lines() if watched else 0, time.monotonic()
    bar: tqdm[Any]
    with tqdm(total=job.lines, initial=initial, unit=" lines", disable=not watched) as bar:

        def look() -> None:
            nonlocal looked
            if watched and time.monotonic() - looked >= PAUSE:
                bar.update(parts.done_lines() - bar.n)
                looked = time.monotonic()

        for _ in range(ATTEMPTS):
            for chunk in parts.claims(stay=team.is_first, look=look):
                check()
                first, count = parts.range(chunk)
                files = {kind: str(parts.part(chunk, kind)) for kind in job.outputs}
                lines = write(_moving(bar, translate(first, count)), files, first)
                parts.finish(chunk, lines=lines, noted=note())
                look()
            if not team.is_first:
                return
            bar.update(job.lines - bar.n)
            _refuse_changes(job)
            damages = parts.join()
            if not damages:
                break
            _warn(job, damages)
        else:
            raise UserError(f"{parts.path}: parts keep differing from what was written; the disk may be failing")
    tell(parts.noted())
    _remove(job, parts)


def _moving(bar: "tqdm[Any]", translations: Iterable[Translated]) -> Iterator[Translated]:
    for translation in translations:
        yield translation
        bar.update()


class _Changed(UserError):
    """A mistake after which finished chunks cannot be trusted."""


def _refuse_changes(job: Job) -> None:
    if changed := changes(job.texts):
        raise _Changed(
            *changed, f"{job.folder}: has chunks from before and after the change; delete the folder and start over"
        )


def _warn(job: Job, damages: Sequence[str]) -> None:
    for damage in damages:
        print(f"{job.program}: warning: {damage}", file=sys.stderr)


def _remove(job: Job, parts: Parts) -> None:
    """Remove the folder, or warn why it stays."""
    try:
        parts.remove()
    except UserError as error:
        _warn(job, [f"{error}; delete {parts.path}"])


def _kept(parts: Parts) -> str:
    """What has not been lost."""
    if parts.is_joined:
        return "the outputs are complete"
    return f"{len(parts.done())} of {parts.chunks} chunks are kept in {parts.path}, continue with --resume"
