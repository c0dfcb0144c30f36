#!/usr/bin/env python3
"""Where local-p looks: its predicted positions p_t over training, next to its attention and to gold alignments.

    nmt-train --config configs/research/attention_synthetic.yaml --output runs/local-p \\
        --set model.attention.scope=local-p \\
        --set model.attention.score=general --set model.attention.position_logit=unscaled \\
        --set model.decoder.type=luong --set 'training.validate_every=47 updates' --set training.keep_last=40
    python -m benchmarks.predicted_positions general=runs/local-p --source data/synthetic/valid.en \\
        --target data/synthetic/valid.de --gold data/synthetic/valid.align --json positions.json --plot positions.png

measures every checkpoint of the runs, and prints a table. The targets are forced, and all figures are means over their
pieces, END left out. A model of another scope has no p_t, and the rest of the figures. Luong, Pham & Manning (2015),
arXiv 1508.04025, section 3.2.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/predicted_positions.py`

from benchmarks.length_buckets import STYLES
from nmt.cli.common import run
from nmt.data.batch import make_batch
from nmt.data.corpus import read_lines, read_pairs
from nmt.data.words import words_of_line
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.files import written_atomically
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.masks import length_mask
from nmt.pharaoh import Gold, read_gold
from nmt.training.run_folder import CHECKPOINTS, files_of_updates

EDGE = 0.05  # p_t / (S - 1) is at an end of the sentence when it is nearer to it than this
BATCH = 100  # sentences


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One checkpoint. Distances are in pieces, and from the nearest piece of the words that a piece is linked to."""

    update: int
    mean: float | None = None  # of p_t / (S - 1)
    deviation: float | None = None  # its standard deviation
    first: float | None = None  # how often it is below EDGE
    last: float | None = None  # how often it is above 1 - EDGE
    from_largest: float | None = None  # |p_t - s| for the position s with the largest weight
    from_gold: float | None = None  # the distance of p_t
    largest_from_gold: float | None = None  # that of the position with the largest weight
    lost: float | None = None  # 1 - Σ_s a_t(s), what the Gaussian takes away
    largest: float | None = None  # the largest weight as a share of Σ_s a_t(s)


@torch.inference_mode()
def measure(
    translator: Translator, pairs: Sequence[tuple[str, str]], gold: Sequence[Gold] | None, *, update: int
) -> Measured:
    """What the model's attention does when it is shown `pairs` of lines; `gold` has their links of words, if known."""
    model, (source, target) = translator.models[0], translator.vocabularies
    parts: dict[str, list[Tensor]] = {}
    for start in range(0, len(pairs), BATCH):
        some = slice(start, start + BATCH)
        sources, targets = ([side[i] for side in pairs[some]] for i in (0, 1))
        batch = make_batch(source.encode_batch(sources), target.encode_batch(targets), np.arange(len(sources)))
        with predicted(model) as centers:
            weights = model(batch.source, batch.source_lengths, batch.target_input).weights
        real = length_mask(batch.target_lengths - 1, weights.size(1))
        largest = weights.argmax(dim=2)
        attended = weights.sum(dim=2)
        pieces = {"lost": 1 - attended, "largest": weights.amax(dim=2) / attended}
        links = None
        if gold is not None:
            links = linked(pairs[some], gold[some], translator, weights.shape)
            pieces["largest_from_gold"] = distance(largest, links)
        if centers:
            center = torch.cat(centers, dim=1).expand(real.shape)
            pieces["share"] = center / (batch.source_lengths - 1).clamp(min=1).unsqueeze(1)
            pieces["from_largest"] = (center - largest).abs()
            if links is not None:
                pieces["from_gold"] = distance(center, links)
        for name, values in pieces.items():
            chosen = values[real].double()
            parts.setdefault(name, []).append(chosen[chosen.isfinite()])  # a piece without a link has no distance
    values = {name: torch.cat(of_batches) for name, of_batches in parts.items()}
    share = values.pop("share", None)
    figures = {name: mean(of_pieces) for name, of_pieces in values.items()}
    if share is not None:
        ends = {"first": mean(share < EDGE), "last": mean(share > 1 - EDGE)}
        figures |= {"mean": mean(share), "deviation": float(share.std(correction=0)), **ends}
    return Measured(update=update, **figures)


@contextmanager
def predicted(model: Seq2Seq) -> Iterator[list[Tensor]]:
    """Inside the block, the p_t (batch, steps or 1) that the scope of attention computes, in their order."""
    scope, centers = model.decoder.attention.scope, []
    original = scope.center

    def center(query: Tensor, lengths: Tensor, steps: Tensor | int) -> Tensor:
        centers.append(original(query, lengths, steps))
        return centers[-1]

    with patch.object(scope, "center", center):
        yield centers


