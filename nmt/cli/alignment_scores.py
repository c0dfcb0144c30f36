"""nmt-eval for word alignments: combine two directions, compare with gold alignments, save and report.

Wiring only: Pharaoh files → links → (symmetrisation) → scores → table or JSON. It imports no PyTorch.
"""

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nmt.cli.options import STANDARD, check_output, collect, opened_for_writing, option_name
from nmt.config.allowed import nearest
from nmt.data.corpus import read_lines
from nmt.errors import UserError
from nmt.evaluation.alignments import (
    SYMMETRISATIONS,
    alignment_scores,
    pharaoh,
    read_gold,
    read_links,
    symmetrised,
    table,
)

INPUTS = ("alignments", "reverse_alignments", "gold_alignments")
OPTIONS = (*INPUTS, "symmetrise")

Read = TypeVar("Read")


def add_alignment_score_options(group: argparse._ActionsContainer) -> None:
    """Add the options of this file; --output and --json are nmt-eval's own."""
    group.add_argument(
        "--alignments",
        type=Path,
        metavar="FILE",
        help="word alignments to score or to combine, as nmt-translate and nmt-score write them: a line for each pair "
        "of sentences, source-target, counted from 0",
    )
    group.add_argument(
        "--gold-alignments",
        type=Path,
        metavar="FILE",
        help="the right alignments: s-t is a sure link, spt (or s?t) a possible one, counted from 0",
    )
    group.add_argument(
        "--reverse-alignments",
        type=Path,
        metavar="FILE",
        help="alignments of the same sentences by a model of the other direction, as it writes them: its source is the "
        "target here",
    )
    group.add_argument(
        "--symmetrise",
        metavar="HOW",
        help=f"how to combine the two directions: {', '.join(SYMMETRISATIONS)}; --output FILE saves the result",
    )


def about_alignments(given: argparse.Namespace) -> bool:
    """Whether nmt-eval was asked to score or combine alignments."""
    return any(getattr(given, name) is not None for name in OPTIONS)


def evaluate_alignments(given: argparse.Namespace, *, unwanted: Collection[str]) -> None:
    """Check, read, combine, score and report. `unwanted`: what was given and goes with translations only."""
    problems = [f"{option} has no effect on alignments; leave it out, or --alignments" for option in unwanted]
    problems += _contradictions(given)
    _check_outputs(given, problems)
    forward = _read(given, "alignments", read_links, problems)
    reverse = _read(given, "reverse_alignments", read_links, problems)
    gold = _read(given, "gold_alignments", read_gold, problems)
    problems += _unequal(given, {"alignments": forward, "reverse_alignments": reverse, "gold_alignments": gold})
    if forward is None or problems:
        raise UserError(*problems)

    links: Sequence[Sequence[tuple[int, int]]] = forward
    if given.symmetrise is not None and reverse is not None:
        links = symmetrised(given.symmetrise, forward, reverse)
    if given.output is not None:
        _write(given.output, "".join(f"{pharaoh(each)}\n" for each in links))
    if gold is None:
        return
    scores = alignment_scores(links, gold)
    if given.json != STANDARD:
        _write(STANDARD, f"{table(scores, sentences=len(gold))}\n")
    if given.json is not None:
        numbers: dict[str, Any] = {
            "precision": _rounded(scores.precision),
            "recall": _rounded(scores.recall),
            "alignment_error_rate": _rounded(scores.error_rate),
            "sentences": len(gold),
        }
        _write(given.json, f"{json.dumps(numbers, indent=2)}\n")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _contradictions(given: argparse.Namespace) -> Iterator[str]:
    """Find options that are missing, or that do not go together."""
    if given.alignments is None:
        yield "--alignments FILE is missing: the alignments to score or to combine"
    if given.reverse_alignments is not None and given.symmetrise is None:
        yield f"--reverse-alignments needs --symmetrise HOW: {', '.join(SYMMETRISATIONS)}"
    if given.symmetrise is not None:
        if given.reverse_alignments is None:
            yield "--symmetrise needs --reverse-alignments FILE, the other direction"
        if given.symmetrise not in SYMMETRISATIONS:
            close = nearest(given.symmetrise, list(SYMMETRISATIONS))
            hint = f"; did you mean {close}?" if close else ""
            yield f"--symmetrise {given.symmetrise}: unknown; choose one of {', '.join(SYMMETRISATIONS)}{hint}"
    elif given.output is not None and given.reverse_alignments is None:
        yield "--output has an effect only with --symmetrise, or with --model"
    if given.gold_alignments is None and given.output is None:
        yield "nothing to do: give --gold-alignments FILE to score, or --symmetrise HOW with --output FILE to combine"
    if given.gold_alignments is None and given.json is not None:
        yield "--json needs --gold-alignments FILE: without it there are no scores"
    if given.output == STANDARD and given.gold_alignments is not None:
        yield "--output -: standard output has the scores; give a file"


def _check_outputs(given: argparse.Namespace, problems: list[str]) -> None:
    others = {option_name(name): getattr(given, name) for name in INPUTS}
    collect(problems, partial(check_output, "standard output", STANDARD, others={}))
    for name in ("output", "json"):
        output = getattr(given, name)
        if output is not None and output != STANDARD:
            collect(problems, partial(check_output, f"--{name}", output, others=others))
            others[f"--{name}"] = Path(output)


def _read(
    given: argparse.Namespace, name: str, read: Callable[..., list[Read]], problems: list[str]
) -> list[Read] | None:
    """What a file holds; None where none is given, or something is wrong with it, which is added to `problems`."""
    path, option = getattr(given, name), option_name(name)
    if path is None:
        return None
    found: list[str] = []
    links = collect(found, lambda: read(read_lines(path), name=str(path)))
    problems.extend(f"{option}: {message}" for message in found)
    if links == []:
        problems.append(f"{option} {path}: the file is empty")
    return links


def _unequal(given: argparse.Namespace, files: dict[str, Sequence[Any] | None]) -> Iterator[str]:
    """All files must have the lines of the first."""
    counts = {name: len(lines) for name, lines in files.items() if lines}
    for name in counts:
        if counts[name] != counts.get("alignments", counts[name]):
            yield (
                f"--alignments {given.alignments} has {counts['alignments']} lines and {option_name(name)} "
                f"{getattr(given, name)} has {counts[name]}: line i of each must be of the same pair of sentences"
            )


def _write(name: str, text: str) -> None:
    with opened_for_writing(name) as file:
        file.write(text.encode("utf-8"))
