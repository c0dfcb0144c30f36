"""nmt-eval: score files of translations, or translate with models and score; or score word alignments; or draw
learning curves.

Wiring only: files → sentences → (translators) → `compare` → table, JSON, page. All mistakes are reported at once,
before a model is loaded; and what the models cannot do, before one of them translates.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.evaluate())

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from nmt.cli.common import run
from nmt.cli.evaluate_alignments import (
    ABOUT_ALIGNMENTS,
    evaluate_alignments,
    read_alignments_request,
)
from nmt.cli.evaluate_curves import draw_curves, read_curves_request
from nmt.cli.evaluate_report import ReportRequest, check_attention, misplaced_links, read_report_request
from nmt.cli.models import read_models
from nmt.cli.options import SEARCH, number_in, read_alignment_step, read_how
from nmt.cli.outputs import STANDARD, check_outputs, write_report, write_text
from nmt.cli.parsers.evaluate import PROGRAM, TOO_LOW, parser
from nmt.cli.parsers.parser import option_name
from nmt.cli.significance import Resampling, read_resampling
from nmt.cli.slow_sentences import sentences_watched
from nmt.cli.systems import GIVEN_BY, Systems, read_sentences, read_systems, unequal_counts
from nmt.config.schema import AlignmentStep
from nmt.errors import Checking, caught, checked, counted
from nmt.evaluation.comet_scores import check_comet, load_comet
from nmt.evaluation.comparison import Comparison, SentenceScores, compare
from nmt.evaluation.metrics import TOKENIZERS, check_tokenizer, chosen_metrics, is_too_short
from nmt.evaluation.tables import json_object, shown, table
from nmt.evaluation.text_warnings import text_warnings
from nmt.ops.memory import enough_memory

if TYPE_CHECKING:
    import torch

    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.translator import Translator

MEMORY = "lower --beam-size, or shorten the longest lines of --source"
SAMPLES = "lower --resamples or --trials, or test fewer lines"
TOKENIZE = TOKENIZERS[0]
TRANSLATING = (*SEARCH, "replace_unknown", "dictionary", "ensemble", "precision", "shortlist", "output")
# The options that have an effect only with one of others, by argparse's names; "model" is any system that translates
NEEDED = {
    **dict.fromkeys(TRANSLATING, ("model",)),
    "source": ("model", "comet", "report"),
    "device": ("model", "comet", "attention_model"),
    "alignment_step": ("model", "attention_model"),  # and, as `read_alignment_step` says, for some purpose
    "training_text": ("report",),
    "attention_model": ("report",),
    "gold_alignments": ("report", "alignments"),
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to score, how, and where the scores go."""

    systems: Systems
    references: Mapping[Path, Sequence[str]]
    source: Sequence[str]  # empty if there is none
    source_path: Path | None
    how: Mapping[str, Any]  # what the translators are told
    alignment_step: AlignmentStep  # for the page
    metrics: Sequence[str]
    scoring: Mapping[str, Any]  # BLEU's tokenizer, and whether case is ignored
    resampling: Resampling
    comet: Path | None
    device: "torch.device | None"  # for COMET
    fail_below: float | None
    output: str | None
    json: str | None
    report: ReportRequest | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-eval; returns the exit code: 0, 2 after a mistake of the user, or TOO_LOW."""
    return run(PROGRAM, partial(_command, arguments))


def _command(arguments: Sequence[str] | None) -> int:
    options = parser().parse_args(arguments)
    if options.curves is not None:
        draw_curves(checked(read_curves_request(options, unwanted=_options_besides(options, "curves", "output"))))
        return 0
    scores_systems = options.report is not None or any(getattr(options, name) for name in GIVEN_BY)
    alone = set(ABOUT_ALIGNMENTS) - ({"gold_alignments"} if scores_systems else set())
    if any(getattr(options, name) is not None for name in alone):
        unwanted = _options_besides(options, *ABOUT_ALIGNMENTS, "output", "json")
        evaluate_alignments(checked(read_alignments_request(options, unwanted=unwanted)))
        return 0
    return _evaluate(checked(_read_request(options)))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    systems = yield from read_systems(options)
    yield from _contradictions(options, systems)
    how = yield from read_how(vars(options))
    step = yield from read_alignment_step(vars(options), users=("replace_unknown", "report"))
    if "replace_unknown" in how:
        how["alignment_step"] = step
    metrics = yield from _read_metrics(options)
    fail_below = yield from _read_fail_below(options.fail_below)
    resampling = yield from read_resampling(options, systems)
    if options.comet is not None:
        yield from caught(partial(check_comet, options.comet), None)
    computing = {**vars(options), "model": None, "ensemble": None}
    if options.comet is not None and options.device is None:
        computing["device"] = "auto"
    device = (yield from read_models(computing)).device
    source = yield from read_sentences("--source", options.source)
    references = yield from _read_references(options.reference or ())
    others = [*systems.files, ("--source", options.source), ("--dictionary", options.dictionary)]
    others += [("--comet", options.comet), *(("--reference", path) for path in references)]
    report = yield from read_report_request(options, systems)
    others += report.files if report is not None else []
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    outputs["--report"] = None if options.report == STANDARD else options.report
    yield from check_outputs(outputs, others=others)
    files = [(one.option, one.path, one.lines) for one in systems.candidates if one.models is None]
    files += [("--source", options.source, source), *(("--reference", *both) for both in references.items())]
    counts = [(option, path, len(lines)) for option, path, lines in files if lines]
    if report is not None and report.gold_path is not None and report.gold:
        counts.append(("--gold-alignments", report.gold_path, len(report.gold)))
        yield from misplaced_links(report, source, next(iter(references.values()), []))
    yield from unequal_counts(counts)
    return Request(
        systems=systems,
        references=references,
        source=source,
        source_path=options.source,
        how=how,
        alignment_step=step,
        metrics=metrics,
        scoring={"tokenize": options.tokenize or TOKENIZE, "lowercase": options.lowercase},
        resampling=resampling,
        comet=options.comet,
        device=device,
        fail_below=fail_below,
        output=options.output,
        json=options.json,
        report=report,
    )


def _read_metrics(options: argparse.Namespace) -> Checking[list[str]]:
    """Read which metrics to compute, and whether the options about some of them have an effect."""
    metrics = yield from caught(partial(chosen_metrics, options.metrics), list[str]())
    if options.tokenize is not None:
        yield from caught(partial(check_tokenizer, options.tokenize), None)
    if metrics and "bleu" not in metrics:
        left_out = f"BLEU, which --metrics {options.metrics} leaves out"
        if options.fail_below is not None:
            yield f"--fail-below is about {left_out}"
        if options.tokenize is not None and options.report is None:  # whose groups have BLEU and chrF2 always
            yield f"--tokenize has an effect only on {left_out}"
    if options.lowercase and metrics == ["ter"] and options.report is None:
        yield "--lowercase has no effect on TER, which ignores case always"
    return metrics


def _read_references(paths: Sequence[Path]) -> Checking[dict[Path, list[str]]]:
    references = {}
    for path in paths:
        if path in references:
            yield f"--reference {path} is given more than once"
        references[path] = yield from read_sentences("--reference", path)
        if references[path] and not any(line.strip() for line in references[path]):
            yield f"--reference {path}: all lines are empty, so there is nothing to compare with"
    return references


def _read_fail_below(text: str | None) -> Checking[float | None]:
    if text is None:
        return None
    number = number_in(text)
    if number is None or not 0 <= number <= 100:
        yield f"--fail-below {text}: allowed: a BLEU score, a number from 0 to 100"
    return number


def _contradictions(options: argparse.Namespace, systems: Systems) -> Iterator[str]:
    if not options.reference:
        yield "--reference FILE is missing"
    if systems.have_models and not options.hypotheses and not options.source:
        yield f"{'--model' if options.model else '--runs'} needs --source FILE, the text to translate"
    if options.comet is not None and not options.source:
        yield "--comet needs --source FILE, the text that was translated"
    if options.output == STANDARD:
        yield "--output -: standard output has the scores; give a file, or use nmt-translate"
    elif options.output is not None and len(systems.candidates) > 1:
        yield "--output has an effect only with one system: save the translations of several with nmt-translate"
    for name, needed in NEEDED.items():
        has = [systems.have_models if one == "model" else getattr(options, one) is not None for one in needed]
        if getattr(options, name) is not None and not any(has):
            yield f"{option_name(name)} has an effect only with {', or with '.join(map(option_name, needed))}"


def _options_besides(options: argparse.Namespace, *names: str) -> list[str]:
    """The options whose values are not the usual ones, but for those that argparse has under these names."""
    usual = vars(parser().parse_args([]))
    changed = (name for name, value in vars(options).items() if value != usual[name])
    return [option_name(name) for name in changed if name not in names]


def _evaluate(request: Request) -> int:
    with enough_memory(MEMORY):
        translators = checked(_loaded(request))
    comparison = _compared(request, translators)
    numbers = json_object(comparison, **request.scoring)
    write_report(request.json, table(comparison), numbers)
    if request.report is not None:
        from nmt.cli.report_page import write_page  # only here: it imports what everyday scores do not need

        step = request.alignment_step
        write_page(request.report, comparison, **request.scoring, translators=translators, alignment_step=step)
    return TOO_LOW if _told_too_low(request, comparison) else 0


def _compared(request: Request, translators: Mapping[str, "Translator"]) -> Comparison:
    on_gpu = request.device is not None and request.device.type == "cuda"
    comet = load_comet(request.comet, on_gpu=on_gpu) if request.comet is not None else None
    systems = _translated(request, translators)
    if request.output:
        write_text(request.output, "".join(f"{line}\n" for lines in systems.values() for line in lines))
    references = [*request.references.values()]
    for warning in _warnings(request, systems):
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    others = {}
    if comet is not None:
        scores = {name: comet.scores(request.source, lines, references[0]) for name, lines in systems.items()}
        others["comet"] = SentenceScores(measure=comet.measure, scores=scores)
    total = len(systems) * len(references[0])
    with (
        enough_memory(SAMPLES, what=" for the samples"),
        sentences_watched(total, tell=partial(_slow, request, systems)) as watched,
    ):
        return compare(
            systems,
            references,
            source=request.source or None,
            metrics=request.metrics,
            **request.scoring,
            **asdict(request.resampling),
            others=others,
            runs=request.systems.runs,
            watched=watched,
        )


def _loaded(request: Request) -> Checking[dict[str, "Translator"]]:
    """The model of each system that has one, or whose attention is shown. All are loaded and checked before the first
    translates, which may take hours: one may be damaged, or unable to do what the options ask for."""
    candidates = request.systems.candidates
    translators: dict[str, Translator] = {}
    for one in candidates:
        if one.models is not None and (translator := (yield from caught(one.models.load, None))) is not None:
            translators[one.name] = translator
            problems = caught(partial(translator.check, _options(request)), None)
            name = f"{shown(one.name)}: " if len(candidates) > 1 else ""
            yield from (f"{name}{problem}" for problem in problems)
    if request.report is not None:
        if request.report.attention_model is not None:
            shared = yield from caught(request.report.attention_model.load, None)
            translators |= {one.name: shared for one in candidates if one.models is None and shared is not None}
        yield from caught(partial(check_attention, request.report, translators), None)
    return translators


@enough_memory(MEMORY)
def _translated(request: Request, translators: Mapping[str, "Translator"]) -> dict[str, Sequence[str]]:
    """The translations of each system."""
    return {
        one.name: one.lines if one.models is None else _translations(translators[one.name], request, one.name)
        for one in request.systems.candidates
    }


def _options(request: Request) -> "TranslationOptions":
    from nmt.decoding.options import TranslationOptions  # only here: scoring needs no PyTorch

    return TranslationOptions(**request.how)


def _translations(translator: "Translator", request: Request, name: str) -> list[str]:
    translations = translator.translate(request.source, _options(request))
    label = shown(name) if len(request.systems.candidates) > 1 else None
    watched = tqdm(translations, total=len(request.source), desc=label, unit=" sentences", disable=None)
    return [best.text for best, *_ in watched]


def _warnings(request: Request, systems: Mapping[str, Sequence[str]]) -> list[str]:
    references = {str(path): lines for path, lines in request.references.items()}
    warnings = text_warnings(
        _called("hypotheses", systems), _called("references", references), **request.scoring, metrics=request.metrics
    )
    too_short = partial(is_too_short, tokenize=request.scoring["tokenize"])
    if "bleu" in request.metrics and all(map(too_short, references.values())):  # or it is the system that is too short
        warnings += [
            f"no line of the {name} or the references has four words: BLEU is 0 by definition; chrF and TER tell more"
            for name, lines in _called("hypotheses", systems).items()
            if too_short(lines)
        ]
    if request.comet is not None and len(references) > 1:
        warnings.append(f"COMET compares with one reference: here with {next(iter(references))}, the first")
    return warnings


def _called(kind: str, texts: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The texts by what a warning calls them."""
    return {f"{kind} of {name}" if len(texts) > 1 else kind: lines for name, lines in texts.items()}


