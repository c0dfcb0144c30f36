"""A long translation in chunks of lines, which are kept until all are there, and which several workers share.

The chunks of a translation stand in a folder beside its output, whose name ends with the hash of everything that
determines the outputs, so chunks of different translations never meet. A chunk has one file per output and a record
with their checksums, which is written last: whatever no record vouches for is translated again. Worker i of N
takes the chunks k with k mod N = i. All files appear at once, and whoever writes a chunk writes the same, so nothing is
locked; what a killed process has finished, any number of others continue. When all chunks are there, they are joined; a
chunk that is then not as it was written loses its record.

It knows files, the numbers of lines, and facts by the names that users know. It knows no model and no text: it is given
the function that translates some lines to files.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from nmt.errors import DamagedFile, UserError, collected, counted, first_of, refuse
from nmt.files import UNFINISHED, new_digest, written_atomically
from nmt.processes import Processes
from nmt.signals import Stopped

MOST = 2000  # chunks, unless the user says how long they are: a folder of thousands of files, not of a million
MOST_SHARDS = 100_000
MOST_LISTED = 20  # chunks in a message
MOST_BYTES = 1 << 26  # of a description, which is thousands of times smaller
PAUSE = 0.2  # seconds between two looks for the chunks of other workers
BLOCK = 1 << 20  # bytes read at a time
JOB, RECORD = "job.json", "record"
_OURS = re.compile(rf"(job\.json|[0-9]{{6,}}\.[a-z_]+)({UNFINISHED.pattern})?")

Facts = Mapping[str, str]
State = tuple[int, int, int] | None  # a file's number, its size, and when it changed, in nanoseconds; None: missing
Translate = Callable[[Callable[[], object], int, int, Mapping[str, str]], object]
"""Translates lines (the first, and how many) to files by kind, and calls a function after each line."""


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

    def lines(self, chunks: Iterable[int]) -> int:
        """How many lines some chunks have together."""
        return sum(self.description.sizes[chunk] for chunk in chunks)

    def file(self, chunk: int, kind: str) -> Path:
        """A chunk's file of one kind, or its record."""
        return self.path / f"{chunk:06}.{kind}"

    def finished(self) -> set[int]:
        """The chunks that have records."""
        with suppress(FileNotFoundError, NotADirectoryError):
            names = {path.name for path in self.path.iterdir()}
            return {chunk for chunk in range(self.count) if self.file(chunk, RECORD).name in names}
        return set()

    def make(self) -> None:
        """Make the folder, if it is not there yet, with a description that a person and `merge` can read."""
        self.path.mkdir(exist_ok=True)
        text = json.dumps(self.description._asdict(), indent=2)
        place = self.path / JOB
        if not place.exists() or place.read_bytes() != text.encode():
            with written_atomically(place) as file:
                file.write(text)

    def finish(self, chunk: int) -> None:
        """Record a chunk as finished, whose files are written."""
        with written_atomically(self.file(chunk, RECORD)) as file:
            file.write(self._vouching(chunk, {}))

    def join(self, outputs: Mapping[str, str]) -> list[int]:
        """Write the outputs from all chunks, in order. If some chunks are missing, or not as they were written, write
        nothing, remove their records, and return them.
        """
        lacking: list[int] = []
        with suppress(DamagedFile), ExitStack() as stack:
            wholes = {
                kind: stack.enter_context(written_atomically(Path(name).resolve(), "wb"))  # where a link points
                for kind, name in outputs.items()
            }
            lacking = [chunk for chunk in range(self.count) if not self._copied(chunk, wholes)]
            if lacking:
                raise DamagedFile(str(self.path))
        for chunk in lacking:
            self.file(chunk, RECORD).unlink(missing_ok=True)
        return lacking

    def remove(self) -> None:
        """Remove the folder, or what is ours in it where there is a file of somebody else."""
        with suppress(OSError):  # another command was faster, or it must not be removed
            for path in sorted(self.path.iterdir()):  # the description last
                if _OURS.fullmatch(path.name):
                    path.unlink(missing_ok=True)
            self.path.rmdir()

    def kept(self) -> str:
        """What is not lost when a translation ends before its time; "" if nothing is there."""
        done = len(self.finished())
        return f"{done} of {self.count} chunks are kept in {self.path}; the same command continues" if done else ""

    def _copied(self, chunk: int, to: Mapping[str, IO[bytes]]) -> bool:
        """Whether a chunk is as its record says, while its files are copied `to` others."""
        if not all(self.file(chunk, kind).is_file() for kind in (*self.description.kinds, RECORD)):
            return False
        vouching = new_digest(self._vouching(chunk, to).encode())
        return _checksum(self.file(chunk, RECORD), None) == vouching.hexdigest()

    def _vouching(self, chunk: int, to: Mapping[str, IO[bytes]]) -> str:
        """What the record of a chunk has to say: of which job it is, its number, and the checksums of its files, which
        are copied `to` others."""
        checksums = {kind: _checksum(self.file(chunk, kind), to.get(kind)) for kind in self.description.kinds}
        return json.dumps({"job": self.digest, "chunk": chunk, "files": checksums})


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
    """Look at what is there before work begins, and `say` what is finished.

    Raises UserError for chunks of another translation to the output.
    """
    chunks = job.chunks
    processes.check_same("translation", chunks.path.name)
    if not processes.is_first:
        return
    for folder in folders_of(chunks.output):
        if folder != chunks.path:
            other, here = _chunks_in(folder, chunks.output), chunks.description.facts
            there = {"its description": "damaged"} if other is None else other.description.facts
            differences = [
                f"\n  {name}: {there.get(name, 'not given')} there, {here.get(name, 'not given')} here"
                for name in dict.fromkeys([*there, *here])
                if there.get(name) != here.get(name)
            ]
            raise UserError(
                f"{folder}: holds finished chunks of another translation; give another --output, or delete the folder. "
                f"The differences:{''.join(differences)}"
            )
    if done := len(chunks.finished().intersection(job.mine())):
        say(f"resuming: {done} of {counted(len(job.mine()), 'chunk')} are finished")


