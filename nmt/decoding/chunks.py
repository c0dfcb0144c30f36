"""A long translation in chunks of lines, which are kept until all are there, and which several workers share.

The chunks of a translation stand in a folder beside its output, whose name ends with the hash of everything that
determines the outputs, so chunks of different translations never meet. A chunk has one file per output and a record
with their sizes and checksums, which is written last: whatever no record vouches for is translated again. Worker i of N
takes the chunks k with k mod N = i. All files appear at once, and whoever writes a chunk writes the same, so nothing is
locked; what a killed process has finished, any number of others continue. When all chunks are there, they are joined.

It knows files, the numbers of lines, and facts by the names that users know. It knows no model and no text: it is given
the function that translates some lines to files.
"""

import json
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

from tqdm import tqdm

from nmt.errors import DamagedFile, UserError, counted, first_of, refuse
from nmt.files import UNFINISHED, new_digest, written_atomically
from nmt.processes import ALONE, Processes
from nmt.signals import Stopped

MOST = 2000  # chunks, unless the user says how long they are: a folder of thousands of files, not of a million
MOST_SHARDS = 100_000
MOST_REPORTED = 5  # damaged chunks, one a line
MOST_BYTES = 1 << 26  # of a record or a description, which are thousands of times smaller
ATTEMPTS = 3  # at joining chunks that are as they were written
PAUSE = 0.2  # seconds between two looks for the chunks of other workers
BLOCK = 1 << 20  # bytes read at a time
JOB, RECORD = "job.json", "record"
_OURS = re.compile(rf"(job\.json|[0-9]{{6,}}\.[a-z_]+)({UNFINISHED.pattern})?")

Facts = Mapping[str, str]
State = tuple[int, int, int] | None  # a file's number, its size, and when it changed, in nanoseconds; None: missing
Translate = Callable[[Callable[[], object], int, int, Mapping[str, str]], int]
"""Translates lines (the first, and how many) to files by kind, and calls a function after each line.

Returns a number that is to be noted with these lines.
"""


class ChangedText(UserError):
    """A file has changed while it was translated, so that the same command would be another translation."""


class Shard(NamedTuple):
    """The chunks that one of several commands translates: chunk k with k mod `of` = `number` - 1."""

    number: int  # from 1
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Description(NamedTuple):
    """What determines the outputs: facts, the kinds of outputs, and how many lines each chunk has."""

    facts: Facts
    kinds: Sequence[str]
    sizes: Sequence[int]

    @property
    def digest(self) -> str:
        return new_digest(json.dumps(self._asdict(), sort_keys=True).encode()).hexdigest()


