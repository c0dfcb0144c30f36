"""The options of nmt-shortlist."""

from pathlib import Path

from nmt.cli.parsers.parser import Parser

PROGRAM = "nmt-shortlist"
TRANSLATIONS, MOST_FREQUENT = 100, 100
MOST_PAIRS = 200_000  # at most; of more pairs every second, third, … is read, which bounds memory and time


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Learn from parallel text which target pieces may translate which source pieces, by IBM Model 1, "
        "for the --shortlist of nmt-translate and nmt-eval: they then choose among hundreds of pieces, not among all.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz; the model's training text serves best. Of "
        f"more than {MOST_PAIRS:,} pairs every second is read, or every third, and so on. The shortlist is for models "
        "with the vocabularies of this one, and refused by others.",
    )
    made.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help="whose subword models cut the text, required: a model file, or a run folder (its best model)",
    )
    made.add_argument(
        "--source", nargs="+", type=Path, metavar="FILE", help="text in the model's source language; required"
    )
    made.add_argument("--target", nargs="+", type=Path, metavar="FILE", help="its translations, file by file; required")
    made.add_argument("--output", metavar="FILE", help="where the shortlist goes, a .safetensors file; required")
    made.add_argument(
        "--translations",
        default=str(TRANSLATIONS),
        metavar="K",
        help=f"the most probable target pieces that each source piece has (default: {TRANSLATIONS})",
    )
    made.add_argument(
        "--most-frequent",
        default=str(MOST_FREQUENT),
        metavar="N",
        help=f"the most frequent target pieces, which every sentence has (default: {MOST_FREQUENT})",
    )
    return made
