"""nmt-synthetic: a small corpus from a grammar, with gold word alignments, for the examples that need no download."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import read_count
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser, say
from nmt.errors import UserError, first_of, refuse
from nmt.files import written_atomically

PROGRAM = "nmt-synthetic"
FOLDER = Path("data/synthetic")  # where the example configurations look for it
SIZES = {"train": 6000, "valid": 300, "test": 500}
SEED = 1
_MOST = 3  # files that a message names


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Write an English-German corpus with gold word alignments, made by a small grammar: the corpus of "
        "the examples demo and attention_synthetic.",
        epilog="Files are {train,valid,test}.{en,de,align}: one sentence a line, words with single spaces between; "
        "alignments as source-target positions from 0 (Pharaoh format). The same options give the same bytes; files "
        "with others are not replaced unless --overwrite says so.",
    )
    made.add_argument(
        "--output",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help=f"where to write, made if missing (default: {FOLDER})",
    )
    made.add_argument("--overwrite", action="store_true", help="replace files there that have other content")
    made.add_argument(
        "--seed", default=str(SEED), metavar="N", help=f"another seed gives other sentences (default: {SEED})"
    )
    for name, default in SIZES.items():
        made.add_argument(f"--{name}", default=str(default), metavar="N", help=f"{name} pairs (default: {default})")
    return made


@dataclass(frozen=True, kw_only=True)
class Request:
    """How many pairs to write for each file, drawn from which seed, and where."""

    output: Path
    overwrite: bool
    sizes: Mapping[str, int]
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-synthetic; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_command, arguments))


def _command(arguments: Sequence[str] | None) -> None:
    _write(_read_request(parser().parse_args(arguments)))


def _read_request(options: argparse.Namespace) -> Request:
    from nmt.data.synthetic import MOST_SENTENCES

    problems: list[str] = []
    sizes = {name: read_count(f"--{name}", getattr(options, name), problems, least=1) or 0 for name in SIZES}
    if (total := sum(sizes.values())) > MOST_SENTENCES:
        counts = " + ".join(f"--{name} {size}" for name, size in sizes.items())
        most = f"at most {MOST_SENTENCES}, which the grammar is sure to have distinct"
        problems.append(f"{counts} = {total} pairs: {most}")
    seed = read_count("--seed", options.seed, problems, least=0)
    refuse(problems)
    return Request(output=options.output, overwrite=options.overwrite, sizes=sizes, seed=seed or 0)


def _write(request: Request) -> None:
    from nmt.data.synthetic import corpus_files, describe, make_pairs

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


if __name__ == "__main__":
    from nmt.cli import start

    raise SystemExit(start.main(PROGRAM))