class Chunks:
    """The folder with the chunks of one translation to `output`. It is made with the first chunk that is finished."""

    def __init__(self, output: str, description: Description) -> None:
        self.output, self.description = output, description
        self.digest = description.digest
        self.path = Path(f"{output}.chunks-{self.digest[:16]}")
        self.count = len(description.sizes)
        self._firsts = [0, *accumulate(description.sizes)]

    def span(self, chunk: int) -> tuple[int, int]:
        """The first line of a chunk, from 0, and its number of lines."""
        return self._firsts[chunk], self.description.sizes[chunk]

    def file(self, chunk: int, kind: str) -> Path:
        """A chunk's file of one kind, or its record."""
        return self.path / f"{chunk:06}.{kind}"

    def finished(self) -> set[int]:
        """The chunks that have records."""
        with suppress(FileNotFoundError):
            names = [path.stem for path in self.path.iterdir() if path.suffix == f".{RECORD}"]
            numbers = {int(name) for name in names if re.fullmatch("[0-9]{6,18}", name)}
            return {number for number in numbers if number < self.count}
        return set()

    def make(self) -> None:
        """Make the folder, if it is not there yet, with a description that a person and `merge` can read."""
        self.path.mkdir(exist_ok=True)
        text = json.dumps(self.description._asdict(), indent=2)
        place = self.path / JOB
        if not place.exists() or place.read_bytes() != text.encode():
            with written_atomically(place) as file:
                file.write(text)

    def finish(self, chunk: int, **notes: int) -> None:
        """Record a chunk as finished, whose files are written, with what is noted of it."""
        with written_atomically(self.file(chunk, RECORD)) as file:
            json.dump({**self._measured(chunk), "notes": notes}, file)

    def damage(self, chunk: int, to: Mapping[str, IO[bytes]] | None = None) -> str | None:
        """What of a finished chunk is not as it was written; None if it is whole. Copies its files `to` others."""
        measured = self._measured(chunk, to or {})
        record = read_json(self.file(chunk, RECORD))
        files = record.get("files")
        if not isinstance(files, dict) or any(record.get(name) != measured[name] for name in ("job", "chunk")):
            return f"{self.file(chunk, RECORD)}: damaged, or of another chunk"
        for kind, content in measured["files"].items():
            if content is None:
                return f"{self.file(chunk, kind)}: is missing"
            if content != files.get(kind):
                return f"{self.file(chunk, kind)}: has been altered since it was finished"
        return None

    def notes(self, chunk: int, name: str) -> int:
        """A number that was noted of a finished chunk; 0 if there is none."""
        notes = read_json(self.file(chunk, RECORD)).get("notes")
        number = notes.get(name) if isinstance(notes, dict) else None
        return number if isinstance(number, int) else 0

    def discard(self, chunk: int) -> None:
        """Have a chunk translated again."""
        for kind in (RECORD, *self.description.kinds):
            self.file(chunk, kind).unlink(missing_ok=True)

    def join(self, outputs: Mapping[str, str]) -> dict[int, str]:
        """Write the outputs from all chunks, in order; if some are damaged, return these, with why, and write nothing.

        Raises UserError if an output cannot be written.
        """
        damages: dict[int, str] = {}
        with suppress(DamagedFile), _usable(self.output), ExitStack() as stack:
            wholes = {
                kind: stack.enter_context(written_atomically(Path(name).resolve(), "wb"))  # where a link points
                for kind, name in outputs.items()
            }
            for chunk in range(self.count):
                if damage := self.damage(chunk, wholes):
                    damages[chunk] = damage
            if damages:
                raise DamagedFile(*damages.values())
        return damages

    def remove(self) -> str | None:
        """Remove the folder; returns why that cannot be, as where there is a file of somebody else."""
        try:
            for path in sorted(self.path.iterdir(), key=lambda path: path.name == JOB):  # the description last
                if _OURS.fullmatch(path.name):
                    path.unlink(missing_ok=True)
            self.path.rmdir()
        except FileNotFoundError:
            pass  # another command was faster, or there were no chunks
        except OSError as error:
            return f"{self.path}: cannot be removed ({error.strerror or error})"
        return None

    def kept(self) -> str:
        """What is not lost when a translation ends before its time; "" if nothing is there."""
        done = len(self.finished())
        return f"{done} of {self.count} chunks are kept in {self.path}; the same command continues" if done else ""

    def differences(self, other: "Chunks | None") -> str:
        """How another translation differs, one fact a line; None if its description is damaged."""
        here = self.description.facts
        there = {"its description": "damaged"} if other is None else other.description.facts
        return "".join(
            f"\n  {name}: {there.get(name, 'not given')} there, {here.get(name, 'not given')} here"
            for name in dict.fromkeys([*there, *here])
            if there.get(name) != here.get(name)
        )

    def _measured(self, chunk: int, to: Mapping[str, IO[bytes]] | None = None) -> dict[str, Any]:
        """What the record of a chunk has to say."""
        files = {kind: _content(self.file(chunk, kind), (to or {}).get(kind)) for kind in self.description.kinds}
        return {"job": self.digest, "chunk": chunk, "files": files}


class Job(NamedTuple):
    """A translation to do in chunks; `texts` are the states of the files that are read, from before they were read."""

    chunks: Chunks
    outputs: Mapping[str, str]  # files by kind
    texts: Mapping[Path, State]
    shard: Shard | None = None  # None: all chunks, which are then joined

    def mine(self) -> Sequence[int]:
        """The chunks that are to be translated by this command."""
        every = range(self.chunks.count)
        return every if self.shard is None else every[self.shard.number - 1 :: self.shard.of]


def open_chunks(job: Job, processes: Processes, *, say: Callable[[str], object]) -> None:
    """Look at what is there before work begins; damaged chunks will be translated again, which `say` reports.

    Raises UserError for chunks of another translation to the output.
    """
    chunks = job.chunks
    processes.check_same("translation", chunks.path.name)
    if not processes.is_first:
        return
    for folder in folders_of(chunks.output):
        if folder != chunks.path:
            raise UserError(
                f"{folder}: holds finished chunks of another translation; give another --output, or delete the folder. "
                f"The differences:{chunks.differences(_read(chunks.output, folder))}"
            )
    with _usable(str(chunks.path)):
        if chunks.path.exists():
            chunks.make()
        mine = sorted(chunks.finished().intersection(job.mine()))
        damages = {chunk: damage for chunk in mine if (damage := chunks.damage(chunk))}
        _discard(chunks, damages, say)
    if done := len(mine) - len(damages):
        say(f"resuming: {done} of {counted(len(job.mine()), 'chunk')} are finished")


