#!/usr/bin/env python3
"""BLEU by the size of the corpus: what nmt-init sets for so many pairs, and one configuration for every size.

    python benchmarks/corpus_sizes.py --languages en de --train train.en train.de --valid val.en val.de \\
        --test test.en test.de --sizes 1000 3000 10000 29000 --work DIR --plot sizes.png

"For every size" is the starter my_files for 15 epochs, from weights in ±0.1. A smaller corpus is a part of each larger
one, drawn at random. A training that was stopped goes on when it is started again, and one that has ended is not
repeated: its line is in DIR/results.jsonl. The test text is translated with beam 5. Prints a Markdown table, with mean
and standard deviation where there are several seeds.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/corpus_sizes.py`

from benchmarks.length_buckets import STYLES, picture
from benchmarks.reference_task import positive
from nmt.cli.common import run
from nmt.cli.init_folder import LINKS, STARTER, write_links
from nmt.config.suited import suited_settings
from nmt.data.corpus import read_lines, read_pairs
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.metrics import TOKENIZERS, corpus_scores
from nmt.experiment.from_python import train
from nmt.files import written_atomically

FIXED: dict[str, Any] = {
    "training.max_epochs": 15,
    "training.max_updates": None,
    "training.early_stopping": None,
    "training.validate_every": "1 epoch",
    "model.initialization.range": 0.1,
}
RECIPES = {"every size": "one configuration", "nmt-init": "nmt-init"}
RESULTS, ARGUMENTS = "results.jsonl", "arguments.json"
TEXTS = ("train", "valid", "test")

Result = dict[str, Any]


def settings(recipe: str, pairs: int, *, tokenize: str) -> dict[str, Any]:
    """What a recipe changes in the starter for so many training pairs."""
    return FIXED if recipe == "every size" else suited_settings(pairs, units="sentences", tokenize=tokenize)


def subset(pairs: Sequence[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """So many pairs, in their order; those of a smaller size are among them."""
    drawn = random.Random(0).sample(range(len(pairs)), len(pairs))[:size]
    return [pairs[place] for place in sorted(drawn)]


def trained(options: argparse.Namespace, recipe: str, size: int, seed: int) -> Result:
    """Train, or go on with, one model, and score it."""
    folder = options.work / f"{size}"
    sides = [folder / f"train.{language}" for language in options.languages]
    if not all(path.exists() for path in sides):
        pairs = list(read_pairs(*options.train))
        if size > len(pairs):
            raise UserError(f"--sizes {size}: {options.train[0]} has {len(pairs):,} pairs")
        folder.mkdir(exist_ok=True)
        for path, lines in zip(sides, zip(*subset(pairs, size), strict=True), strict=True):
            with written_atomically(path) as file:
                file.writelines(f"{line}\n" for line in lines)
    values = settings(recipe, size, tokenize=options.tokenize)
    links = folder / LINKS if values.get("training.guided_alignment") else None
    if links is not None and not links.exists() and not write_links(sides, links):
        raise UserError(f"{sides[0]} and {sides[1]}: have no spaces between words, which nmt-init aligns")
    values = {
        **values,
        "name": "model",
        "seed": seed,
        "data.source_language": options.languages[0],
        "data.target_language": options.languages[1],
        "data.train": [
            {
                "source": str(sides[0].absolute()),
                "target": str(sides[1].absolute()),
                "alignments": links and str(links.absolute()),
            }
        ],
        "data.valid": {"source": str(options.valid[0].absolute()), "target": str(options.valid[1].absolute())},
        "training.validation.tokenize": options.tokenize,
        **options.set,
    }
    done = train(STARTER, settings=values, output=folder / f"{recipe.replace(' ', '_')}.{seed}", resume=True)
    sources, references = (list(read_lines(path)) for path in options.test)
    translations = [best.text for best, *_ in Translator.load(done.folder).translate(sources, beam_size=5)]
    scores = corpus_scores(translations, references, tokenize=options.tokenize, metrics=["bleu"])
    return {
        "recipe": recipe,
        "pairs": size,
        "seed": seed,
        "bleu": round(scores["bleu"].score, 2),
        "validation": round(done.validation["bleu"], 2),
        "finished": done.finished,
        "minutes": round(done.minutes, 1),
    }


def table(results: Sequence[Result]) -> list[str]:
    """The lines of a Markdown table, with a row for each size."""
    heads = ["training pairs", *(head for recipe in RECIPES.values() for head in (recipe, "minutes"))]
    lines = [f"| {' | '.join(heads)} |", f"|{' ---: |' * len(heads)}"]
    for size in sorted({result["pairs"] for result in results}):
        cells = []
        for recipe in RECIPES:
            some = [result for result in results if (result["recipe"], result["pairs"]) == (recipe, size)]
            scores = [result["bleu"] for result in some]
            deviation = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            cells.append(f"{statistics.mean(scores):.2f}{deviation}" if scores else "")
            cells.append(f"{statistics.mean(result['minutes'] for result in some):.0f}" if some else "")
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
    return lines


def plot(path: Path, results: Sequence[Result]) -> None:
    """A PNG with a line for each recipe: BLEU by the number of pairs, a dot for each seed."""
    with picture(path, 7.5, 4.5) as axes:
        for (recipe, label), (color, marker, line) in zip(RECIPES.items(), STYLES, strict=False):
            some = sorted((result["pairs"], result["bleu"]) for result in results if result["recipe"] == recipe)
            sizes = sorted({size for size, _ in some})
            means = [statistics.mean(score for of, score in some if of == size) for size in sizes]
            axes.plot(sizes, means, color=color, linestyle=line, linewidth=2, label=label)
            axes.plot(*zip(*some, strict=True), color=color, marker=marker, linestyle="", markersize=7)
        sizes = sorted({result["pairs"] for result in results})
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("training pairs")
        axes.set_ylabel("BLEU of the test text, beam 5")
        axes.set_ylim(bottom=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is not there yet, and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="such as en de")
    for name in TEXTS:
        parser.add_argument(
            f"--{name}", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"), help=f"{name} text"
        )
    parser.add_argument("--tokenize", choices=TOKENIZERS, default="13a", help="of BLEU (default: 13a)")
    parser.add_argument("--sizes", nargs="+", type=positive, required=True, metavar="N", help="training pairs")
    parser.add_argument("--seeds", nargs="+", type=positive, default=[1], metavar="N", help="default: 1")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES), help="default: both")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="texts, models, and results")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="a picture as well")
    parser.add_argument(
        "--set", type=json.loads, default={}, metavar="JSON", help="keys of every model, and what they are set to"
    )
    options = parser.parse_args(arguments)
    return run("corpus_sizes", lambda: _body(options))


def _body(options: argparse.Namespace) -> int:
    options.work.mkdir(parents=True, exist_ok=True)
    file, of = options.work / RESULTS, options.work / ARGUMENTS
    texts = [[str(path) for path in getattr(options, name)] for name in TEXTS]
    given = json.dumps(
        {"languages": options.languages, "texts": texts, "tokenize": options.tokenize, "set": options.set}
    )
    if of.exists() and of.read_text(encoding="utf-8") != given:
        raise UserError(f"--work {options.work}: has results of other texts, --tokenize, or --set; give another folder")
    with written_atomically(of) as written:
        written.write(given)
    results = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    for size in options.sizes:
        for recipe in options.recipes:
            for seed in options.seeds:
                if (recipe, size, seed) not in {(one["recipe"], one["pairs"], one["seed"]) for one in results}:
                    results.append(trained(options, recipe, size, seed))
                    with written_atomically(file) as written:
                        written.writelines(f"{json.dumps(result)}\n" for result in results)
    print("\n".join(table(results)))
    if options.plot is not None:
        plot(options.plot, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
