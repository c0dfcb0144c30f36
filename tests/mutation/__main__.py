"""make mutants: how many small mistakes in the heart of the program the tests notice, by file, and which they do not.

    python -m tests.mutation
    python -m tests.mutation nmt/ops/masks.py --line 12

Ends with 1 if less than 85% are noticed in a file, or if one that is not noticed has no reason in survivors.yaml.
"""

import argparse
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.mutation.children import interrupt_on_termination
from tests.mutation.operators import Mutant
from tests.mutation.runner import Result, run
from tests.mutation.targets import TARGETS

LEAST = 0.85
PRELOADED = ("torch", "numpy", "pydantic", "yaml", "sentencepiece", "safetensors.torch", "sacrebleu", "pytest")
DEVICE = re.compile(r", device=[\w.]+")  # an argument
REASONS = Path(__file__).with_name("survivors.yaml")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="files to mutate (default: all of targets.py)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at once (default: one a core)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for a mutant (default: %(default)s)")
    parser.add_argument("--line", type=int, help="only mutants of this line")
    options = parser.parse_args(arguments)
    unknown = [file for file in options.files if file not in TARGETS]
    if unknown:
        parser.error(f"not in tests/mutation/targets.py: {', '.join(unknown)}")
    files = options.files or list(TARGETS)
    interrupt_on_termination()
    for name in PRELOADED:
        importlib.import_module(name)  # once, and not in every process
    reasons = read_reasons()
    results: list[Result] = []
    begun = time.monotonic()
    for tests in dict.fromkeys(TARGETS[file][1] for file in files):
        group = {file: TARGETS[file][0] for file in files if TARGETS[file][1] == tests}
        for result in run(
            group, tests, lambda mutant: options.line in (None, mutant.line), jobs=options.jobs, seconds=options.seconds
        ):
            results.append(result)
            if not result.killed:
                print(f"{result.outcome}: {result.mutant}{_reason(reasons, result.mutant)}", flush=True)
    print(f"\n{table(results)}\n\n{len(results)} mutants in {(time.monotonic() - begun) / 60:.0f} minutes")
    unexplained = [r for r in results if not r.killed and not _reason(reasons, r.mutant)]
    short = [file for file in files if _share([r for r in results if r.mutant.path == file]) < LEAST]
    if unexplained:
        print(f"{len(unexplained)} that survived have no reason in {REASONS.name}")
    if short:
        print(f"less than {LEAST:.0%} killed: {', '.join(short)}")
    return 1 if short or unexplained else 0


def table(results: Sequence[Result]) -> str:
    """A Markdown table of the files."""
    rows = ["| File | Mutants | Killed | Survived | Killed, % |", "|---|---:|---:|---:|---:|"]
    for file in dict.fromkeys(result.mutant.path for result in results):
        rows.append(_row(f"`{file}`", [result for result in results if result.mutant.path == file]))
    return "\n".join([*rows, _row("All", results)])


def _row(name: str, results: Sequence[Result]) -> str:
    killed = sum(result.killed for result in results)
    return f"| {name} | {len(results)} | {killed} | {len(results) - killed} | {100 * _share(results):.1f} |"


def _share(results: Sequence[Result]) -> float:
    return sum(result.killed for result in results) / len(results) if results else 1.0


def read_reasons() -> dict[tuple[str, str, str], str]:
    """(file, function, "before → after") → why no test notices it."""
    content = yaml.safe_load(REASONS.read_text(encoding="utf-8")) or {}
    return {
        (file, function, mistake): entry["reason"]
        for file, entries in content.items()
        for entry in entries
        for function in [entry["function"]]
        for mistake in entry["mistakes"]
    }


def _reason(reasons: dict[tuple[str, str, str], str], mutant: Mutant) -> str:
    """Why no test notices it, in brackets; nothing if nobody knows."""
    reason = reasons.get((mutant.path, mutant.function, f"{mutant.before} → {mutant.after}"))
    if DEVICE.sub("", mutant.before) == mutant.after:
        reason = "matters on a GPU only"
    return f" ({reason})" if reason else ""


if __name__ == "__main__":
    sys.exit(main())
