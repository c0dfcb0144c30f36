"""nmt-align: combine the word alignments of two directions, compare alignments with gold ones, save and report.

Wiring only: Pharaoh files → links → (symmetrization) → scores → table or JSON. It imports no PyTorch.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from nmt.cli.common import run
from nmt.cli.options import add_gold_options
from nmt.cli.outputs import STANDARD, check_outputs, write_report, write_text
from nmt.cli.parser import Parser
from nmt.errors import counted, refuse
from nmt.evaluation.alignments import SYMMETRIZATIONS, AlignmentScores, alignment_scores, symmetrized
from nmt.pharaoh import is_counted_from_1, pharaoh, read_gold, read_links

PROGRAM = "nmt-align"
Item = TypeVar("Item")
INPUTS = ("--alignments", "--reverse-alignments", "--gold-alignments")


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Score word alignments with precision, recall, and alignment error rate, or combine those of two "
        "directions.",
        epilog="Files are in Pharaoh format, plain or .gz: a line for each pair of sentences, source-target, counted "
        "from 0 (gold alignments perhaps from 1: --first-word).",
    )
    made.add_argument(
        "--alignments",
        type=Path,
        metavar="FILE",
        help="word alignments, as nmt-translate and nmt-score write them; required",
    )
    add_gold_options(made, "the right alignments")
    made.add_argument(
        "--reverse-alignments",
        type=Path,
        metavar="FILE",
        help="alignments of the same sentences by a model of the other direction, as it writes them: its source is the "
        "target here",
    )
    made.add_argument(
        "--symmetrize", choices=[*SYMMETRIZATIONS], metavar="HOW", help=f"how to combine: {', '.join(SYMMETRIZATIONS)}"
    )
    made.add_argument("--output", metavar="FILE", help="save the combined alignments")
    made.add_argument("--json", metavar="FILE", help="write the scores as JSON too; -: instead of the table")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-align; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_align, arguments))


def _align(arguments: Sequence[str] | None) -> None:
    options = parser().parse_args(arguments)
    problems = _contradictions(options)
    paths = {name: getattr(options, name[2:].replace("-", "_")) for name in INPUTS}
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    check_outputs(outputs, problems, others=list(paths.items()))
    links, reverse = (_read(name, paths[name], read_links, problems) for name in INPUTS[:2])
    gold = _read(INPUTS[2], paths[INPUTS[2]], partial(read_gold, first_word=options.first_word or 0), problems)
    for name, count in zip(INPUTS[1:], (len(reverse), len(gold)), strict=True):
        if links and count and count != len(links):
            problems.append(
                f"--alignments {options.alignments} has {counted(len(links), 'line')} and {name} {paths[name]} has "
                f"{count:,}: line i of each must be of the same pair of sentences"
            )
    refuse(problems)
    if is_counted_from_1(gold):
        print(
            f"{PROGRAM}: warning: --gold-alignments {options.gold_alignments}: no line links word 0, as if words were "
            "counted from 1, and all links are then taken for those of other words; if so, give --first-word 1",
            file=sys.stderr,
        )
    if options.symmetrize is not None:
        links = symmetrized(options.symmetrize, links, reverse)
    if options.output is not None:
        write_text(options.output, "".join(f"{pharaoh(line)}\n" for line in links))
    if gold:
        _report(alignment_scores(links, gold), sentences=len(gold), json=options.json)


def _read(option: str, path: Path | None, read: Callable[..., list[Item]], problems: list[str]) -> list[Item]:
    from nmt.cli.options import read_whole

    return read_whole(option, path, read, problems)


def _contradictions(options: argparse.Namespace) -> list[str]:
    problems = []
    if options.alignments is None:
        problems.append("--alignments FILE is missing: the alignments to score or to combine")
    if (options.reverse_alignments is None) != (options.symmetrize is None):
        problems.append("--reverse-alignments FILE and --symmetrize HOW go together: give both, or none")
    if options.gold_alignments is None and options.output is None:
        problems.append("nothing to do: give --gold-alignments FILE to score, or --symmetrize HOW with --output FILE")
    if options.gold_alignments is None and options.json is not None:
        problems.append("--json needs --gold-alignments FILE: without it there are no scores")
    if options.gold_alignments is None and options.first_word is not None:
        problems.append("--first-word needs --gold-alignments FILE, whose words it counts")
    if options.gold_alignments is not None and options.output == STANDARD:
        problems.append("--output -: standard output has the scores; give a file")
    return problems


def _report(scores: AlignmentScores, *, sentences: int, json: str | None) -> None:
    lines, numbers = ["measure    value   better"], {}
    for short, name, value, better in (
        ("precision", "precision", scores.precision, "higher"),
        ("recall", "recall", scores.recall, "higher"),
        ("AER", "alignment_error_rate", scores.error_rate, "lower"),
    ):
        lines.append(f"{short:<9}  {'–' if value is None else f'{value:.4f}':<6}  {better}")
        numbers[name] = None if value is None else round(value, 6)
    table = "\n".join([*lines, counted(sentences, "sentence")])
    write_report(json, table, {**numbers, "sentences": sentences})