def translate_chunks(
    job: Job,
    processes: Processes,
    translate: Translate,
    *,
    say: Callable[[str], object],
    watched: bool = False,
) -> int:
    """Translate as one of the processes, which have all called `open_chunks`.

    The first process waits for the others, and joins the chunks of a whole text.

    `say` reports to the user; `watched`: so does a progress bar, in the first process. Returns the sum of what was
    noted with the chunks, in the first process, and 0 in the others. Raises UserError, and Stopped, which says what is
    kept.
    """
    chunks, mine = job.chunks, job.mine()
    finished = processes.together(chunks.finished)  # together: the first process may soon join and remove them
    sizes, watched = chunks.description.sizes, watched and processes.is_first
    initial = sum(sizes[chunk] for chunk in finished.intersection(mine))
    bar: tqdm[Any] = tqdm(
        total=sum(sizes[chunk] for chunk in mine), initial=initial, unit=" lines", disable=not watched
    )

    def look() -> None:
        """Show what other processes have finished, too."""
        if watched:
            bar.update(sum(sizes[chunk] for chunk in chunks.finished().intersection(mine)) - bar.n)

    try:
        with bar:
            _translate(job, processes, finished, partial(translate, bar.update), look)
            if not processes.is_first:
                return 0
            noted = _join(job, processes, partial(translate, bar.update), look, say)
    except Stopped as stop:
        stop.saved = chunks.kept()
        raise
    except ChangedText as error:  # the same command would be another translation
        raise processes.once(error) from None
    except UserError as error:
        *others, last = error.messages
        raise processes.once(UserError(*others, "; ".join(filter(None, (last, chunks.kept()))))) from None
    if job.shard is None and (problem := chunks.remove()):
        say(f"warning: {problem}; delete it")
    return noted


def _translate(
    job: Job,
    processes: Processes,
    finished: Container[int],
    translate: Callable[[int, int, Mapping[str, str]], int],
    look: Callable[[], object],
) -> None:
    """Translate the chunks of this process that are not finished."""
    chunks = job.chunks
    todo = [chunk for chunk in job.mine()[processes.rank :: processes.size] if chunk not in finished]
    if todo:
        with _usable(str(chunks.path)):
            chunks.make()  # once: where another command has removed it, it is not made again
    for chunk in todo:
        if not chunks.path.exists():
            raise UserError(_gone(chunks))
        files = {kind: str(chunks.file(chunk, kind)) for kind in chunks.description.kinds}
        noted = translate(*chunks.span(chunk), files)
        changed = [path for path, before in job.texts.items() if file_state(path) != before]
        if changed:
            what = f"has changed since the translation began; restore it, or delete {chunks.path}"
            raise ChangedText(*(f"{path}: {what}" for path in changed))
        with _usable(str(chunks.path)):
            chunks.finish(chunk, noted=noted, shards=0 if job.shard is None else job.shard.of)
        look()


def _join(
    job: Job,
    processes: Processes,
    translate: Callable[[int, int, Mapping[str, str]], int],
    look: Callable[[], object],
    say: Callable[[str], object],
) -> int:
    """Wait for the other processes, join the chunks of a whole text, and return the sum of what was noted with them."""
    chunks, mine = job.chunks, job.mine()
    damages: Mapping[int, str] = {}
    for _ in range(ATTEMPTS):
        if damages:
            _discard(chunks, damages, say)
            _translate(job, ALONE, chunks.finished(), translate, look)  # the other processes have ended
        while missing := set(mine) - chunks.finished():
            if missing.intersection(mine[processes.rank :: processes.size]):
                raise UserError(_gone(chunks))
            time.sleep(PAUSE)
            look()
        noted = sum(chunks.notes(chunk, "noted") for chunk in mine)
        if job.shard is not None or not (damages := chunks.join(job.outputs)):
            return noted
    raise UserError(f"{chunks.path}: chunks keep differing from what was written; the disk may be failing")


def merge(outputs: Mapping[str, str], *, main: str) -> int:
    """Join the chunks that shards have translated, as far as `outputs`, by kind, name the files of all of them.

    `main` is the kind whose file the folder of chunks is beside. Returns the number of chunks. The outputs appear when
    all chunks are whole, or none of them does. Raises UserError with all that is missing, damaged, or of another
    translation.
    """
    folders = folders_of(output := outputs[main])
    if not folders:
        raise UserError(f"{output}: no chunk of it is there: --shard I/N with --output {output} writes them beside it")
    folder, *others = folders
    if (chunks := _read(output, folder)) is None:
        raise UserError(f"{folder / JOB}: damaged; any command with --shard writes it again")
    if others:
        differences = "".join(f"\n{other}:{chunks.differences(_read(output, other))}" for other in others)
        raise UserError(
            f"{output}: there are chunks of several translations; delete those that do not count. The differences of "
            f"others from {folder}:{differences}"
        )
    problems = _other_kinds(chunks, outputs)
    finished = chunks.finished()
    if missing := sorted(set(range(chunks.count)) - finished):
        listed = ", ".join(first_of([str(chunk + 1) for chunk in missing], 20))
        problems.append(
            f"{chunks.path}: {len(missing)} of {chunks.count} chunks are missing: {listed}{_again(chunks, missing)}"
        )
    if problems:
        damages = {chunk: damage for chunk in sorted(finished) if (damage := chunks.damage(chunk))}
    else:
        damages = chunks.join(outputs)
    refuse(problems + [f"{damage}{_again(chunks, [chunk])}" for chunk, damage in damages.items()])
    chunks.remove()
    return chunks.count


