"""The options of nmt-eval about its page: what is to be on it besides the scores, and what is wrong with that."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import STANDARD, Files
from nmt.cli.systems import Systems
from nmt.data.corpus import read_lines
from nmt.errors import Checking, caught
from nmt.pharaoh import Gold, read_gold


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
        for option in ("--training-text", "--attention-model"):
            if getattr(options, option[2:].replace("-", "_")) is not None:
                yield f"{option} has an effect only with --report"
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
    """Raise UserError if the first line cannot be read: the rest is read once, when all else is done."""
    next(read_lines(path), None)
