"""nmt-align: learn word alignments, combine those of two directions, compare them with gold ones, save and report.

Wiring only: text or Pharaoh files → links → (symmetrization) → scores → table or JSON.
It imports PyTorch only to learn.
"""

import argparse
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from nmt.cli.options import parallel_inputs, read_parallel, read_whole, whole_number, without_effect
from nmt.cli.outputs import STANDARD, check_outputs, opened_for_writing, write_report
from nmt.cli.parser import Parser, command
from nmt.errors import InputWarning, collected, counted, refuse, refuse_lines
from nmt.evaluation.alignments import SYMMETRIZATIONS, AlignmentScores, alignment_scores, symmetrized
from nmt.pharaoh import Gold, Link, is_counted_from_1, pharaoh, read_gold, read_links

PROGRAM = "nmt-align"
INPUTS = ("--alignments", "--reverse-alignments", "--gold-alignments")
DEFAULT = "grow-diag-final-and"


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Learn the word alignments of parallel text, combine those of two directions, or score them with "
        "precision, recall, and alignment error rate.",
        epilog="Files are in Pharaoh format, plain or .gz: a line for each pair of sentences, source-target, counted "
        "from 0 (gold alignments perhaps from 1: --first-word).",
    )
    made.add_argument(
        "--alignments", type=Path, help="word alignments, as nmt-translate and nmt-score write them; or else:"
    )
    made.add_argument(
        "--source",
        type=Path,
        nargs="+",
        help="text to align, a sentence a line, words between spaces; further files are only learned from",
    )
    made.add_argument("--target", type=Path, nargs="+", help="its translation, line by line")
    made.add_argument(
        "--gold-alignments", type=Path, help="the right alignments: s-t is a sure link, spt (or s?t) a possible one"
    )
    made.add_argument(
        "--first-word",
        type=whole_number(0, 1),
        metavar="N",
        help="the number that the first word of a sentence has in --gold-alignments, 0 or 1 (default: 0)",
    )
    made.add_argument(
        "--reverse-alignments",
        type=Path,
        help="alignments of the same sentences by a model of the other direction, as it writes them: its source is the "
        "target here",
    )
    made.add_argument(
        "--symmetrize",
        choices=[*SYMMETRIZATIONS],
        metavar="HOW",
        help=f"how to combine the links of both directions: {', '.join(SYMMETRIZATIONS)} (default with --source and "
        f"--target: {DEFAULT})",
    )
    made.add_argument("--output", metavar="FILE", help="save the alignments")
    made.add_argument("--json", metavar="FILE", help="write the scores as JSON too; -: instead of the table")
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    problems += _contradictions(options)
    paths = {name: getattr(options, name[2:].replace("-", "_")) for name in INPUTS}
    pairs, counts = read_parallel(options.source, options.target, problems)
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    check_outputs(outputs, problems, others=[*paths.items(), *parallel_inputs(pairs)])
    given, reverse = (read_whole(name, paths[name], read_links, problems) for name in INPUTS[:2])
    gold = read_whole(INPUTS[2], paths[INPUTS[2]], partial(read_gold, first_word=options.first_word or 0), problems)
    first, lines = (
        (f"--source {pairs[0][0]}", counts[0]) if pairs else (f"--alignments {options.alignments}", len(given))
    )
    for name, count in zip(INPUTS[1:], (len(reverse), len(gold)), strict=True):
        if lines and count and count != lines:
            problems.append(
                f"{first} has {counted(lines, 'line')} and {name} {paths[name]} has {count:,}: line i of each must be "
                "of the same pair of sentences"
            )
    refuse(problems)
    if is_counted_from_1(gold):
        warnings.warn(
            f"--gold-alignments {options.gold_alignments}: no line links word 0, as if words were counted from 1, and "
            "all links are then taken for those of other words; if so, give --first-word 1",
            InputWarning,
            stacklevel=1,
        )
    links: Iterable[Sequence[Link]] = given
    if pairs:
        links = symmetrized(options.symmetrize or DEFAULT, *_learned(options, gold, count=lines))
    elif options.symmetrize is not None:
        links = symmetrized(options.symmetrize, given, reverse)
    if options.output is not None:
        links = _saved(links, options.output)
    if gold:
        _report(alignment_scores(links, gold), sentences=len(gold), json=options.json)
    else:
        deque(links, maxlen=0)


def _learned(options: argparse.Namespace, gold: Iterable[Gold], *, count: int) -> tuple[Iterator[list[Link]], ...]:
    """The links of the first `count` pairs of lines, whose `gold` alignments are checked, learned from all of them."""
    from nmt.data.alignments import check_within, check_words
    from nmt.data.corpus import read_pairs
    from nmt.decoding.word_aligner import aligned

    problems: list[str] = []
    for path in (*options.source, *options.target):
        with collected(problems):
            check_words(path)
    refuse(problems)
    name, pairs = f"--gold-alignments {options.gold_alignments}", read_pairs(options.source[0], options.target[0])
    first_word = options.first_word or 0
    advice = "" if first_word else " (from 1: --first-word 1); swapped sides?"
    for number, (texts, (_, links)) in enumerate(zip(pairs, gold, strict=False), start=1):
        with collected(problems):
            check_within(links, texts, place=f"{name}, line {number}", first_word=first_word, advice=advice)
    refuse_lines(name, problems)
    return aligned(chain.from_iterable(map(read_pairs, options.source, options.target)), count=count)


def _saved(links: Iterable[Sequence[Link]], output: str) -> Iterator[Sequence[Link]]:
    """The same links, each written when the next is asked for; the output is complete at the end."""
    with opened_for_writing(output) as file:
        for line in links:
            file.write(f"{pharaoh(line)}\n".encode())
            yield line


def _contradictions(options: argparse.Namespace) -> list[str]:
    problems = []
    given = [name for name in ("alignments", "source", "target") if getattr(options, name) is not None]
    if given not in (["alignments"], ["source", "target"]):
        problems.append("give either --alignments FILE, to score or to combine, or --source FILE and --target FILE")
    if options.source is not None:
        if options.reverse_alignments is not None:
            problems.append("--reverse-alignments FILE goes with --alignments FILE: both directions are learned here")
    elif (options.reverse_alignments is None) != (options.symmetrize is None):
        problems.append("--reverse-alignments FILE and --symmetrize HOW go together: give both, or none")
    if options.gold_alignments is None and options.output is None:
        problems.append("nothing to do: give --gold-alignments FILE to score, or --output FILE to save")
    problems += without_effect(vars(options), dict.fromkeys(("json", "first_word"), ("gold_alignments",)))
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
