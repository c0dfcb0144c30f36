"""nmt-eval for word alignments: combine two directions, compare with gold alignments, save and report.

Wiring only: Pharaoh files → links → (symmetrisation) → scores → table or JSON. It imports no PyTorch.
"""

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from nmt.cli.options import read_whole
from nmt.cli.outputs import STANDARD, check_outputs, write_report, write_text
from nmt.cli.parsers.parser import option_name
from nmt.config.problems import unknown_choice
from nmt.errors import Checking, counted
from nmt.evaluation.alignments import SYMMETRISATIONS, alignment_scores, symmetrised, table
from nmt.pharaoh import Gold, Links, pharaoh, read_gold, read_links

INPUTS = ("alignments", "reverse_alignments", "gold_alignments")
ABOUT_ALIGNMENTS = (*INPUTS, "symmetrise")  # options that nmt-eval has for alignments alone


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which alignments to combine or score, and where the results go."""

    links: Sequence[Links]
    reverse: Sequence[Links]  # the other direction; empty if there is none
    symmetrise: str | None  # how to combine the two
    gold: Sequence[Gold]  # empty if nothing is to be scored
    output: str | None
    json: str | None


def read_alignments_request(options: argparse.Namespace, *, unwanted: Collection[str]) -> Checking[Request]:
    """Check the arguments and read the alignments. `unwanted`: the options that only concern translations."""
    about = " and ".join(option_name(name) for name in ABOUT_ALIGNMENTS if getattr(options, name) is not None)
    yield from (f"{option} has no effect on alignments; leave it out, or {about}" for option in unwanted)
    yield from _contradictions(options)
    paths = {option_name(name): getattr(options, name) for name in INPUTS}
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    yield from check_outputs(outputs, others=list(paths.items()))
    links = yield from read_whole("--alignments", options.alignments, read_links)
    reverse = yield from read_whole("--reverse-alignments", options.reverse_alignments, read_links)
    gold = yield from read_whole("--gold-alignments", options.gold_alignments, read_gold)
    for (option, path), count in zip(paths.items(), (len(links), len(reverse), len(gold)), strict=True):
        if links and count and count != len(links):
            yield (
                f"--alignments {options.alignments} has {counted(len(links), 'line')} and {option} {path} has "
                f"{count:,}: line i of each must be of the same pair of sentences"
            )
    return Request(
        links=links, reverse=reverse, symmetrise=options.symmetrise, gold=gold, output=options.output, json=options.json
    )


def _contradictions(options: argparse.Namespace) -> Iterator[str]:
    if options.alignments is None:
        yield "--alignments FILE is missing: the alignments to score or to combine"
    if options.reverse_alignments is not None and options.symmetrise is None:
        yield f"--reverse-alignments needs --symmetrise HOW: {', '.join(SYMMETRISATIONS)}"
    if options.symmetrise is not None:
        if options.reverse_alignments is None:
            yield "--symmetrise needs --reverse-alignments FILE, the other direction"
        if options.symmetrise not in SYMMETRISATIONS:
            yield f"--symmetrise: {unknown_choice(options.symmetrise, list(SYMMETRISATIONS))}"
    elif options.output is not None and options.reverse_alignments is None:
        yield "--output has an effect only with --symmetrise, or with --model"
    if options.gold_alignments is None and options.output is None:
        yield "nothing to do: give --gold-alignments FILE to score, or --symmetrise HOW with --output FILE to combine"
    if options.gold_alignments is None and options.json is not None:
        yield "--json needs --gold-alignments FILE: without it there are no scores"
    if options.output == STANDARD and options.gold_alignments is not None:
        yield "--output -: standard output has the scores; give a file"


def evaluate_alignments(request: Request) -> None:
    links = request.links
    if request.symmetrise is not None:
        links = symmetrised(request.symmetrise, links, request.reverse)
    if request.output is not None:
        write_text(request.output, "".join(f"{pharaoh(line)}\n" for line in links))
    if not request.gold:
        return
    scores = alignment_scores(links, request.gold)
    numbers = {
        "precision": _rounded(scores.precision),
        "recall": _rounded(scores.recall),
        "alignment_error_rate": _rounded(scores.error_rate),
        "sentences": len(request.gold),
    }
    write_report(request.json, table(scores, sentences=len(request.gold)), numbers)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
