"""The chunks of a long translation in the folder of its parts: their lines, their files, and which are finished.

A chunk is finished when its record is there, which is written last (see `finished`). It knows the folder of one job.
"""

from collections.abc import Mapping
from pathlib import Path

from nmt.errors import UserError
from nmt.jobs.description import Description
from nmt.jobs.finished import Damaged, Record, check, content, read_record, write_record

MAIN, RECORD = "output", "done"  # kinds of a chunk's files; the others are those of alignments
MOST_TOLD = 5  # damaged parts, each in a line


class Chunks:
    """The chunks of the job in the folder `path`; `outputs` are its files by their kinds."""

    def __init__(self, path: Path, outputs: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.outputs = outputs or {}
        self.description = Description(0, 1, {})
        self.is_joined = False  # the outputs are in place, and only the folder is left to remove

    def take(self, description: Description) -> None:
        """Make it the folder of this job."""
        self.description = description
        self.is_joined = description.joined is not None

    @property
    def lines(self) -> int:
        """The lines of the input."""
        return self.description.lines

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.lines // self.description.chunk_lines)

    def range(self, chunk: int) -> tuple[int, int]:
        """The first line of a chunk, and how many it has."""
        chunk_lines = self.description.chunk_lines
        first = chunk * chunk_lines
        return first, min(chunk_lines, self.lines - first)

    def part(self, chunk: int, kind: str) -> Path:
        """The file of a chunk that becomes part of the output of that kind."""
        return self.path / f"{chunk:06}.{kind}"

    def done(self) -> list[int]:
        """The chunks that are finished."""
        return [chunk for chunk in finished_chunks(self.path) if chunk < self.chunks]

    def done_lines(self) -> int:
        """The lines of all chunks that are finished."""
        return sum(self.range(chunk)[1] for chunk in self.done())

    def finish(self, chunk: int, *, lines: int) -> None:
        """Make a chunk done, whose files were written with so many lines each. Raises UserError if they are not so."""
        try:
            paths = {kind: self.part(chunk, kind) for kind in self.outputs}
            found = {kind: content(path) for kind, path in paths.items()}
            record = Record(lines, {kind: (each.size, each.digest) for kind, each in found.items()})
            for kind, path in paths.items():
                check(path, kind, record, found[kind])
            write_record(self.part(chunk, RECORD), job=self.description.digest, chunk=chunk, record=record)
        except Damaged as damage:
            raise UserError(f"{damage}, as soon as it was written") from None
        except OSError as error:
            raise unwritable(self.path, error) from error

    def damage(self, chunk: int) -> Damaged | None:
        """How a chunk is not what its record says."""
        try:
            record = self.record(chunk)
            for kind in self.outputs:
                check(self.part(chunk, kind), kind, record, content(self.part(chunk, kind)))
        except Damaged as damage:
            return damage
        return None

    def record(self, chunk: int) -> Record:
        """What a finished chunk has. Raises Damaged when its record does not say."""
        path = self.part(chunk, RECORD)
        record = read_record(path, job=self.description.digest, chunk=chunk)
        if record.files.keys() != self.outputs.keys() or record.lines < self.range(chunk)[1]:
            raise Damaged(f"{path}: does not have all lines of all outputs")
        return record

    def undo_damaged(self) -> list[str]:
        """Make chunks that are not what their records say unfinished; returns what there is to say about them."""
        told = []
        for chunk in self.done():
            if damage := self.damage(chunk):
                first, count = self.range(chunk)
                told.append(f"{damage}; lines {first + 1:,} to {first + count:,} are translated again")
                for kind in (RECORD, *self.outputs):
                    self.part(chunk, kind).unlink(missing_ok=True)
        return told if len(told) <= MOST_TOLD else [*told[:MOST_TOLD], f"… and {len(told) - MOST_TOLD:,} more parts"]


def finished_chunks(path: Path) -> list[int]:
    """The chunks in a folder that have a record."""
    stems = [part.stem for part in path.glob(f"*.{RECORD}")]
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and f"{int(stem):06}" == stem)


def unwritable(path: Path, error: OSError) -> UserError:
    """What to say when the folder cannot be written."""
    return UserError(f"{error.filename or path}: the folder of parts cannot be written ({error.strerror or error})")
