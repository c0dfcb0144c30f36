"""Shards: one text in N blocks, which N commands translate without knowing of each other, and the whole made of them.

Shard I of N of the output NAME is the file NAME.I-of-N. Beside that of the translations stands, written last, a record:
what translation this is, which lines of the text it has, and the lines, the size and the SHA-256 of each of its files.
Nothing is locked and nothing is shared, so a shard may be translated anywhere, at any time, and again.

It knows files and facts (see `records`), no models and no text. Its messages name options of nmt-translate.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from nmt.errors import Checking, UserError, checked, first_of
from nmt.files import written_atomically
from nmt.jobs.records import Content, Damaged, Facts, check, digest_of, is_content, is_count, read_content, read_json

MOST = 100_000  # shards of a text
MOST_TOLD = 20  # shards that a message lists
_RECORD = "json"  # the end of a record's name

Files = Mapping[str, str]  # names by kind


class Shard(NamedTuple):
    """One of the blocks of a text."""

    number: int  # from 1
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def name(self, output: str) -> str:
        """The file for its part of `output`."""
        return f"{output}.{self.number}-of-{self.of}"

    def block(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Its first line, from 0, and its number of lines, in a text that may be cut into pieces of `sizes` lines."""
        begin, end = (len(sizes) * number // self.of for number in (self.number - 1, self.number))
        return sum(sizes[:begin]), sum(sizes[begin:end])


class Record(NamedTuple):
    """What is noted of a finished shard."""

    shard: Shard
    first: int  # line of the text, from 0
    lines: int  # of the text
    of_lines: int  # that the whole text has
    facts: Facts  # that all shards have in common
    files: Mapping[str, Content]  # by kind

    def values(self) -> dict[str, Any]:
        """As JSON has it, with a checksum."""
        values = {**self._asdict(), "shard": str(self.shard)}
        return {**values, "digest": digest_of(values)}


def record_of(name: str) -> str:
    """The file for the record of a shard whose translations are in the file `name`."""
    return f"{name}.{_RECORD}"


def finish(path: Path, record: Record, files: Files) -> None:
    """Write the record of a shard whose `files` are in place; `record.files` are not known before.

    Raises UserError if they do not have as many lines as each other and enough, or cannot be read or written.
    """
    try:
        contents = {kind: read_content(Path(name)) for kind, name in files.items()}
        lines = next(iter(contents.values())).lines
        for kind, content in contents.items():
            check(Path(files[kind]), content, content._replace(lines=max(lines, record.lines)))
        with written_atomically(path.resolve()) as file:
            json.dump(record._replace(files=contents).values(), file, indent=2)
    except Damaged as damage:
        raise UserError(f"{damage}, as soon as it was written") from None
    except OSError as error:
        raise UserError(f"{error.filename or path}: cannot be written ({error.strerror or error})") from error


def merge(outputs: Files, *, main: str) -> int:
    """Join the files of all shards to `outputs`, by kind; `main` is the kind beside which records are.

    Returns the number of shards. The outputs appear when all are complete, or none of them does. Raises UserError with
    all that is missing, damaged, or of another translation.
    """
    try:
        shards = _all_shards(outputs[main])
        records = checked(_read_records(shards, outputs, main))
        with ExitStack() as stack:
            wholes = {
                kind: stack.enter_context(written_atomically(Path(name).resolve(), "wb"))  # where a link points
                for kind, name in outputs.items()
            }
            checked(_copying(records, outputs, wholes))
    except OSError as error:
        name = error.filename or outputs[main]
        raise UserError(f"{name}: cannot be read or written ({error.strerror or error})") from None
    return len(shards)


def _all_shards(output: str) -> list[Shard]:
    """All shards that an output has, by the records of those that are there.

    Raises UserError if there is none, or there are some of several numbers.
    """
    there: dict[int, list[Shard]] = {}
    folder, name = Path(output).parent, Path(output).name
    named = re.compile(rf"{re.escape(name)}\.([1-9][0-9]{{0,5}})-of-([1-9][0-9]{{0,5}})\.{_RECORD}")
    with suppress(FileNotFoundError), os.scandir(folder) as files:
        for match in filter(None, (named.fullmatch(file.name) for file in files)):
            shard = Shard(*map(int, match.groups()))
            if shard.number <= shard.of <= MOST:
                there.setdefault(shard.of, []).append(shard)
    if not there:
        raise UserError(
            f"{output}: no shard of it is there: --shard I/N with --output {output} writes {output}.I-of-N and beside "
            f"it {output}.I-of-N.{_RECORD}"
        )
    if len(there) > 1:
        sets = "; ".join(f"of {of}: {_listed(sorted(there[of]))}" for of in sorted(there))
        raise UserError(f"{output}: there are shards of several numbers ({sets}); delete those that do not count")
    (of,) = there
    return [Shard(number, of) for number in range(1, of + 1)]


def _read_records(shards: Sequence[Shard], outputs: Files, main: str) -> Checking[list[Record]]:
    """The records of all shards, in order; yields what is missing, damaged or different, also of their files."""
    records, missing = [], []
    for shard in shards:
        path = Path(record_of(shard.name(outputs[main])))
        try:
            if path.exists():
                records.append(_read(path, shard))
            else:
                missing.append(shard)
        except Damaged as damage:
            yield f"{damage}; translate shard {shard} again"
    if missing:
        begun = [shard for shard in missing if Path(f"{shard.name(outputs[main])}.parts").exists()]
        hint = f" (begun, to be continued with --resume: {_listed(begun)})" if begun else ""
        yield f"{outputs[main]}: {len(missing)} of {len(shards)} shards are missing: {_listed(missing)}{hint}"
    different = list(_differences(records, outputs))
    yield from different
    if not different and len(records) == len(shards):
        yield from _gaps(records, outputs[main])
    if different or len(records) < len(shards):  # else files are checked while they are copied
        yield from _copying(records, outputs, {})
    return records


def _read(path: Path, shard: Shard) -> Record:
    """The record of a shard. Raises Damaged if it is not what was written."""
    values = read_json(path)
    digest = values.pop("digest", None)
    first, lines, of_lines, facts, files = (
        values.get(name) for name in ("first", "lines", "of_lines", "facts", "files")
    )
    counts = [count for count in (first, lines, of_lines) if is_count(count)]
    if len(counts) < 3 or not isinstance(facts, dict) or not isinstance(files, dict):
        raise Damaged(f"{path}: damaged")
    if not all(map(is_content, files.values())) or digest != digest_of(values):
        raise Damaged(f"{path}: damaged (it does not fit its checksum)")
    if values.get("shard") != str(shard):
        raise Damaged(f"{path}: is the record of shard {values.get('shard')}")
    contents = {kind: Content(*content) for kind, content in files.items()}
    first, lines, of_lines = counts
    return Record(shard, first, lines, of_lines, {name: str(fact) for name, fact in facts.items()}, contents)


def _differences(records: Sequence[Record], outputs: Files) -> Iterable[str]:
    """What the shards do not have in common: the text, the model, an option, or the files to merge."""
    facts = [{**record.facts, "the lines of the text": f"{record.of_lines:,}"} for record in records]
    for name in dict.fromkeys(name for several in facts for name in several):
        groups: dict[str, list[Shard]] = {}
        for record, several in zip(records, facts, strict=True):
            groups.setdefault(several.get(name, "not given"), []).append(record.shard)
        if len(groups) > 1:
            told = ("given" if fact in ("True", "wanted") else fact for fact in groups)
            sets = "; ".join(f"{fact} in {_listed(ones)}" for fact, ones in zip(told, groups.values(), strict=True))
            yield f"{name} differs: {sets}"
    for kind in dict.fromkeys([*outputs, *(kind for record in records for kind in record.files)]):
        option, having = f"--{kind.replace('_', '-')}", [record.shard for record in records if kind in record.files]
        if having and kind not in outputs:
            yield f"{option} is missing: shards were translated with it; give the name that they were given"
        elif records and not having:
            yield f"{option} {outputs[kind]}: no shard was translated with this option; leave it out"


def _gaps(records: Sequence[Record], output: str) -> Iterable[str]:
    """Where the lines of one shard do not begin at the end of those before it."""
    end = 0
    for record in records:
        if record.first != end:
            yield f"{output}: shard {record.shard} begins with line {record.first + 1:,} instead of {end + 1:,}"
        end = record.first + record.lines
    if end != records[-1].of_lines:
        yield f"{output}: the last shard ends with line {end:,} instead of {records[-1].of_lines:,}"


def _copying(records: Sequence[Record], outputs: Files, wholes: Mapping[str, IO[bytes]]) -> Checking[None]:
    """Copy the files of all shards to `wholes`, by kind, or only read them; yields which are not what was recorded."""
    for kind, output in outputs.items():
        for record in records:
            if kind in record.files:
                path = Path(record.shard.name(output))
                try:
                    check(path, read_content(path, to=wholes.get(kind)), record.files[kind])
                except Damaged as damage:
                    yield f"{damage}; translate shard {record.shard} again"


def _listed(shards: Sequence[Shard]) -> str:
    """Shards as they are named in options, and of many the first."""
    return ", ".join(first_of([*map(str, shards)], MOST_TOLD))
