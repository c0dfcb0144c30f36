"""Rows of tables as people and programs write them: CSV, or lines with a tab between two cells."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, dropwhile, islice
from pathlib import Path

from nmt.data.corpus import LONGEST_LINE, read_lines
from nmt.errors import UserError

_LOOKED_AT = 1000  # lines that tell whether a table with tabs is written as CSV
_SEPARATOR = re.compile(r"(?i)\s*sep=([\t,;|])\s*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')

Row = tuple[int, list[str]]  # its first line, from 1, and its cells


def rows(path: Path, delimiters: str, *, of_terms: bool = False) -> Iterator[Row]:
    """The rows of a table, from the first line with text on.

    One of `delimiters` stands between two cells: the one that a line before them names, as Excel's "sep=;", else a tab
    where the first row has one, else the one that it has most. Tables of pairs are CSV where it may be another than a
    tab; in others with tabs, quotes are text unless a cell has them doubled as well, or the first rows are CSV.

    `of_terms`: lines that begin with "#" and have no tab are comments, which are read as blank lines, and quotes around
    a whole cell are never text.
    Raises UserError where a quote does not end, or more follows its end.
    """
    csv.field_size_limit(LONGEST_LINE)
    texts = (text.replace("\r", " ") for text in read_lines(path))
    if of_terms:
        texts = ("" if text.startswith("#") and "\t" not in text else text for text in texts)
    lines: Iterator[tuple[int, str]] = dropwhile(lambda line: not line[1].strip(), enumerate(texts, start=1))
    beginning = list(islice(lines, 1))
    named = _SEPARATOR.fullmatch(beginning[0][1]) if beginning else None
    delimiter = named[1] if named is not None and named[1] in delimiters else None
    lines = dropwhile(lambda line: not line[1].strip(), lines if delimiter else chain(beginning, lines))
    first = list(islice(lines, _LOOKED_AT))
    if not first:
        return
    if not delimiter:
        outside = _QUOTED.sub("", first[0][1])
        delimiter = "\t" if "\t" in delimiters and "\t" in outside else max(delimiters, key=outside.count)
    lines = chain(first, lines)
    if delimiter == "\t" and (of_terms or delimiters == "\t") and not _are_quoted([text for _, text in first]):
        for line, text in lines:
            yield line, [_unquoted(cell, of_terms) for cell in text.split("\t")]
    else:
        yield from _of_csv(path, lines, delimiter, first[0][0])


def _of_csv(path: Path, lines: Iterator[tuple[int, str]], delimiter: str, start: int) -> Iterator[Row]:
    reader = csv.reader((f"{text}\n" for _, text in lines), delimiter=delimiter, strict=True)
    line = start
    try:
        for cells in reader:
            yield line, [cell.replace("\n", " ") for cell in cells]
            line = start + reader.line_num
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: cannot be read as a table ({error}); where cells are in quotes, as in CSV, "
            "their own are doubled"
        ) from None


def _are_quoted(lines: Sequence[str]) -> bool:
    """Whether lines with tabs, perhaps the first of more, are those of CSV: after the first row, which may be names,
    with quotes around all cells but numbers, and nowhere else."""
    texts = [f"{line}\n" for line in lines]
    try:
        next(reader := csv.reader(texts, delimiter="\t", strict=True))
        rest = texts[reader.line_num :] or texts
        deque(chain(reader, csv.reader(rest, delimiter="\t", strict=True, quoting=csv.QUOTE_NONNUMERIC)), maxlen=0)
    except (csv.Error, ValueError) as error:  # as of a cell that goes on after the last of these lines
        return "end of data" in str(error) and len(lines) == _LOOKED_AT
    return True


def _unquoted(cell: str, is_term: bool) -> str:
    """A cell without the quotes that a spreadsheet puts around it, and doubles in it, where it has any."""
    if not _QUOTED.fullmatch(cell.strip()) or not (is_term or '""' in cell[1:-1]):
        return cell
    return cell.strip()[1:-1].replace('""', '"')
