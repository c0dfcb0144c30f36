"""Learning curves of one or several runs in one picture: loss, perplexity and scores, by update and by minute.

It knows measurements; it reads no files. matplotlib, an optional dependency, is imported only to draw, and its global
state is left alone.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from nmt.evaluation.alignment_plot import usual_fonts
from nmt.evaluation.measurements import Record
from nmt.evaluation.metrics import METRICS
from nmt.evaluation.tables import shown

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

LARGEST = 1e100  # of a number that is drawn: beyond, the scales of matplotlib overflow sooner or later
_WIDTH, _HEIGHT = 4.8, 2.7  # inches of a panel
_LEGEND = 0.22  # inches of a run's line in the legend
_DOTS = 100  # per inch
_LONGEST = 100  # characters of a run's name in the legend: the last ones
_STYLES = ("-", "--", ":", "-.")  # of lines; after the colors have come round
_COLORS = 10


def plot_curves(runs: Mapping[str, Sequence[Record]], file: IO[bytes], *, form: Literal["png", "svg"] = "png") -> None:
    """Draw the curves of all `runs`, named by their keys, into `file`: a row for each quantity, by update on the left
    and by minutes of training and validation on the right.

    Numbers that are not finite, or beyond LARGEST, are left out. A star is the average of checkpoints at the end of a
    run.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import LogFormatter

    scored = {name for records in runs.values() for record in records for name in record}
    scores = [(name, METRICS[name].title) for name in METRICS if name in scored or name == "bleu"]
    rows = [("loss", "training loss, nats per token", "train"), ("perplexity", "validation perplexity", "valid")]
    rows += [(name, f"validation {title}", "valid") for name, title in scores]
    legend = (len(runs) + 1) * _LEGEND
    height = len(rows) * _HEIGHT + legend
    layout = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 1 - legend / height))
    figure = Figure(figsize=(2 * _WIDTH, height), dpi=_DOTS, layout=layout)
    panels = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    lines = []
    for number, records in enumerate(runs.values()):
        style: dict[str, Any] = {"color": f"C{number % _COLORS}", "linewidth": 1.2}
        style["linestyle"] = _STYLES[number // _COLORS % len(_STYLES)]
        for (name, _, split), pair in zip(rows, panels, strict=True):
            for axes, by in zip(pair, ("step", "seconds"), strict=True):
                marks = {"marker": "."} if split == "valid" else {}
                (line,) = axes.plot(*_points(records, split, by, name), **style, **marks)
                if split == "valid":
                    axes.plot(*_points(records, "average", by, name), "*", color=style["color"], markersize=9)
        lines.append(line)
    for (name, title, _), pair in zip(rows, panels, strict=True):
        pair[0].set_ylabel(title)
        for axes in pair:
            axes.grid(color="0.9")
            if name == "perplexity" and len(axes.lines):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(LogFormatter())  # 60, not 6 × 10¹
                axes.yaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    for axes, title in zip(panels[-1], ("updates", "minutes of training and validation"), strict=True):
        axes.set_xlabel(title)
    figure.align_ylabels()
    _name(figure, lines, list(runs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a box stands for what no font has
        figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)


def _points(records: Sequence[Record], split: str, by: str, name: str) -> "tuple[Numbers, Numbers]":
    """Where the measurements of a quantity are, in updates or minutes, and what they are; those that can be drawn."""
    places = [(record.get(by), record.get(name)) for record in records if record["split"] == split]
    known = np.array([pair for pair in places if None not in pair], dtype=np.float64).reshape(-1, 2)
    known = known[(np.abs(known) <= LARGEST).all(axis=1)]
    return known[:, 0] / (60.0 if by == "seconds" else 1.0), known[:, 1]


def _name(figure: Any, lines: Sequence[Any], names: Sequence[str]) -> None:
    """The legend at the top, in which a name may have any characters."""
    texts = [shown(name if len(name) <= _LONGEST else f"…{name[-_LONGEST + 1 :]}") for name in names]
    # matplotlib would leave out what begins with "_", and take a dollar sign for the start of a formula.
    legend = figure.legend(lines, ["run"] * len(lines), loc="upper left", frameon=False, labelspacing=0.3)
    for text, name in zip(legend.get_texts(), texts, strict=True):
        text.set(text=name, parse_math=False, fontfamily=usual_fonts(), fontsize=9)


def names(folders: Sequence[Path]) -> list[str]:
    """A name for each of the folders, which are absolute: as many of its last parts as distinguish them all."""
    for length in range(1, max(len(folder.parts) for folder in folders)):
        short = ["/".join(folder.parts[-length:]) for folder in folders]
        if len({*short}) == len(folders):
            return short
    return [str(folder) for folder in folders]
