"""Bilingual dictionaries: files of words with their translations, one entry per line.

    source target [weight]

separated by tabs, so that a translation may contain spaces, or by spaces in a line without a tab. The file is UTF-8,
plain or gzip; blank lines are skipped. Of several entries for a word the one with the largest weight counts, the first
one in a tie; either every line has a weight or none has. It knows files and words, and no models.
"""

import math
from pathlib import Path
from typing import NamedTuple

from nmt.data.corpus import read_lines
from nmt.errors import UserError, counted, refuse_lines


class _Entry(NamedTuple):
    source: str
    target: str
    weight: float


class Dictionary(dict[str, str]):
    """The translations of words, all of which have been checked."""


def read_dictionary(path: Path) -> Dictionary:
    """The best translation of each word. Raises UserError with a message for each line that is not an entry."""
    best: dict[str, _Entry] = {}
    problems: list[str] = []
    first: tuple[int, int] | None = None  # number and columns of the first entry
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
        try:
            if first is not None and len(fields) != first[1] and len(fields) in (2, 3):
                raise ValueError(f"{len(fields)} columns, but line {first[0]} has {first[1]}")
            entry = _entry(fields)
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
            continue
        first = first or (number, len(fields))
        if entry.source not in best or entry.weight > best[entry.source].weight:
            best[entry.source] = entry
    refuse_lines(path, problems)
    if not best:
        raise UserError(f"{path}: has no entries; expected lines such as: Hund dog")
    return Dictionary({source: entry.target for source, entry in best.items()})


def _entry(fields: list[str]) -> _Entry:
    """The entry of a line with these columns. Raises ValueError that says why it is none."""
    if len(fields) not in (2, 3):
        raise ValueError(f"{counted(len(fields), 'column')}; expected: source target [weight]")
    source, target = fields[:2]
    if not (source and target):
        raise ValueError(f"the {'target' if source else 'source'} is empty")
    if len(source.split()) > 1:
        raise ValueError(f"the source {source!r} is more than one word, but words are looked up one by one")
    try:
        weight = float(fields[2]) if len(fields) == 3 else 1.0
    except ValueError:
        weight = math.nan
    if math.isnan(weight):
        raise ValueError(f"the weight {fields[2]!r} is not a number")
    return _Entry(source, " ".join(target.split()), weight)
