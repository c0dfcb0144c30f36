"""nmt-synthetic: a small corpus from a grammar, with gold word alignments, for the examples that need no download."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import whole_number
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser, say
from nmt.errors import UserError, first_of
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
        "--seed",
        type=whole_number(0),
        default=SEED,
        metavar="N",
        help=f"another seed gives other sentences (default: {SEED})",
    )
    for name, default in SIZES.items():
        made.add_argument(
            f"--{name}", type=whole_number(1), default=default, metavar="N", help=f"{name} pairs (default: {default})"
        )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-synthetic; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _synthetic(parser().parse_args(arguments)))


def _synthetic(options: argparse.Namespace) -> None:
    from nmt.data.synthetic import MOST_SENTENCES, corpus_files, make_pairs

    sizes = {name: getattr(options, name) for name in SIZES}
    if (total := sum(sizes.values())) > MOST_SENTENCES:
        counts = " + ".join(f"--{name} {size}" for name, size in sizes.items())
        most = f"at most {MOST_SENTENCES}, which the grammar is sure to have distinct"
        raise UserError(f"{counts} = {total} pairs: {most}")
    with failing_as(str(options.output)):
        options.output.mkdir(parents=True, exist_ok=True)
        pairs = make_pairs(total, options.seed)
        files = corpus_files(pairs, sizes)
        others = [name for name, content in files.items() if _is_other(options.output / name, content)]
        if others and not options.overwrite:
            raise UserError(
                f"{options.output}: holds other files named {', '.join(first_of(others, _MOST))}; give another "
                "--output, or --overwrite to replace them"
            )
        for name, content in files.items():
            path = options.output / name
            with failing_as(str(path)), written_atomically(path, "wb") as file:
                file.write(content)
    written = ", ".join(f"{name} {size}" for name, size in sizes.items())
    say(f"{options.output}: {written} pairs\n")


def _is_other(path: Path, content: bytes) -> bool:
    """Whether something is there, and it is no file with this content."""
    try:
        return path.stat().st_size != len(content) or path.read_bytes() != content
    except FileNotFoundError:
        return path.is_symlink()
