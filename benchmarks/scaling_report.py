"""Scaling as a document shows it: a table and a plot for each thing that grows, between markers in the document.

It knows rows of numbers; it measures nothing. matplotlib is imported only to draw.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.length_buckets import STYLES, picture
from nmt.errors import UserError
from nmt.files import written_atomically

Row = Mapping[str, float]


class Column(NamedTuple):
    """A number of each row: its key, its title in the table, and its format."""

    key: str
    title: str
    form: str = ",.0f"


class Part(NamedTuple):
    """One thing that grows, which is the first column and the x-axis; the y-axis shows `plotted`, and, in gray, what it
    would be if it grew from the first row on with a power of what `drives` it: see `EXPECTED`."""

    name: str
    columns: tuple[Column, ...]
    plotted: str
    logarithmic: str  # the axes, such as "x"
    drives: str
    power: int

    @property
    def title(self) -> str:
        """What the y-axis shows."""
        return self._title(self.plotted)

    @property
    def expected(self) -> str:
        """What the gray line shows."""
        return EXPECTED[self.power].format(self._title(self.drives))

    def _title(self, key: str) -> str:
        return next(column.title for column in self.columns if column.key == key)

    def ideal(self, rows: Sequence[Row]) -> list[float]:
        """The gray line."""
        first = rows[0]
        return [first[self.plotted] * (row[self.drives] / first[self.drives]) ** self.power for row in rows]

    def present(self, rows: Sequence[Row]) -> list[Column]:
        """The columns that every row has: device memory, for example, exists only with a device."""
        return [column for column in self.columns if all(column.key in row for row in rows)]


EXPECTED = {0: "constant", 1: "proportional to {}", -1: "inversely proportional to {}"}
_SPEED = Column("speed", "target tokens/s")
_PARAMETERS = Column("parameters", "parameters"), Column("multiplied", "parameters that are multiplied with")
_MEMORY = (Column("resident", "peak resident, MiB"), Column("device", "peak on the device, MiB"))

# The keys are those that `scaling.py` measures.
PARTS = {
    part.name: part
    for part in (
        Part(
            "length",
            (Column("length", "words per sentence"), _SPEED, Column("microseconds", "µs per target token"), *_MEMORY),
            "speed",
            "x",
            drives="length",
            power=0,
        ),
        Part(
            "vocabulary",
            (Column("pieces", "pieces"), *_PARAMETERS, _SPEED, *_MEMORY),
            "speed",
            "x",
            drives="multiplied",
            power=-1,
        ),
        Part(
            "hidden",
            (Column("hidden", "hidden size"), *_PARAMETERS, _SPEED, *_MEMORY),
            "speed",
            "xy",
            drives="multiplied",
            power=-1,
        ),
        Part(
            "beam",
            (
                Column("beam", "beam size"),
                Column("speed", "sentences/s", ",.1f"),
                Column("bleu", "BLEU", ".2f"),
                *_MEMORY,
            ),
            "speed",
            "xy",
            drives="beam",
            power=-1,
        ),
        Part(
            "corpus",
            (
                Column("pairs", "pairs"),
                Column("preparation", "preparation, s", ",.1f"),
                Column("rate", "pairs/s"),
                Column("preparing", "peak resident while preparing, MiB"),
                Column("start", "second start, s", ",.1f"),
                Column("resident", "peak resident afterwards, MiB"),
                Column("model", "weights alone, MiB"),
            ),
            "rate",
            "x",
            drives="pairs",
            power=0,
        ),
        Part(
            "processes",
            (
                Column("processes", "processes"),
                Column("threads", "threads each"),
                _SPEED,
                Column("gain", "times the first row", ",.2f"),
            ),
            "speed",
            "",
            drives="processes",
            power=1,
        ),
    )
}


def check_document(document: Path, names: Sequence[str]) -> None:
    """Raise UserError unless the document exists and has the markers of these parts."""
    if not document.is_file():
        raise UserError(f"--document {document}: no such file")
    text = document.read_text(encoding="utf-8")
    problems = [
        f"--document {document}: has no lines {_begin(name)} and {_end(name)} to write between"
        for name in names
        if not _between(name).search(text)
    ]
    if problems:
        raise UserError(*problems)


def report(document: Path, images: Path, measured: Mapping[str, Sequence[Row]], *, origin: str) -> None:
    """Put a table, a plot and `origin`, which says how it was measured, between the markers of each measured part."""
    text = document.read_text(encoding="utf-8")
    for name, rows in measured.items():
        part = PARTS[name]
        picture = images / f"scaling_{name}.png"
        plot(picture, part, rows)
        link = Path(os.path.relpath(picture.resolve(), document.parent.resolve())).as_posix()
        shown = f"![{part.title} by {part.columns[0].title}]({link})"
        block = "\n\n".join([_begin(name), table(part, rows), shown, origin, _end(name)])
        text = _between(name).sub(lambda _, block=block: block, text)  # type: ignore[misc]
    with written_atomically(document) as file:
        file.write(text)


def table(part: Part, rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    columns = part.present(rows)
    lines = [" | ".join(column.title for column in columns), " | ".join("---:" for _ in columns)]
    lines += [" | ".join(format(row[column.key], column.form) for column in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def plot(path: Path, part: Part, rows: Sequence[Row]) -> None:
    """Write a PNG of the part's lines."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    across = part.columns[0]
    places, numbers, ideal = [row[across.key] for row in rows], [row[part.plotted] for row in rows], part.ideal(rows)
    color, marker, line = STYLES[0]
    with picture(path, 6, 3.5) as axes:
        axes.plot(places, ideal, color="#777777", linestyle=":", label=part.expected)
        axes.plot(places, numbers, color=color, marker=marker, linestyle=line, linewidth=2)
        if "x" in part.logarithmic:
            axes.set_xscale("log")
        axes.set_xticks(places, [format(place, across.form) for place in places])
        axes.set_xticks([], minor=True)
        if "y" in part.logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(0, 1.08 * max(*ideal, *numbers))  # room for the whole marker
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel(across.title)
        axes.set_ylabel(part.title)


def _begin(name: str) -> str:
    return f"<!-- scaling: {name} -->"


def _end(name: str) -> str:
    return f"<!-- end of scaling: {name} -->"


def _between(name: str) -> "re.Pattern[str]":
    return re.compile(f"{re.escape(_begin(name))}.*?{re.escape(_end(name))}", re.DOTALL)
