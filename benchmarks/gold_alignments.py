#!/usr/bin/env python3
"""How well attention aligns words: models, and files of links, against gold alignments; research/alignment.md has both.

    python -m benchmarks.gold_alignments additive=runs/en-fr,runs/fr-en nmt-align=links.align \\
        --source gold.en --target gold.fr --gold gold.talp --first-word 1 --plot research/images/alignment.png

The targets are forced, and each target word is linked to the source word with the most attention (--end-links last). A
second model, of the other direction, adds the links of both, symmetrized. AER is the alignment error rate of Och & Ney
(2003), of all words and of those target words that are punctuation, the 50 most frequent ones of the set, or others;
± is half the 95% interval of 1,000 bootstrap samples of sentences, and p says in how many of them a row is not on the
same side of the first one. The picture has one sentence, with the gold links in boxes, dashed where they are possible.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/gold_alignments.py`

from nmt.cli.common import run
from nmt.data.corpus import read_lines, read_pairs
from nmt.decoding.options import TranslationOptions
from nmt.decoding.scoring import score
from nmt.decoding.text.alignment import SoftAlignment
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.alignments import alignment_scores, symmetrized
from nmt.files import written_atomically
from nmt.pharaoh import Gold, Link, Links, pharaoh, read_gold, read_links

FREQUENT, SAMPLES, SEED, BATCH_TOKENS = 50, 1000, 12345, 2000
KINDS = ("punctuation", "frequent words", "other words")

Pairs = Sequence[tuple[str, str]]


class Row(NamedTuple):
    """What one system finds."""

    name: str
    links: list[list[Link]]
    soft: list[SoftAlignment]  # empty for links from a file


def rows(text: str, pairs: Pairs) -> Iterator[Row]:
    """The system NAME=PATH[,REVERSE], and what both directions make of it together."""
    name, _, paths = text.partition("=")
    path, _, reverse = paths.partition(",")
    if not path:
        raise UserError(f"{text}: expected NAME=PATH, or NAME=PATH,PATH with a second model, of the other direction")
    forward = _links(Path(path), pairs)
    yield Row(name, *forward)
    if reverse:
        backward, _ = _links(Path(reverse), [(target, source) for source, target in pairs])
        for how in ("intersection", "grow-diag-final-and"):
            yield Row(f"{name}, {how}", list(symmetrized(how, forward[0], backward)), [])


def _links(path: Path, pairs: Pairs) -> tuple[list[list[Link]], list[SoftAlignment]]:
    if ".align" in path.suffixes:
        return read_links(read_lines(path), name=str(path)), []
    translator = Translator.load(path)
    scored = score(translator, pairs, TranslationOptions(alignments=True, batch_tokens=BATCH_TOKENS))
    soft = [one.alignment for one in scored if one.alignment is not None]
    return [alignment.links for alignment in soft], soft


def error_rate(links: Sequence[Links], gold: Sequence[Gold]) -> float:
    rate = alignment_scores(links, gold).error_rate
    return float("nan") if rate is None else rate


def of_kind(links: Links, words: Sequence[str], kind: str) -> set[Link]:
    """The links to target words of this kind."""
    return {link for link in links if words[link[1]] == kind}


def kinds(targets: Sequence[str]) -> list[list[str]]:
    """Which of KINDS each word of each target is."""
    words = [line.split() for line in targets]
    often = Counter(word for line in words for word in line if any(map(str.isalnum, word)))
    frequent = {word for word, _ in often.most_common(FREQUENT)}
    of = {word: KINDS[2 - (word in frequent)] if word in often else KINDS[0] for line in words for word in line}
    return [[of[word] for word in line] for line in words]


def table(systems: Sequence[Row], gold: Sequence[Gold], targets: Sequence[str]) -> Iterator[str]:
    """In Markdown, a line for each system."""
    yield f"| | precision | recall | AER | ± | p | {' | '.join(KINDS)} |"
    yield f"| --- | {' | '.join(['---:'] * (5 + len(KINDS)))} |"
    of_words, samples = kinds(targets), np.random.default_rng(SEED).integers(len(gold), size=(SAMPLES, len(gold)))
    first: npt.NDArray[np.float64] | None = None
    for name, links, _ in systems:
        scores = alignment_scores(links, gold)
        rates = np.array([error_rate([links[i] for i in some], [gold[i] for i in some]) for some in samples])
        low, high = np.quantile(rates, (0.025, 0.975))
        p = "–"
        if first is None:
            first = rates
        else:
            p = f"{min(np.mean(rates <= first), np.mean(rates >= first)):.3f}"
        parts = []
        for kind in KINDS:
            ours = [of_kind(some, words, kind) for some, words in zip(links, of_words, strict=True)]
            right = [
                Gold(*(of_kind(some, words, kind) for some in both)) for both, words in zip(gold, of_words, strict=True)
            ]
            parts.append(error_rate(ours, right))
        figures = [scores.precision or 0.0, scores.recall or 0.0, error_rate(links, gold), (high - low) / 2]
        yield f"| {' | '.join([name, *map('{:.3f}'.format, figures), p, *map('{:.3f}'.format, parts)])} |"


def plot(path: Path, systems: Sequence[Row], gold: Gold, sentence: int) -> None:
    """Write a PNG with a panel for each system: the attention of one sentence, and its gold links in boxes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    first = systems[0].soft[sentence]
    width, height = len(first.source_words), len(first.target_words)
    columns = min(3, len(systems))
    lines = -(-len(systems) // columns)
    figure = Figure(figsize=(columns * (0.26 * width + 1.4), lines * (0.24 * height + 1.4)), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for axes, (name, _, soft) in zip(panels, systems, strict=False):
        axes.imshow(soft[sentence].weights[:, :-1], cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for source, target in gold[1]:
            style = "-" if (source, target) in gold[0] else ":"
            box = (source - 0.5, target - 0.5)
            axes.add_patch(Rectangle(box, 1, 1, fill=False, edgecolor="#D55E00", linestyle=style))
        axes.set_xticks(range(width), first.source_words, rotation=90)
        axes.set_yticks(range(height), first.target_words)
        axes.set_title(name, fontsize="medium")
    for axes in panels[len(systems) :]:
        axes.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path, "wb") as file:
        canvas.print_figure(file, format="png", dpi=110, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and draw the picture; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("systems", nargs="+", metavar="NAME=PATH", help="a model, two of both directions, or a file of links, .align")
    add("--source", type=Path, required=True, metavar="FILE", help="source sentences, one a line")
    add("--target", type=Path, required=True, metavar="FILE", help="their translations, which are forced")
    add("--gold", type=Path, required=True, metavar="FILE", help="the right alignments, in Pharaoh format")
    add("--first-word", type=int, default=0, choices=(0, 1), help="the number of the first word in --gold (default: 0)")
    add("--plot", type=Path, metavar="FILE", help="draw the models' attention into this PNG; needs matplotlib")
    add("--sentence", type=int, default=0, metavar="N", help="which sentence is drawn, from 0 (default: 0)")
    options = parser.parse_args(arguments)
    return run("gold_alignments", lambda: _body(options))


def _body(options: argparse.Namespace) -> None:
    pairs = list(read_pairs(options.source, options.target))
    gold = read_gold(read_lines(options.gold), name=str(options.gold), first_word=options.first_word)
    systems = [row for text in options.systems for row in rows(text, pairs)]
    lines = {str(options.gold): len(gold)} | {system.name: len(system.links) for system in systems}
    if wrong := [name for name, count in lines.items() if count != len(pairs)]:
        raise UserError(*(f"{name}: {lines[name]:,} lines, but --source has {len(pairs):,}" for name in wrong))
    of_lines = {str(options.gold): [possible for _, possible in gold]} | {row.name: row.links for row in systems}
    for name, links in of_lines.items():
        for number, (pair, of_line) in enumerate(zip(pairs, links, strict=True), 1):
            longest = [len(side.split()) for side in pair]
            if beyond := [link for link in of_line if link[0] >= longest[0] or link[1] >= longest[1]]:
                link = pharaoh([min(beyond)])
                raise UserError(f"{name}, line {number}: {link}, counted from 0, has no such words (see --first-word)")
    if not 0 <= options.sentence < len(pairs):
        raise UserError(f"--sentence {options.sentence}: --source has {len(pairs):,}, counted from 0")
    print("\n".join(table(systems, gold, [target for _, target in pairs])))
    drawn = [row for row in systems if row.soft]
    if options.plot is not None and drawn:
        plot(options.plot, drawn, gold[options.sentence], options.sentence)


if __name__ == "__main__":
    sys.exit(main())
