"""The options of nmt-synthetic."""

from pathlib import Path

from nmt.cli.parsers.parser import Parser

PROGRAM = "nmt-synthetic"
FOLDER = Path("data/synthetic")  # where the example configurations look for it
SIZES = {"train": 6000, "valid": 300, "test": 500}
SEED = 1


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