def linked(
    pairs: Sequence[tuple[str, str]], gold: Sequence[Gold], translator: Translator, shape: Sequence[int]
) -> Tensor:
    """Which source pieces belong to words that a target piece's word is surely linked to: True there, (*shape)."""
    links = torch.zeros(*shape, dtype=torch.bool)
    for row, (pair, (sure, _)) in enumerate(zip(pairs, gold, strict=True)):
        source, target = (words_of_line(*side).places for side in zip(pair, translator.vocabularies, strict=True))
        of_pair = torch.tensor([[(place, word) in sure for place in source] for word in target])
        links[row, : len(target), : len(source)] = of_pair.view(len(target), len(source))
    return links


def distance(positions: Tensor, links: Tensor) -> Tensor:
    """How far `positions` (batch, steps) are from the nearest True of `links` (batch, steps, pieces); ∞: none is."""
    distances = (torch.arange(links.size(2)) - positions.unsqueeze(2)).abs().double()
    return distances.masked_fill(~links, torch.inf).amin(dim=2)


def mean(values: Tensor) -> float | None:
    return float(values.double().mean()) if values.numel() else None


def table(series: Mapping[str, Sequence[Measured]]) -> Iterator[str]:
    """A line for each model's last checkpoint."""
    names = list(Measured.__dataclass_fields__)
    yield "  ".join(["model", *names])
    for model, measured in series.items():
        last = asdict(measured[-1])
        yield "  ".join([model, *("–" if last[name] is None else f"{last[name]:.4g}" for name in names)])


def plot(path: Path, series: Mapping[str, Sequence[Measured]]) -> None:
    """Write a PNG with two panels for each model: p_t / (S - 1), and distances: of p_t and of the largest weight from
    the aligned word, or, where there are no gold alignments, from each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    (blue, *_), (red, *_), (green, *_), *_ = STYLES
    figure = Figure(figsize=(2.6 * len(series) + 2.4, 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(2, len(series), sharex=True, sharey="row", squeeze=False)
    if any(row.from_gold is not None for measured in series.values() for row in measured):
        distances = "pieces from the aligned word"
        lines = [("from_gold", blue, "-", "p_t"), ("largest_from_gold", green, "-.", "largest weight")]
    else:
        distances = "pieces"
        lines = [("from_largest", blue, "-", "from p_t to the largest weight")]
    for (upper, lower), (name, measured) in zip(panels.T, series.items(), strict=True):
        rows = [row for row in map(asdict, measured) if row["mean"] is not None]
        updates, center, spread = (np.array([row[key] for row in rows]) for key in ("update", "mean", "deviation"))
        upper.fill_between(updates, center - spread, center + spread, color=blue, alpha=0.2, linewidth=0)
        upper.plot(updates, center, color=blue, label="mean ± standard deviation")
        upper.plot(
            updates, [row["first"] + row["last"] for row in rows], color=red, linestyle="--", label="share at an end"
        )
        upper.set_title(name)
        for key, color, style, label in lines:
            lower.plot(updates, [row[key] for row in rows], color=color, linestyle=style, label=label)
        lower.set_xlabel("updates")
        for axes in (upper, lower):
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_ylim(bottom=0)
    panels[0, 0].set_ylabel("p_t / (S - 1)")
    panels[1, 0].set_ylabel(distances)
    for axes in panels[:, -1]:
        axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))  # beside, over no curve
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path, "wb") as file:
        canvas.print_figure(file, format="png", dpi=150, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and write the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("runs", nargs="+", metavar="NAME=RUN", help="a name, and the folder of a run with checkpoints")
    add("--source", type=Path, required=True, metavar="FILE", help="source sentences, one a line")
    add("--target", type=Path, required=True, metavar="FILE", help="their translations, which are forced")
    add("--gold", type=Path, metavar="FILE", help="word alignments of the two, in Pharaoh format")
    add("--json", type=Path, metavar="FILE", help="write all figures here")
    add("--plot", type=Path, metavar="FILE", help="draw them into this PNG; needs matplotlib")
    options = parser.parse_args(arguments)
    return run("predicted_positions", lambda: _body(options))


def _body(options: argparse.Namespace) -> None:
    named = [text.partition("=") for text in options.runs]
    runs = {name: list(files_of_updates(Path(folder), CHECKPOINTS)) for name, _, folder in named}
    if empty := [name for name, files in runs.items() if not files]:
        hint = "is not NAME=RUN with a run's folder that has checkpoints (training.keep_last)"
        raise UserError(*(f"{name}: {hint}" for name in empty))
    pairs = list(read_pairs(options.source, options.target))
    gold = None
    if options.gold is not None:
        gold = read_gold(read_lines(options.gold), name=str(options.gold))
        if len(gold) != len(pairs):
            raise UserError(f"{options.gold}: {len(gold):,} lines, but the corpus has {len(pairs):,}")
    series = {
        name: [measure(Translator.load(path), pairs, gold, update=update) for update, path in files]
        for name, files in runs.items()
    }
    print("\n".join(table(series)))
    if options.json is not None:
        with written_atomically(options.json) as file:
            json.dump({name: [asdict(row) for row in rows] for name, rows in series.items()}, file, indent=1)
            file.write("\n")
    if options.plot is not None:
        plot(options.plot, series)


if __name__ == "__main__":
    sys.exit(main())
