"""BLEU by the length of the source sentence: the buckets, their scores, and the plot that compares models.

The main figure of the papers: Bahdanau et al. (2014), figure 2; Luong et al. (2015), figure 6. It knows sentences and
scores, not models. Source words are separated by spaces. matplotlib is imported only to draw.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.evaluation.metrics import corpus_scores
from nmt.files import written_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UPPER = (8, 10, 12, 14, 16, 19)  # words of the longest source in each bucket except the last, which is unbounded

# Okabe and Ito's colors suit every kind of color vision; the markers distinguish the lines without any color.
STYLES = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"))


class Bucket(NamedTuple):
    """The sentences whose source has `shortest` to `longest` words (None: `shortest` or more)."""

    shortest: int
    longest: int | None
    sentences: tuple[int, ...]  # their positions in the corpus

    @property
    def label(self) -> str:
        if self.longest is None:
            return f"≥ {self.shortest}"
        return f"≤ {self.longest}" if self.shortest <= 1 else f"{self.shortest}–{self.longest}"


def buckets(sources: Sequence[str], upper: Sequence[int] = UPPER) -> list[Bucket]:
    """The nonempty buckets, shortest first; `upper` are their upper bounds, ascending."""
    lengths = [len(source.split()) for source in sources]
    nonempty = []
    for shortest, longest in zip([0, *(bound + 1 for bound in upper)], [*upper, None], strict=True):
        inside = [i for i, words in enumerate(lengths) if shortest <= words and (longest is None or words <= longest)]
        if inside:
            nonempty.append(Bucket(shortest, longest, tuple(inside)))
    return nonempty


def bleu_by_bucket(
    parts: Sequence[Bucket], hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str
) -> list[float]:
    """Corpus BLEU of each bucket on its own, from 0 to 100."""
    scores = []
    for part in parts:
        chosen = [[lines[index] for index in part.sentences] for lines in (hypotheses, references)]
        scores.append(corpus_scores(*chosen, tokenize=tokenize, metrics=("bleu",))["bleu"].score)
    return scores


def plot(path: Path, parts: Sequence[Bucket], series: Mapping[str, Sequence[float]], *, title: str) -> None:
    """Write a PNG with one line per model: `series` maps a model's name to its BLEU in each of `parts`."""
    places = range(len(parts))
    assert len(series) <= len(STYLES)
    with picture(path, 7.5, 4.5) as axes:
        for (name, scores), (color, marker, line) in zip(series.items(), STYLES, strict=False):
            axes.plot(places, scores, color=color, marker=marker, linestyle=line, linewidth=2, markersize=7, label=name)
        axes.set_xticks(places, [f"{part.label}\n(n = {len(part.sentences)})" for part in parts])
        axes.set_xlabel("words of the source sentence (sentences)")
        axes.set_ylabel("BLEU")
        axes.set_title(title)


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator["Axes"]:
    """The axes of a PNG, of so many inches, which is written at the end of the block; their lines have labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    canvas = FigureCanvasAgg(figure)  # no window, whatever the machine offers
    axes = figure.add_subplot()
    yield axes
    axes.grid(axis="y", color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path, "wb") as file:
        canvas.print_figure(file, format="png", dpi=150, metadata={"Software": None})
