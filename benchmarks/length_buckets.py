"""BLEU by the length of the source sentence: the buckets, their scores, and the plot that compares models.

The papers' main figure: Bahdanau et al. (2014), figure 2; Luong et al. (2015), figure 6. It knows sentences and scores,
and no models. A source word is what stands between spaces. matplotlib is imported only to draw.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.evaluation.metrics import corpus_scores
from nmt.files import written_atomically

UPPER = (8, 10, 12, 14, 16, 19)  # the longest source, in words, of each bucket but the last, which has no bound

# Okabe and Ito's colours for every kind of colour vision; the marks tell the lines apart without any colour.
STYLES = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"))


class Bucket(NamedTuple):
    """The sentences whose source has `shortest` to `longest` words (None: any number from `shortest` on)."""

    shortest: int
    longest: int | None
    sentences: tuple[int, ...]  # their positions in the corpus

    @property
    def label(self) -> str:
        if self.longest is None:
            return f"≥ {self.shortest}"
        return f"≤ {self.longest}" if self.shortest <= 1 else f"{self.shortest}–{self.longest}"


def buckets(sources: Sequence[str], upper: Sequence[int] = UPPER) -> list[Bucket]:
    """The buckets that have sentences, shortest first; `upper` are their bounds, ascending."""
    lengths = [len(source.split()) for source in sources]
    found = []
    for shortest, longest in zip([0, *(bound + 1 for bound in upper)], [*upper, None], strict=True):
        inside = [i for i, words in enumerate(lengths) if shortest <= words and (longest is None or words <= longest)]
        if inside:
            found.append(Bucket(shortest, longest, tuple(inside)))
    return found


def bleu_by_bucket(
    parts: Sequence[Bucket], hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str
) -> list[float]:
    """Corpus BLEU of each bucket by itself, on the 0 to 100 scale."""
    scores = []
    for part in parts:
        chosen = [[lines[index] for index in part.sentences] for lines in (hypotheses, references)]
        scores.append(corpus_scores(*chosen, tokenize=tokenize, metrics=("bleu",))["bleu"].score)
    return scores


def plot(path: Path, parts: Sequence[Bucket], series: Mapping[str, Sequence[float]], *, title: str) -> None:
    """Write a PNG with one line a model: `series` has, by the model's name, its BLEU in each of `parts`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)  # no window, whatever the machine has
    axes = figure.add_subplot()
    places = range(len(parts))
    assert len(series) <= len(STYLES)
    for (name, scores), (colour, mark, line) in zip(series.items(), STYLES, strict=False):
        axes.plot(places, scores, color=colour, marker=mark, linestyle=line, linewidth=2, markersize=7, label=name)
    axes.set_xticks(places, [f"{part.label}\n(n = {len(part.sentences)})" for part in parts])
    axes.set_xlabel("words of the source sentence (sentences)")
    axes.set_ylabel("BLEU")
    axes.set_title(title)
    axes.grid(axis="y", color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path, "wb") as file:
        canvas.print_figure(file, format="png", dpi=150, metadata={"Software": None})
