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
from nmt.cli.parsers.parser import say
from nmt.cli.parsers.synthetic import PROGRAM, SIZES, parser
from nmt.data.synthetic import MOST_SENTENCES, corpus_files, describe, make_pairs
from nmt.errors import Checking, UserError, checked, first_of
from nmt.files import written_atomically

_MOST = 3  # files that a message names


@dataclass(frozen=True, kw_only=True)
class Request:
    """How many pairs to write for each file, drawn from which seed, and where."""

    output: Path
    overwrite: bool
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
    return Request(output=options.output, overwrite=options.overwrite, sizes=sizes, seed=seed)


def _write(request: Request) -> None:
    with failing_as(str(request.output)):
        request.output.mkdir(parents=True, exist_ok=True)
        pairs = make_pairs(sum(request.sizes.values()), request.seed)
        files = corpus_files(pairs, request.sizes)
        others = [name for name, content in files.items() if _is_other(request.output / name, content)]
        if others and not request.overwrite:
            raise UserError(
                f"{request.output}: holds other files named {', '.join(first_of(others, _MOST))}; give another "
                "--output, or --overwrite to replace them"
            )
        for name, content in files.items():
            path = request.output / name
            with failing_as(str(path)), written_atomically(path, "wb") as file:
                file.write(content)
    written = ", ".join(f"{name} {size}" for name, size in request.sizes.items())
    say(f"{request.output}: {written} pairs. {describe(pairs)}\n")


def _is_other(path: Path, content: bytes) -> bool:
    """Whether something is there, and it is no file with this content."""
    try:
        return path.stat().st_size != len(content) or path.read_bytes() != content
    except FileNotFoundError:
        return path.is_symlink()
