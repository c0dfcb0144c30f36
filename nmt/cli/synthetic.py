"""nmt-synthetic: a small corpus from a grammar, with gold word alignments, for the examples that need no download."""

if __name__ == "__main__":
    from nmt.cli import start

    raise SystemExit(start.synthetic())

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import read_count
from nmt.cli.outputs import failing_as
from nmt.cli.parsers.synthetic import PROGRAM, SIZES, parser
from nmt.data.synthetic import MOST_SENTENCES, describe, write_corpus
from nmt.errors import Checking, checked


@dataclass(frozen=True, kw_only=True)
class Request:
    """How many pairs to write for each file, drawn from which seed, and where."""

    output: Path
    sizes: Mapping[str, int]
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-synthetic; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _write(checked(_read_request(parser().parse_args(arguments)))))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    sizes: dict[str, int] = {}
    for name in SIZES:
        sizes[name] = (yield from read_count(f"--{name}", getattr(options, name), least=1)) or 0
    if (total := sum(sizes.values())) > MOST_SENTENCES:
        counted = " + ".join(f"--{name} {size}" for name, size in sizes.items())
        yield f"{counted} = {total} pairs: at most {MOST_SENTENCES}, which the grammar is sure to have distinct"
    seed = (yield from read_count("--seed", options.seed, least=0)) or 0
    return Request(output=options.output, sizes=sizes, seed=seed)


def _write(request: Request) -> None:
    with failing_as(str(request.output)):
        pairs = write_corpus(request.output, request.sizes, request.seed)
    written = ", ".join(f"{name} {size}" for name, size in request.sizes.items())
    print(f"{request.output}: {written} pairs. {describe(pairs)}")
