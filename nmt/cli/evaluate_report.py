"""The options of nmt-eval about its page: what is to be on it besides the scores, and what is wrong with that."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import STANDARD, Files, is_device
from nmt.cli.systems import Systems
from nmt.data.corpus import read_lines
from nmt.errors import Checking, UserError, caught
from nmt.pharaoh import Gold, pharaoh, read_gold

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The page to write, and what it shows besides the scores."""

    path: str
    training_text: Path | None
    attention_model: Models | None  # for translations that come from files
    gold_path: Path | None
    gold: Sequence[Gold]  # the right alignments of the first reference; empty if there are none

    @property
    def files(self) -> Files:
        """The files to read, with their options."""
        models = [] if self.attention_model is None else self.attention_model.paths
        others = [("--training-text", self.training_text), ("--gold-alignments", self.gold_path)]
        return [*others, *(("--attention-model", path) for path in models)]


def read_report_request(options: argparse.Namespace, systems: Systems) -> Checking[ReportRequest | None]:
    """Read what the page shows; None if there is to be none."""
    if options.report is None:
        return None
    yield from _contradictions(options, systems)
    models = None
    if options.attention_model is not None:
        computing = {**vars(options), "model": [options.attention_model], "ensemble": None}
        models = yield from read_models({**computing, "precision": None, "shortlist": None})
    if options.training_text is not None:
        yield from caught(partial(_check_text, options.training_text), None)
    gold = yield from read_whole("--gold-alignments", options.gold_alignments, read_gold)
    return ReportRequest(
        path=options.report,
        training_text=options.training_text,
        attention_model=models,
        gold_path=options.gold_alignments,
        gold=gold,
    )


def misplaced_links(report: ReportRequest, source: Sequence[str], reference: Sequence[str]) -> Iterator[str]:
    """What is wrong if gold links are of words that the sentences do not have, as where they are counted from 1."""
    misplaced = []
    for number, (gold, *sides) in enumerate(zip(report.gold, source, reference, strict=False), start=1):
        counts = [len(line.split()) for line in sides]
        for link in sorted(gold.possible):
            if any(place >= count for place, count in zip(link, counts, strict=True)):
                misplaced.append((number, link, counts))
                break
    if misplaced:
        number, link, counts = misplaced[0]
        yield (
            f"--gold-alignments {report.gold_path}, line {number}: {pharaoh([link])} links words that are missing; "
            f"there --source has {counts[0]} and --reference has {counts[1]}, counted from 0, with spaces between"
            + (f"; {len(misplaced):,} lines are like this" if len(misplaced) > 1 else "")
        )


def check_attention(report: ReportRequest, translators: Mapping[str, "Translator"]) -> None:
    """Raise UserError where attention was asked for, and the models, by system, have none."""
    lacking = [one.scorer.without_attention for one in translators.values()]
    if translators and all(lacking):
        if report.attention_model is not None:
            raise UserError(f"--attention-model {report.attention_model.paths[0]}: {lacking[0]}")
        if report.gold:
            raise UserError(f"--gold-alignments with --report needs a model whose attention aligns: {lacking[0]}")


def _contradictions(options: argparse.Namespace, systems: Systems) -> Iterator[str]:
    if options.report == STANDARD:
        yield "--report -: standard output has the scores; give a file"
    if options.attention_model is not None:
        if not options.source:
            yield "--attention-model needs --source FILE, the text that was translated"
        if systems.candidates and all(one.models is not None for one in systems.candidates):
            yield "--attention-model has no effect: each system is translated here, by a model with its own attention"
    elif options.gold_alignments is not None and not systems.have_models:
        yield "--gold-alignments with --report needs a model whose attention aligns: --model, or --attention-model"


def _check_text(path: Path) -> None:
    """Raise UserError if a line cannot be read, or there is none, before all else is done; not of a pipe, which can be
    read only once."""
    if not is_device(path) and not sum(1 for _ in read_lines(path)):
        raise UserError(f"--training-text {path}: the file is empty")
