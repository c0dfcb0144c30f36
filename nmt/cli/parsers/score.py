"""The options of nmt-score."""

from pathlib import Path

from nmt.cli.outputs import STANDARD
from nmt.cli.parsers.parser import Parser
from nmt.cli.parsers.shared import (
    add_alignment_options,
    add_alignment_step_option,
    add_device_option,
    add_model_option,
)

PROGRAM = "nmt-score"


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Score given translations: for each pair of lines log p(target | source) in nats, summed over the "
        "target's pieces and its end; one number a line, in order. The perplexity of all goes to standard error.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz. Two blank lines score 0 and count no token; a "
        "blank target alone scores the end of the sentence, and of a blank source alone the model reads nothing. A "
        "line of any length is scored as a whole.",
    )
    add_model_option(made, "what scores, required")
    made.add_argument("--source", type=Path, metavar="FILE", help="text that was translated; required")
    made.add_argument("--target", type=Path, metavar="FILE", help="its translations, line by line; required")
    made.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where scores go; -: standard output (default)"
    )
    made.add_argument(
        "--json",
        metavar="FILE",
        help="write sentences, tokens, log_probability and perplexity as JSON, instead of the line on standard error; "
        "-: to standard output",
    )
    made.add_argument(
        "--normalise", action="store_true", help="divide each log-probability by its tokens, the end counted"
    )
    made.add_argument(
        "--batch-tokens",
        metavar="TOKENS",
        help="sentences times the longest source of a batch; it changes speed and memory, no score (default: from the "
        "model)",
    )
    add_device_option(made)
    attention = made.add_argument_group("alignments, from the attention of the model")
    add_alignment_options(attention)
    add_alignment_step_option(attention)
    return made
