"""nmt-translate by several processes, and resumed: the input's chunks are shared out and kept until all are done.

Every process reads the input by itself and takes the chunks that no other has (see `parts`); what a chunk becomes
depends on its lines and their places in the input only. It knows options and lines, and translates by a function that
it is given.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.cli.alignments import FILES
from nmt.cli.facts import OUTPUTS, facts_of, paths_of
from nmt.cli.numbered_lines import NumberedLines
from nmt.cli.options import STANDARD, is_device, option_name
from nmt.decoding.translator import Translation
from nmt.errors import UserError
from nmt.jobs.chunks import MAIN
from nmt.jobs.description import Facts
from nmt.jobs.parts import Parts, remove_joined, unfinished
from nmt.jobs.states import State, states
from nmt.jobs.stopping import Interrupted, StopRequest, handled, leaving, telling
from nmt.jobs.team import Team
from nmt.jobs.torchrun import job

PROGRAM = "nmt-translate"
MOST_LINES = 2000  # of a chunk: enough to sort by length, and little to translate again
DIGITS = 18  # a number with as many is no number of lines
CHUNKS = 2  # at least for each process
ATTEMPTS = 3  # to have all parts as they were written
PAUSE = 3.0  # seconds between two looks at how much others have done
BESIDE = {"prefix": "prefixes", "constraints": "constraints"}  # options whose files have a line for each of the input

Translate = Callable[..., Iterator[list[Translation]]]  # lines, with first, prefixes and constraints
Write = Callable[[Iterable[list[Translation]], argparse.Namespace, int], None]  # to its outputs, from line `first` on


def add_parts_options(group: argparse._ActionsContainer) -> None:
    """Add the options by which a translation is done in chunks."""
    group.add_argument(
        "--resume",
        action="store_true",
        help="keep finished chunks of the input in the folder OUTPUT.parts until all are done, and go on from those "
        "that are there; begin if there are none",
    )
    group.add_argument(
        "--chunk-lines",
        metavar="N",
        help="lines of a chunk, which is translated by one process and kept when it is finished (default: at most "
        f"{MOST_LINES}, and at least {CHUNKS} chunks for each process). Like --resume it makes a translation by one "
        "process one that can be resumed",
    )


def in_parts(given: argparse.Namespace, team: Team) -> bool:
    """Whether the input is to be translated in chunks that are kept."""
    return team.size > 1 or given.resume or given.chunk_lines is not None


def check_parts(given: argparse.Namespace, team: Team, problems: list[str]) -> None:
    """Add to `problems` what does not go with chunks, or, without them, that there are some of this output."""
    output = Path(given.output)
    inside = _inside(given)
    if not in_parts(given, team):
        if given.output != STANDARD and not is_device(output) and (reason := unfinished(_folder(given))):
            problems.append(reason)
        elif not problems and not inside:
            remove_joined(_folder(given))
        return
    why = "--resume" if given.resume else "--chunk-lines"
    why = f"several processes (torchrun starts {team.size})" if team.size > 1 else why
    files = {"--input": Path(given.input)}
    files |= {option_name(name): each for name, value in vars(given).items() for each in paths_of(name, value)}
    for option, path in files.items():
        if str(path) == STANDARD or is_device(path):
            problems.append(
                f"{option} {path} can be read only once, and {why} needs it several times; give a file that stays"
            )
    if given.output == STANDARD or is_device(output):
        problems.append(f"--output {given.output}: {why} needs a file, beside which finished parts are kept")
    problems.extend(
        f"{each}: is in {_folder(given)}, which is removed in the end; give another place" for each in inside
    )
    if given.chunk_lines is not None and not _is_count(given.chunk_lines):
        problems.append(f"--chunk-lines {given.chunk_lines}: allowed: a whole number, at least 1")


def translate_in_parts(
    given: argparse.Namespace,
    team: Team,
    *,
    models: Sequence[Path],
    lines: int,
    load: Callable[[], Translate],
    write: Write,
) -> int:
    """Translate the `lines` of the input as one of the team; `load` gives what translates. Returns the exit code.

    The first process waits for the others and puts the parts together. Raises UserError.
    """
    texts = [Path(given.input), *(path for name in BESIDE if (path := getattr(given, name)) is not None)]
    before = states({str(path): str(path) for path in texts})
    facts = team.together("facts", partial(facts_of, given, models))
    with ExitStack() as stack:

        def open_folder() -> Parts | None:
            return stack.enter_context(_open(given, team, facts, lines)) if team.is_first else None

        def follow() -> Parts:
            if opened is not None:
                return opened
            return stack.enter_context(Parts.follow(_folder(given), facts, outputs=_outputs(given), rank=team.rank))

        opened = team.together("folder", open_folder)
        try:
            parts = team.together("follow", follow)
            if parts.is_joined:
                if team.is_first:
                    _remove(parts)
                return 0
            _tell(parts.damages)
            if team.is_first and (done := len(parts.done())):
                print(f"{PROGRAM}: resuming: {done} of {parts.chunks} chunks are finished", file=sys.stderr)
            translate = team.together("model", load)
        except UserError:
            if opened is not None and not opened.done():
                _remove(opened)
            raise
        return _stoppable(team, parts, lambda check: _work(given, team, parts, translate, write, check, before))


def _stoppable(team: Team, parts: Parts, body: Callable[[Callable[[], None]], None]) -> int:
    """Call `body`; whatever stops it, say what is kept. Returns the exit code; raises UserError.

    A signal stops it at once. `body` is given a function to call now and then, lest one is lost in a library.
    """
    stop = StopRequest()
    try:
        with handled(leaving(PROGRAM)), stop.installed(), stop.at_once():
            body(stop.check)
    except Interrupted as interruption:
        if team.is_first:
            by = f"process 0 of {team.size} " if team.size > 1 else ""
            with suppress(OSError), telling():  # the terminal may be gone
                print(f"{PROGRAM}: {by}{interruption}; {_kept(parts)}", file=sys.stderr)
        return interruption.exit_code
    except UserError as error:
        if isinstance(error, _Changed):
            pass  # what is kept is for the user to look at
        elif parts.is_joined or parts.done():
            *others, last = error.messages
            error = UserError(*others, f"{last}; {_kept(parts)}")
        elif team.size == 1:
            _remove(parts)  # there is nothing to lose
        raise team.once(error) from None
    return 0


def _open(given: argparse.Namespace, team: Team, facts: Facts, lines: int) -> Parts:
    return Parts.open(
        _folder(given),
        facts,
        outputs=_outputs(given),
        lines=lines,
        chunk_lines=None if given.chunk_lines is None else int(given.chunk_lines),
        usual_chunk=max(1, min(MOST_LINES, lines // (CHUNKS * team.size))),
        resume=given.resume,
        job=job(),
    )


def _work(
    given: argparse.Namespace,
    team: Team,
    parts: Parts,
    translate: Translate,
    write: Write,
    check: Callable[[], None],
    before: Mapping[str, State],
) -> None:
    """Translate chunks while there are any; as the first process put the parts together when all are done.

    Raises UserError where a file is not any more what it was `before`.
    """
    texts = {name: NumberedLines(path) for name in BESIDE if (path := getattr(given, name)) is not None}
    source = NumberedLines(Path(given.input))
    outputs = _outputs(given)
    watched = team.is_first and sys.stderr.isatty()
    initial, looked = parts.done_lines() if watched else 0, time.monotonic()
    bar: tqdm[Any]
    with tqdm(total=parts.lines, initial=initial, unit=" lines", disable=not watched) as bar:

        def look() -> None:
            nonlocal looked
            if watched and time.monotonic() - looked >= PAUSE:
                bar.update(parts.done_lines() - bar.n)
                looked = time.monotonic()

        for _ in range(ATTEMPTS):
            for chunk in parts.claims(stay=team.is_first, look=look):
                check()
                first, count = parts.range(chunk)
                beside = {BESIDE[name]: text.lines(first, count) for name, text in texts.items()}
                counted = _Counted(translate(source.lines(first, count), first=first, **beside), bar)
                files = {name: str(parts.part(chunk, name)) for name in outputs}
                write(counted, argparse.Namespace(**{**vars(given), **files}), first)
                parts.finish(chunk, lines=counted.written)
                look()
            if not team.is_first:
                return
            if watched:
                bar.update(parts.lines - bar.n)
            _refuse_changes(parts, before)
            damages = parts.join()
            if not damages:
                break
            _tell(damages)
        else:
            raise UserError(f"{parts.path}: parts are not what was written, again and again; the disk may be failing")
    _remove(parts)


def _refuse_changes(parts: Parts, before: Mapping[str, State]) -> None:
    after = states({name: name for name in before})
    if changed := [name for name in before if after[name] != before[name]]:
        raise _Changed(
            *(f"{name}: has been changed since the translation began; let it stay as it is" for name in changed),
            f"{parts.path}: has chunks of what was there before and after; delete the folder and begin again",
        )


def _tell(damages: Iterable[str]) -> None:
    for damage in damages:
        print(f"{PROGRAM}: warning: {damage}", file=sys.stderr)


def _remove(parts: Parts) -> None:
    """Remove the folder, or say why it stays."""
    try:
        parts.remove()
    except UserError as error:
        print(f"{PROGRAM}: warning: {error}; delete {parts.path}", file=sys.stderr)


class _Counted:
    """Translations, each of which moves a bar; `written` are those for which there is a line in each output."""

    def __init__(self, translations: Iterable[list[Translation]], bar: "tqdm[Any]") -> None:
        self._translations, self._bar = translations, bar
        self.written = 0

    def __iter__(self) -> Iterator[list[Translation]]:
        for each in self._translations:
            self.written += len(each)
            yield each
            self._bar.update()


class _Changed(UserError):
    """A mistake after which the chunks that are finished are not to be trusted."""


def _outputs(given: argparse.Namespace) -> dict[str, str]:
    """The files that are joined from parts, by their kinds."""
    return {name: getattr(given, name) for name in (MAIN, *FILES) if getattr(given, name) is not None}


def _inside(given: argparse.Namespace) -> list[str]:
    """The outputs that are the folder of parts, or lie in it, with their options."""
    folder = _folder(given).resolve()
    values = {option_name(name): value for name in OUTPUTS if (value := getattr(given, name)) is not None}
    wholes = {f"{option} {value}": Path(value).resolve() for option, value in values.items()}
    return [each for each, whole in wholes.items() if whole.is_relative_to(folder)]


def _folder(given: argparse.Namespace) -> Path:
    return Path(f"{given.output}.parts")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < DIGITS and int(text) > 0


def _kept(parts: Parts) -> str:
    """What is not lost."""
    if parts.is_joined:
        return "the outputs are complete"
    return f"{len(parts.done())} of {parts.chunks} chunks are kept in {parts.path}, go on with --resume"
