"""Pairs of texts from the files that people have: two parallel files, or a table of which a row is a pair.

Memories of translators are read by `nmt.documents.memories`, and `cleaning.py` says which pairs are of use.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from nmt.data.corpus import read_pairs
from nmt.data.tables import Row, rows
from nmt.errors import UserError, first_of, shortened

_MOST, _LONGEST = 10, 20  # columns in a message, and characters of their names


class Pair(NamedTuple):
    """A text and its translation, each on one line, and where they stand."""

    source: str
    target: str
    place: str  # of the pair: file and line
    document: str = ""  # that they are from; "": not known
    fault: str = ""  # a key of `cleaning.RULES` for what is no pair
    tags: Sequence[str] = ()  # of a form, which the source has behind its lemma


@lru_cache(maxsize=1000)
def is_language(code: str, wanted: str) -> bool:
    """Whether a language is the wanted one: en-US and EN_us are en, but en is not en-US."""
    code, wanted = (text.strip().lower().replace("_", "-") for text in (code, wanted))
    return code == wanted or code.startswith(f"{wanted}-")


def places_of(languages: Sequence[str], names: Sequence[Sequence[str]]) -> list[int]:
    """The places of source and target, or of several columns, no two the same; empty if one is not there.

    `names`: of each. Of several that fit, it is that with the earliest of the names, then en rather than en-US, then
    the first.
    """
    fitting = (
        sorted(
            (order, len(language), place)
            for (order, name), (place, language) in product(enumerate(several), enumerate(languages))
            if is_language(language, name)
        )
        for several in names
    )
    every = ([place for *_, place in chosen] for chosen in product(*fitting))
    return next((places for places in every if len({*places}) == len(places)), [])


def pairs_of_files(source: Path, target: Path) -> Iterator[Pair]:
    """Line i of one file with line i of the other. Raises UserError, as `read_pairs` does."""
    for line, pair in enumerate(read_pairs(source, target), start=1):
        yield Pair(*pair, f"{source}, line {line}")


def pairs_of_table(path: Path, names: Sequence[Sequence[str]], columns: Sequence[str] | None = None) -> Iterator[Pair]:
    """Columns of a file in CSV, or, with another ending, of one with a tab between two cells.

    `names`: what the columns of source and target may be called, the language first. `columns`: those that are, the
    target last, or their numbers from 1; without them there may also be two columns without names. A source of several
    columns is a lemma, which is its document, and the tags of a form, with spaces instead of what is between them; it
    is blank without a tag, but not every column has one in every row, as nouns have no tense.
    Raises UserError if it is not clear which columns are meant, or a quote does not end.
    """
    of_table = rows(path, ",;\t" if path.name.lower().endswith((".csv", ".csv.gz")) else "\t")
    beginning = next(of_table, None)
    if beginning is None:
        return
    first = beginning[1]
    places, has_names = _places(beginning, path, names, columns)
    for line, cells in of_table if has_names else chain([beginning], of_table):
        where = f"{path}, line {line}"
        if len(cells) == len(first):
            source, *features, target = (cells[place].strip() for place in places)
            tags = [*filter(None, re.split(r"[\s,;|]+", " ".join(features)))]
            text = " ".join([source, *tags]) if source and (tags or not features) else ""
            yield Pair(text, target, where, source if features else "", tags=tags)
        else:
            yield Pair(" ".join(cells), "", where, fault="columns")


def _places(
    beginning: Row, path: Path, names: Sequence[Sequence[str]], columns: Sequence[str] | None
) -> tuple[Sequence[int], bool]:
    """The places of the columns, that of the target last, and whether the first row has their names."""
    line, first = beginning
    numbers = [str(number) for number in range(1, len(first) + 1)]
    wanted = [[column] for column in columns] if columns else names
    if found := places_of(first, wanted):
        return found, True
    if found := places_of(numbers, wanted):
        return found, any(is_language(first[place], one) for place, one in product(found, chain(*names)))
    if not columns and len(first) == 2:
        return (0, 1), False
    shown = ", ".join(first_of([repr(shortened(name, _LONGEST)) for name in first], _MOST))
    lacking = [several[0] for several in wanted if not places_of([*first, *numbers], [several])]
    what = f"none of its columns, {shown}, is {' or '.join(lacking)}"
    if not lacking:
        what = f"too few of its columns, {shown}, are {' and '.join(one for one, *_ in wanted)}"
    raise UserError(
        f"{path}, line {line}: {what}; give --columns SOURCE TARGET, by their names or by their numbers from 1"
    )