def _gone(chunks: Chunks) -> str:
    return f"{chunks.path}: is gone; has another command translated to {chunks.output}?"


def folders_of(output: str) -> list[Path]:
    """The folders that have finished chunks of a translation to `output`."""
    place = Path(output)
    named = re.compile(rf"{re.escape(place.name)}\.chunks-[0-9a-f]{{16}}")
    with suppress(OSError):  # a folder that cannot be examined has none of ours
        names = sorted(path for path in place.parent.iterdir() if named.fullmatch(path.name))
        return [path for path in names if any(path.glob(f"*.{RECORD}"))]
    return []


def grouped(sizes: Iterable[int], most: int = MOST) -> list[int]:
    """The sizes of at most so many chunks, each of as many consecutive pieces."""
    pieces = list(sizes)
    each = max(1, -(-len(pieces) // most))
    return [sum(pieces[first : first + each]) for first in range(0, len(pieces), each)]


def file_state(path: Path) -> State:
    """What tells, later, whether a file has changed."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is none, or the file is too large to be ours."""
    with suppress(OSError, ValueError, RecursionError):  # also no UTF-8, too many digits, nested too deep
        with open(path, "rb") as file:
            values = json.loads(file.read(MOST_BYTES))
        if isinstance(values, dict):
            return values
    return {}


def _discard(chunks: Chunks, damages: Mapping[int, str], say: Callable[[str], object]) -> None:
    """Have damaged chunks translated again, and say so."""
    reports = []
    for chunk, damage in damages.items():
        chunks.discard(chunk)
        first, count = chunks.span(chunk)
        reports.append(f"warning: {damage}; lines {first + 1:,} to {first + count:,} are translated again")
    for report in first_of(reports, MOST_REPORTED, before="warning: and ", after=" damaged chunks"):
        say(report)


def _read(output: str, folder: Path) -> Chunks | None:
    """The chunks in a folder; None if its description is not what was written."""
    values = read_json(folder / JOB)
    with suppress(KeyError, TypeError, ValueError):
        chunks = Chunks(output, Description(values["facts"], values["kinds"], values["sizes"]))
        if chunks.path.name == folder.name:
            return chunks
    return None


def _other_kinds(chunks: Chunks, outputs: Mapping[str, str]) -> list[str]:
    """Which outputs are to be made of nothing, or are made and not named."""
    problems = []
    for kind in dict.fromkeys([*outputs, *chunks.description.kinds]):
        option = f"--{kind.replace('_', '-')}"
        if kind not in outputs:
            problems.append(f"{option} is missing: shards were translated with it; give the file for it")
        elif kind not in chunks.description.kinds:
            problems.append(f"{option} {outputs[kind]}: no shard was translated with this option; leave it out")
    return problems


def _again(chunks: Chunks, numbers: Sequence[int]) -> str:
    """Which shards to translate again, as far as the finished chunks tell how many there are."""
    counts = {chunks.notes(chunk, "shards") for chunk in chunks.finished()} - {0}
    if len(counts) != 1:
        return "; run the command for them again"
    (of,) = counts
    shards = sorted({chunk % of + 1 for chunk in numbers})
    return f"; run --shard {', '.join(first_of([f'{number}/{of}' for number in shards], 20))} again"


def _content(path: Path, to: IO[bytes] | None = None) -> list[int | str] | None:
    """The size of a file and its checksum, None if it is missing; copied `to` another one."""
    size, digest = 0, new_digest()
    try:
        file = open(path, "rb")  # noqa: SIM115 - `with` comes below, since a failure there is another one
    except FileNotFoundError:
        return None
    with file:
        while block := file.read(BLOCK):
            size += len(block)
            digest.update(block)
            if to is not None:
                to.write(block)
    return [size, digest.hexdigest()]


@contextmanager
def _usable(name: str) -> Iterator[None]:
    """Turn an OSError in the block into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{error.filename or name}: cannot be read or written ({error.strerror or error})") from error
