#!/usr/bin/env python3
"""Build a synthetic corpus of any size from the grammar of synthetic_grammar.py; nmt-synthetic writes the usual one.

    python scripts/make_synthetic_corpus.py --output data/synthetic
    python scripts/make_synthetic_corpus.py --archive           what nmt-synthetic unpacks, once the grammar has changed

The same options give the same bytes. The package never imports the script.
"""

import argparse
import io
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli.common import run
from nmt.cli.options import whole_number
from nmt.cli.parser import Parser
from nmt.cli.synthetic import ARCHIVE, add_output_options, write_corpus
from nmt.errors import UserError
from scripts.synthetic_grammar import MOST_SENTENCES, corpus_files, make_pairs

PROGRAM = "make_synthetic_corpus.py"
SIZES = {"train": 6000, "valid": 300, "test": 500}
SEED = 1


def parser() -> Parser:
    """The options of the script."""
    made = Parser(
        PROGRAM,
        description="Write an English-German corpus with gold word alignments, of any size, from a small grammar.",
        epilog="The files are those that nmt-synthetic writes. The same options give the same bytes.",
    )
    add_output_options(made)
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
    made.add_argument("--archive", action="store_true", help="write the archive of the package instead")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _make(parser().parse_args(arguments)))


def _make(options: argparse.Namespace) -> None:
    sizes = {name: getattr(options, name) for name in SIZES}
    if (total := sum(sizes.values())) > MOST_SENTENCES:
        counts = " + ".join(f"--{name} {size}" for name, size in sizes.items())
        most = f"at most {MOST_SENTENCES}, which the grammar is sure to have distinct"
        raise UserError(f"{counts} = {total} pairs: {most}")
    files = corpus_files(make_pairs(total, options.seed), sizes)
    if options.archive:
        ARCHIVE.write_bytes(packed(files))
    else:
        write_corpus(options.output, files, overwrite=options.overwrite)


def packed(files: Mapping[str, bytes]) -> bytes:
    """The files as an archive, the same bytes for the same files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return archive.getvalue()


if __name__ == "__main__":
    sys.exit(main())
