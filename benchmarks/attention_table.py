#!/usr/bin/env python3
"""Train every attention by one recipe, and write research/attention_table.md: Luong et al.'s Table 4 with more rows.

    make data
    python -m benchmarks.attention_table --threads 1

takes hours. It can be stopped at any time and continues where it was when started again; finished rows are not repeated
unless the recipe, the corpora or the row has changed. Each row is trained by nmt-train and scored by nmt-eval, once on
Multi30k (attention_table.yaml in configs/research) and once on the synthetic corpus (attention_synthetic.yaml), where
its alignments are compared with the gold ones. --recipe long trains twice as long and some rows with three seeds, and
has a report of its own. --compare tests finished rows against one another.
"""

import argparse
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/attention_table.py`

import torch

from benchmarks.attention_orders import Difference, difference
from benchmarks.attention_recipes import RECIPES, Recipe
from benchmarks.attention_report import LENGTH_ROWS, Lengths, Scored, complete, report
from benchmarks.attention_rows import CHOICES, ORDERS, ROWS, chosen
from benchmarks.attention_tasks import ROOT, Task, Training, plan
from benchmarks.length_buckets import bleu_by_bucket, buckets, plot
from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.devices import DEVICES, choose_device
from nmt.errors import UserError
from nmt.files import written_atomically

RESULTS = ROOT / "benchmarks" / "results" / "attention_table"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    former = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # lets `execute` clean up
    try:
        return run("attention_table", lambda: _body(options))
    finally:
        signal.signal(signal.SIGTERM, former)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="A,B", help="train only these rows (default: all; --list names them)")
    parser.add_argument("--recipe", choices=RECIPES, default="short", help="default: short")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="train each row with the seeds 1 to N (default: the recipe's)"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="do not train; list the rows and their progress")
    instead.add_argument("--report-only", action="store_true", help="do not train; write the report of what is done")
    instead.add_argument(
        "--compare", metavar="A,B", help="do not train; say of each pair of these rows whether chance may explain it"
    )
    parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of each training (default: PyTorch's)")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "attention_table", help="folder of the trainings")
    parser.add_argument(
        "--results", type=Path, help="folder of their results, under version control (default: the recipe's)"
    )
    parser.add_argument("--document", type=Path, metavar="FILE", help="the report (default: the recipe's, in research)")
    return parser


def _body(options: argparse.Namespace) -> int:
    recipe = RECIPES[options.recipe]
    numbers = {"seeds": options.seeds, "threads": options.threads}
    problems = [f"--{name} {one}: must be 1 or more" for name, one in numbers.items() if one is not None and one < 1]
    if options.compare is not None and options.rows is not None:
        problems.append("--rows: has no effect with --compare, which names its rows itself")
    if find_spec("matplotlib") is None:
        problems.append("matplotlib is needed for the plot: pip install -c constraints.txt -e '.[plots]'")
    if not recipe.multi30k.source.is_file():
        problems.append(f"{recipe.multi30k.source}: no such file; `make data` fetches Multi30k")
    if problems:
        raise UserError(*problems)
    rows, runs = chosen(options.rows), options.runs.resolve()
    results = (options.results or RESULTS.with_name(RESULTS.name + recipe.suffix)).resolve()
    document = options.document or ROOT / "research" / f"attention_table{recipe.suffix}.md"
    make_synthetic_corpus(recipe.synthetic)
    if options.compare is not None:
        print_differences(recipe.multi30k, finished(kept(recipe, runs, results)), options.compare)
        return 0
    seeds = range(1, 1 + (options.seeds or recipe.repeats))
    trainings = [
        training
        for training in plan(recipe.tasks, rows, seeds=seeds, runs=runs, results=results)
        if options.seeds or training.seed in recipe.seeds(training.row)
    ]
    if options.list:
        list_rows(trainings)
        return 0
    if not options.report_only:
        device, threads = choose_device(options.device).type, options.threads or torch.get_num_threads()
        for training in trainings:
            if (code := train(training, device=device, threads=threads)) != 0:
                return code
            write_report(recipe, document, runs, results)
    write_report(recipe, document, runs, results)
    return 0


def make_synthetic_corpus(task: Task) -> None:
    """Make the same corpus as `make demo`, unless it exists."""
    data = task.configuration().data
    files = [task.source, task.reference, task.gold, data.valid.source, data.train[0].source]
    if not all(file is not None and file.is_file() for file in files):
        script = ROOT / "scripts" / "make_synthetic_corpus.py"
        subprocess.run([sys.executable, script, "--output", task.source.parent], check=True)


def list_rows(trainings: Sequence[Training]) -> None:
    for training in trainings:
        state = "done" if training.result() else "started" if training.folder.exists() else "not started"
        print(f"{training.row.name}  seed {training.seed}  {training.task.name}  {state}")


def train(training: Training, *, device: str, threads: int) -> int:
    """Train unless it is done; returns the exit code of the command that failed, or 0."""
    if training.result() is not None:
        print(f"{training.row.name}, seed {training.seed}, {training.task.name}: already done", flush=True)
        return 0
    print(f"\n== {training.row.name}, seed {training.seed}, {training.task.name}", flush=True)
    try:
        result = training.run(device=device, threads=threads)
    except subprocess.CalledProcessError as error:
        print(f"attention_table: {error.cmd[0]} ended with exit code {error.returncode}", file=sys.stderr)
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    print(f"BLEU {result.bleu:.2f}, perplexity {result.perplexity:.2f}, {result.minutes:.1f} minutes", flush=True)
    return 0


def kept(recipe: Recipe, runs: Path, results: Path) -> list[Training]:
    """Every row and seed of which there is a result, be it of another recipe."""
    names = [match for path in results.glob("*.json") if (match := re.match(r"(.+)-seed(\d+)-", path.name))]
    rows = {match[1] for match in names}
    seeds = {1, *(int(match[2]) for match in names)}
    present = [row for name, row in ROWS.items() if name in rows]
    return plan(recipe.tasks, present, seeds=sorted(seeds), runs=runs, results=results)


def finished(trainings: Iterable[Training]) -> dict[str, Scored]:
    """The complete rows."""
    return complete(ROWS.values(), [result for training in trainings if (result := training.result()) is not None])


def print_differences(task: Task, scored: Mapping[str, Scored], names: str) -> None:
    """One line for each pair of these rows. Raises UserError for fewer than two, or rows that are not complete."""
    rows = [row.name for row in chosen(names, option="--compare")]
    problems = [f"--compare {names}: {name} is not complete yet" for name in rows if name not in scored]
    if len(rows) < 2:
        problems.append(f"--compare {names}: one row; allowed: two or more, with commas between them")
    if problems:
        raise UserError(*problems)
    for first, second in combinations(rows, 2):
        compared = row_difference(task, scored, first, second)
        outcome = f"{compared.shown} BLEU, p {compared.chances}" if compared else "no seed of both"
        print(f"{first} - {second}: {outcome}", flush=True)


def row_difference(task: Task, scored: Mapping[str, Scored], first: str, second: str) -> Difference | None:
    """By the translations of `task`; None unless both rows are complete, with a seed of both."""
    if first not in scored or second not in scored:
        return None
    reference = list(read_lines(task.reference))
    return difference(scored[first].multi30k, scored[second].multi30k, reference, tokenize=task.tokenize)


def write_report(recipe: Recipe, document: Path, runs: Path, results: Path) -> None:
    """Write the document and its plot from whatever has been done by this recipe."""
    scored = finished(kept(recipe, runs, results))
    task = recipe.multi30k
    lengths = draw_lengths(task, document.parent, Path("images", f"bleu_by_source_length{recipe.suffix}.png"), scored)
    orders = [row_difference(task, scored, order.better, order.worse) for order in ORDERS]
    choices = [row_difference(task, scored, choice.row, choice.plain) for choice in CHOICES]
    document.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(document) as file:
        file.write(report(scored, lengths, orders=orders, choices=choices, recipe=recipe))
    print(f"{document}: {len(scored)} of {len(ROWS)} rows", flush=True)


def draw_lengths(task: Task, folder: Path, image: Path, scored: Mapping[str, Scored]) -> Lengths | None:
    """BLEU by source length of LENGTH_ROWS, averaged over their seeds; None until all of them are complete.

    The plot is `image`, a path inside `folder`, that of the document.
    """
    if not all(name in scored for name in LENGTH_ROWS):
        return None
    parts = buckets(list(read_lines(task.source)))
    references = list(read_lines(task.reference))
    series = {}
    for name in LENGTH_ROWS:
        by_seed = [
            bleu_by_bucket(parts, result.translations, references, tokenize=task.tokenize)
            for result in scored[name].multi30k
        ]
        series[ROWS[name].title] = [statistics.fmean(scores) for scores in zip(*by_seed, strict=True)]
    plot(folder / image, parts, series, title="Multi30k English-German, test_2016_flickr: BLEU by source length")
    return Lengths(parts, series, image.as_posix())


if __name__ == "__main__":
    sys.exit(main())
