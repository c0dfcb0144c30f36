"""The options of nmt-average."""

from pathlib import Path

from nmt.cli.parsers.parser import Parser

PROGRAM = "nmt-average"


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Average the weights of several models, such as checkpoints of a run, or a model before and after "
        "fine-tuning.",
        epilog="The models must have the same architecture and vocabularies, and one must have come from the other, or "
        "both from a third: the average of models that began apart is of no use.",
    )
    made.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help="a model file, or a run folder (its best model); required, at least twice",
    )
    made.add_argument(
        "--weights",
        nargs="+",
        metavar="A",
        help="how much each model counts, in the order of --model; they need not sum to 1 (default: all the same)",
    )
    made.add_argument("--output", metavar="FILE", help="where the average goes, a .safetensors file; required")
    return made