def _told_too_low(request: Request, comparison: Comparison) -> bool:
    """Whether a system has less BLEU than --fail-below asks for, its mean if there are several runs of it."""
    if request.fail_below is None:
        return False
    bleu = {scored.name: scored.scores["bleu"].score for scored in comparison.systems}
    if comparison.runs:
        bleu = {runs.name: runs.mean["bleu"] for runs in comparison.runs}
    low = {name: score for name, score in bleu.items() if round(score, 6) < request.fail_below}
    for name, score in low.items():
        print(f"{PROGRAM}: {shown(name)}: BLEU {score:.4f} is below {request.fail_below:g}", file=sys.stderr)
    return bool(low)


def _slow(request: Request, systems: Mapping[str, Sequence[str]], index: int) -> str:
    """The warning about a sentence for which TER takes long."""
    number, line = divmod(index, len(next(iter(systems.values()))))
    candidate = request.systems.candidates[number]
    path = candidate.path if candidate.models is None else request.source_path
    which = f"{shown(candidate.name)}, {path}" if len(systems) > 1 else path
    words = len(systems[candidate.name][line].split())
    reference = max(len(lines[line].split()) for lines in request.references.values())
    return (
        f"{PROGRAM}: warning: TER is still at {which}, line {line + 1} ({counted(words, 'word')}, and {reference:,} "
        "in the reference): looking for phrases that were moved takes minutes in a long line, the more so where words "
        "repeat; --metrics bleu,chrf leaves TER out"
    )