def translate_chunks(
    job: Job,
    processes: Processes,
    translate: Translate,
    *,
    say: Callable[[str], object],
    watched: bool = False,
) -> None:
    """Translate as one of the processes, which have all called `open_chunks`.

    The first process waits for the others, and joins the chunks of a whole text.

    `say` reports to the user; `watched`: a progress bar shows the share of the first process. Raises UserError, and
    Stopped, which says what is kept.
    """
    chunks, own = job.chunks, job.mine()[processes.rank :: processes.size]
    finished = processes.together(chunks.finished)  # together: the first process may soon join and remove them
    todo = [chunk for chunk in own if chunk not in finished]
    problems: list[str] = []
    try:
        with collected(problems):
            if todo or processes.is_first:
                chunks.make()  # once: where another command has removed it, it is not made again
            from tqdm import tqdm  # not at every start of a command, as it takes long

            bar: tqdm[Any] = tqdm(
                total=chunks.lines(own),
                initial=chunks.lines(finished.intersection(own)),
                unit=" lines",
                disable=not (watched and processes.is_first),
            )
            with bar:
                _translate(job, todo, partial(translate, bar.update))
            if processes.is_first:
                _finish(job, own, translate, say)
    except Stopped as stop:
        stop.saved = chunks.kept()
        raise
    if problems:
        problems[-1] = "; ".join(filter(None, (problems[-1], chunks.kept())))
        raise processes.once(UserError(*problems))


def _translate(job: Job, todo: Iterable[int], translate: Callable[[int, int, Mapping[str, str]], object]) -> None:
    """Translate some chunks. Raises UserError for a text that has changed, so that its lines may be others."""
    chunks = job.chunks
    for chunk in todo:
        files = {kind: str(chunks.file(chunk, kind)) for kind in chunks.description.kinds}
        translate(*chunks.span(chunk), files)
        changed = [path for path, before in job.texts.items() if file_state(path) != before]
        refuse([f"{path}: has changed since the translation began; restore it" for path in changed])
        chunks.finish(chunk)


def _finish(job: Job, own: Sequence[int], translate: Translate, say: Callable[[str], object]) -> None:
    """Wait for the other processes, and join the chunks of a whole text.

    `own` are the chunks of this process, which are finished.
    """
    chunks, mine = job.chunks, job.mine()
    while missing := set(mine) - chunks.finished():
        if missing.intersection(own):
            raise UserError(f"{chunks.path}: is gone; has another command translated to {chunks.output}?")
        time.sleep(PAUSE)
    if job.shard is None:
        if damaged := chunks.join(job.outputs):
            say(f"warning: {chunks.path}: {_listed(damaged)} not as written, and translated again")
            _translate(job, damaged, partial(translate, lambda: None))
            if chunks.join(job.outputs):
                raise UserError(f"{chunks.path}: chunks keep differing from what was written; the disk may be failing")
        chunks.remove()


def merge(outputs: Mapping[str, str], *, main: str) -> int:
    """Join the chunks that shards have translated, as far as `outputs`, by kind, name the files of all of them.

    `main` is the kind whose file the folder of chunks is beside. Returns the number of chunks. The outputs appear when
    all chunks are whole, or none of them does. Raises UserError for what is missing, damaged, or of another
    translation.
    """
    folders = folders_of(output := outputs[main])
    if not folders:
        raise UserError(f"{output}: no chunk of it is there: --shard I/N with --output {output} writes them beside it")
    if len(folders) > 1:
        raise UserError(
            f"{output}: there are chunks of several translations: {', '.join(map(str, folders))}; delete those that do "
            f"not count; {JOB} in each says what it is of"
        )
    (folder,) = folders
    if (chunks := _chunks_in(folder, output)) is None:
        raise UserError(f"{folder / JOB}: damaged; any command with --shard writes it again")
    kinds = chunks.description.kinds
    if {*outputs} != {*kinds}:
        options = ", ".join(f"--{kind.replace('_', '-')}" for kind in kinds)
        raise UserError(f"{output}: shards were translated with {options}; give the files for these, and no others")
    problems: list[str] = []
    with collected(problems):
        if lacking := chunks.join(outputs):
            problems.append(
                f"{chunks.path}: of {chunks.count}, {_listed(lacking)} missing or damaged; run the shards of these "
                "again: --shard I/N translates the chunks I, I + N, I + 2 N, …"
            )
    refuse(problems)
    chunks.remove()
    return chunks.count


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


def _listed(chunks: Sequence[int]) -> str:
    """The chunks by their numbers, from 1, as in: 3 chunks (1, 4, 5) are."""
    numbers = ", ".join(first_of([str(chunk + 1) for chunk in chunks], MOST_LISTED))
    return f"{counted(len(chunks), 'chunk')} ({numbers}) {'is' if len(chunks) == 1 else 'are'}"


def _chunks_in(folder: Path, output: str) -> Chunks | None:
    """The chunks in a folder; None if its description is not what was written."""
    with suppress(OSError, ValidationError), open(folder / JOB, "rb") as file:
        description = TypeAdapter(Description).validate_json(file.read(MOST_BYTES), strict=True)
        chunks = Chunks(output, description)
        return chunks if chunks.path.name == folder.name else None
    return None


def _checksum(path: Path, to: IO[bytes] | None) -> str:
    """The checksum of a file, which is copied `to` another one."""
    digest = new_digest()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            if to is not None:
                to.write(block)
    return digest.hexdigest()
