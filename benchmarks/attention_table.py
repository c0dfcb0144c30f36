#!/usr/bin/env python3
"""Train every attention by one recipe, and write docs/attention_table.md: Luong et al.'s Table 4 with more rows.

    make data
    python -m benchmarks.attention_table --threads 1

takes hours. It can be stopped at any time and continues where it was when started again; finished rows are not repeated
unless the recipe, the corpora or the row has changed. Each row is trained by nmt-train and scored by nmt-eval, once on
Multi30k (configs/attention_table.yaml) and once on the synthetic corpus (configs/attention_synthetic.yaml), where its
alignments are compared with the gold ones.
"""

import argparse
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/attention_table.py`

import torch

from benchmarks.attention_report import LENGTH_ROWS, Lengths, Scored, complete, report
from benchmarks.attention_rows import ROWS, chosen
from benchmarks.attention_tasks import MULTI30K, ROOT, SYNTHETIC, Training, plan
from benchmarks.length_buckets import bleu_by_bucket, buckets, plot
from nmt.cli.common import DEVICES, choose_device, run
from nmt.config import load_config
from nmt.data.corpus import read_lines
from nmt.errors import UserError
from nmt.files import written_atomically

TASKS = (MULTI30K, SYNTHETIC)
EXAMPLE = "global-dot"  # the row whose commands the document shows
RESULTS = ROOT / "benchmarks" / "results" / "attention_table"
IMAGE = Path("images", "bleu_by_source_length.png")  # in the folder of the document


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
    parser.add_argument("--list", action="store_true", help="list the rows and their progress, and exit")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="train each row with the seeds 1 to N")
    parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of each training (default: PyTorch's)")
    parser.add_argument("--report-only", action="store_true", help="do not train; write the report of what is done")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "attention_table", help="folder of the trainings")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of their results, under version control")
    parser.add_argument(
        "--document", type=Path, default=ROOT / "docs" / "attention_table.md", metavar="FILE", help="the report"
    )
    return parser


def _body(options: argparse.Namespace) -> int:
    problems = [f"--{name}: must be 1 or more" for name in ("seeds", "threads") if (getattr(options, name) or 1) < 1]
    if find_spec("matplotlib") is None:
        problems.append("matplotlib is needed for the plot: pip install -c constraints.txt -e '.[plots]'")
    if not MULTI30K.source.is_file():
        problems.append(f"{MULTI30K.source}: no such file; `make data` fetches Multi30k")
    if problems:
        raise UserError(*problems)
    rows, runs, results = chosen(options.rows), options.runs.resolve(), options.results.resolve()
    make_synthetic_corpus()
    trainings = plan(TASKS, rows, seeds=range(1, options.seeds + 1), runs=runs, results=results)
    if options.list:
        list_rows(trainings)
        return 0
    if not options.report_only:
        device, threads = choose_device(options.device).type, options.threads or torch.get_num_threads()
        for training in trainings:
            if (code := train(training, device=device, threads=threads)) != 0:
                return code
            write_report(options.document, runs, results)
    write_report(options.document, runs, results)
    return 0


def make_synthetic_corpus() -> None:
    """Make the same corpus as `make demo`, unless it exists."""
    data = load_config(SYNTHETIC.config).data
    files = [SYNTHETIC.source, SYNTHETIC.reference, SYNTHETIC.gold, data.valid.source, data.train[0].source]
    if not all(file is not None and file.is_file() for file in files):
        script = ROOT / "scripts" / "make_synthetic_corpus.py"
        subprocess.run([sys.executable, script, "--output", SYNTHETIC.source.parent], check=True)


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


def write_report(document: Path, runs: Path, results_folder: Path) -> None:
    """Write the document and its plot from whatever has been done by the present recipes."""
    seeds = {int(match[1]) for path in results_folder.glob("*.json") if (match := re.search(r"-seed(\d+)-", path.name))}
    trainings = plan(TASKS, list(ROWS.values()), seeds=sorted(seeds) or [1], runs=runs, results=results_folder)
    results = [result for training in trainings if (result := training.result()) is not None]
    scored = complete(ROWS.values(), results)
    lengths = draw_lengths(document.parent, scored)
    recipes = {task.name: load_config(task.config) for task in TASKS}
    example = next(run for run in trainings if run.row.name == EXAMPLE and run.task == MULTI30K)
    document.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(document) as file:
        file.write(report(scored, lengths, recipes=recipes, example=example))
    print(f"{document}: {len(scored)} of {len(ROWS)} rows", flush=True)


def draw_lengths(folder: Path, scored: Mapping[str, Scored]) -> Lengths | None:
    """BLEU by source length of LENGTH_ROWS, averaged over their seeds; None until all of them are complete."""
    if not all(name in scored for name in LENGTH_ROWS):
        return None
    parts = buckets(list(read_lines(MULTI30K.source)))
    references = list(read_lines(MULTI30K.reference))
    series = {}
    for name in LENGTH_ROWS:
        by_seed = [
            bleu_by_bucket(parts, result.translations, references, tokenize=MULTI30K.tokenize)
            for result in scored[name].multi30k
        ]
        series[ROWS[name].title] = [statistics.fmean(scores) for scores in zip(*by_seed, strict=True)]
    plot(folder / IMAGE, parts, series, title="Multi30k English-German, test_2016_flickr: BLEU by source length")
    return Lengths(parts, series, IMAGE.as_posix())


if __name__ == "__main__":
    sys.exit(main())
