"""The page of nmt-eval: what is to be on it besides the scores; and the outcome of a comparison → forced decoding for
attention → the file.

Wiring only. NumPy and Jinja2 are imported when the page is written: everyday scores need not wait for them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from tqdm import tqdm

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import STANDARD, Files, is_device, write_text
from nmt.cli.systems import Candidate
from nmt.config.schema import AlignmentStep
from nmt.data.corpus import read_lines
from nmt.errors import UserError, collected
from nmt.evaluation.alignments import AlignmentScores, alignment_scores
from nmt.evaluation.comparison import Comparison
from nmt.ops.memory import enough_memory
from nmt.pharaoh import Gold, pharaoh, read_gold

if TYPE_CHECKING:
    from nmt.decoding.scoring import Scored
    from nmt.decoding.translator import Translator

MEMORY = "leave out --attention-model, or shorten the longest lines"
MOST_WEIGHTS = 12_000_000  # characters of packed weights on a page


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The page to write, and what it shows besides the scores."""

    attention_model: Models | None  # for translations that come from files
    gold: Sequence[Gold]  # the right alignments of the first reference; empty if there are none
    alignment_step: AlignmentStep
    command: argparse.Namespace  # what else it was given

    @property
    def files(self) -> Files:
        """The files to read, with their options."""
        models = [] if self.attention_model is None else self.attention_model.paths
        others = [("--training-text", self.command.training_text), ("--gold-alignments", self.command.gold_alignments)]
        return [*others, *(("--attention-model", path) for path in models)]


def read_report_request(
    options: argparse.Namespace, candidates: Sequence[Candidate], step: AlignmentStep, problems: list[str]
) -> ReportRequest:
    """Read what the page shows."""
    has_models = any(one.models is not None for one in candidates)
    if options.report == STANDARD:
        problems.append("--report -: standard output has the scores; give a file")
    if options.attention_model is not None:
        if not options.source:
            problems.append("--attention-model needs --source FILE, the text that was translated")
    elif options.gold_alignments is not None and not has_models:
        problems.append("--gold-alignments needs a model whose attention aligns: --model, or --attention-model")
    models = None
    if options.attention_model is not None:
        computing = {"model": [options.attention_model], "device": options.device, "ensemble": None}
        models = read_models(computing, problems)
    with collected(problems):
        # Of a pipe, which can be read only once, mistakes are met later.
        text = options.training_text
        if text is not None and not is_device(text) and not sum(1 for _ in read_lines(text)):
            problems.append(f"--training-text {text}: the file is empty")
    read = partial(read_gold, first_word=options.first_word or 0)
    gold = read_whole("--gold-alignments", options.gold_alignments, read, problems)
    return ReportRequest(
        attention_model=models,
        gold=gold,
        alignment_step=step,
        command=options,
    )


def check_places(report: ReportRequest, source: Sequence[str], reference: Sequence[str], problems: list[str]) -> None:
    """Find gold links of words that the sentences do not have, as where they are counted from 1."""
    for number, (gold, *sides) in enumerate(zip(report.gold, source, reference, strict=False), start=1):
        counts = [len(line.split()) for line in sides]
        for link in sorted(gold.possible):
            if link[0] >= counts[0] or link[1] >= counts[1]:
                path = report.command.gold_alignments
                problems.append(
                    f"--gold-alignments {path}, line {number}: {pharaoh([link])} links words that are "
                    f"missing; there --source has {counts[0]} and --reference has {counts[1]}, counted from 0; "
                    "--first-word 1 counts from 1"
                )
                return


def check_attention(report: ReportRequest, translators: Mapping[str, "Translator"]) -> None:
    """Raise UserError where attention was asked for, and the models, by system, have none."""
    lacking = [one.scorer.without_attention for one in translators.values()]
    if translators and all(lacking):
        if report.attention_model is not None:
            raise UserError(f"--attention-model {report.attention_model.paths[0]}: {lacking[0]}")
        if report.gold:
            raise UserError(f"--gold-alignments needs a model whose attention aligns: {lacking[0]}")


@enough_memory(MEMORY)
def write_page(
    request: ReportRequest,
    comparison: Comparison,
    *,
    tokenize: str,
    lowercase: bool,
    translators: Mapping[str, "Translator"],
) -> None:
    """Write the page. `translators`: by system, the model whose attention is shown."""
    from nmt.evaluation.page.contents import contents
    from nmt.evaluation.page.render import page

    attention: dict[str, list[str | None]] = {}
    errors: dict[int, AlignmentScores] = {}  # by model: several systems may have the same
    attentive = {name: one for name, one in translators.items() if one.scorer.without_alignments is None}
    for candidate in comparison.systems:
        if (translator := attentive.get(candidate.name)) is None:
            continue
        forced = _Forced(translator, comparison.source or (), request.alignment_step)
        attention[candidate.name] = _attention(forced, candidate.hypotheses, MOST_WEIGHTS // len(attentive))
        if request.gold and id(translator) not in errors:
            scores = forced.scores(comparison.references[0], range(comparison.sentences))
            links = [scored.alignment.links for scored in scores if scored.alignment is not None]
            errors[id(translator)] = alignment_scores(links, request.gold)
    text = request.command.training_text
    made = contents(
        comparison,
        tokenize=tokenize,
        lowercase=lowercase,
        attention=attention,
        alignments={name: errors[id(one)] for name, one in attentive.items() if id(one) in errors},
        training=None if text is None else read_lines(text),
    )
    write_text(request.command.report, page(made))


@dataclass(frozen=True)
class _Forced:
    """A model that is made to write translations of the source, and whose attention is read."""

    translator: "Translator"
    source: Sequence[str]
    step: AlignmentStep

    def scores(self, lines: Sequence[str], places: Sequence[int]) -> Iterator["Scored"]:
        """What the model says of the lines in some places."""
        from nmt.decoding.scoring import score  # only here: scoring files needs no PyTorch

        return score(
            self.translator.scorer,
            self.translator.vocabularies,
            ((self.source[place], lines[place]) for place in places),
            batch_tokens=self.translator.decoding.batch_tokens,
            alignments=True,
            alignment_step=self.step,
        )


def _attention(forced: _Forced, lines: Sequence[str], most: int) -> list[str | None]:
    """The packed weights of the pairs that the page lists, until there are so many characters; None of the others."""
    from nmt.evaluation.page.contents import LISTED, packed

    weights: list[str | None] = [None] * len(lines)
    listed = islice(enumerate(zip(forced.source, lines, strict=True)), LISTED)
    chosen = [place for place, pair in listed if all(map(_shown_whole, pair))]
    scores = tqdm(forced.scores(lines, chosen), total=len(chosen), desc="attention", unit=" sentences", disable=None)
    for place, scored in zip(chosen, scores, strict=True):
        assert scored.alignment is not None
        rows = scored.alignment.weights
        # The page's words are what stands between spaces; a vocabulary of cut words joins some.
        if tuple(rows.shape) == (len(lines[place].split()), len(forced.source[place].split()) + 1):
            text = packed(rows)
            most -= len(text)
            if most < 0:
                break
            weights[place] = text
    return weights


def _shown_whole(line: str) -> bool:
    """Whether a line has words, and the page shows all of them."""
    from nmt.evaluation.page.contents import shown

    text = shown(line)
    return bool(text.text) and not text.omitted
