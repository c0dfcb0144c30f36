"""nmt-eval: score a file of translations, or translate with a model and score; or score word alignments; or draw
learning curves.

Wiring only: files → sentences → (translator) → metrics → table or JSON. All mistakes are reported at once, before a
model is loaded.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.evaluate())

import argparse
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.cli.common import enough_memory, run
from nmt.cli.evaluate_alignments import (
    ABOUT_ALIGNMENTS,
    evaluate_alignments,
    read_alignments_request,
)
from nmt.cli.evaluate_curves import draw_curves, read_curves_request
from nmt.cli.models import Models, read_models
from nmt.cli.options import SEARCH, read_alignment_step, read_how, read_whole
from nmt.cli.outputs import STANDARD, check_outputs, write_report, write_text
from nmt.cli.parsers.evaluate import PROGRAM, parser
from nmt.cli.parsers.parser import option_name
from nmt.cli.slow_sentences import sentences_watched
from nmt.errors import Checking, caught, checked
from nmt.evaluation.metrics import TOKENIZERS, check_tokenizer, chosen_metrics, corpus_scores
from nmt.evaluation.report import json_object, table, text_warnings

MEMORY = "lower --beam-size, or shorten the longest lines of --source"
TOKENIZE = TOKENIZERS[0]
# Options that have no effect on a file of translations
MODEL_ONLY = (
    "source",
    *SEARCH,
    "replace_unknown",
    "dictionary",
    "alignment_step",
    "device",
    "ensemble",
    "precision",
    "shortlist",
    "output",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to score, how, and where the scores go."""

    path: Path  # where the lines come from
    lines: Sequence[str]  # hypotheses, or the source for the models
    references: Sequence[str]
    models: Models
    how: Mapping[str, Any]  # what the translator is told
    metrics: Sequence[str]
    scoring: Mapping[str, Any]  # BLEU's tokenizer, and whether case is ignored
    output: str | None
    json: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-eval; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_command, arguments))


def _command(arguments: Sequence[str] | None) -> None:
    options = parser().parse_args(arguments)
    if options.curves is not None:
        draw_curves(checked(read_curves_request(options, unwanted=_given(options, but=("curves", "output")))))
    elif any(getattr(options, name) is not None for name in ABOUT_ALIGNMENTS):
        unwanted = _given(options, but=(*ABOUT_ALIGNMENTS, "output", "json"))
        evaluate_alignments(checked(read_alignments_request(options, unwanted=unwanted)))
    else:
        _evaluate(checked(_read_request(options)))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    yield from _contradictions(options)
    how = yield from read_how(vars(options))
    how["alignment_step"] = yield from read_alignment_step(vars(options), users=("replace_unknown",))
    metrics = yield from caught(partial(chosen_metrics, options.metrics), None)
    if options.tokenize is not None:
        yield from caught(partial(check_tokenizer, options.tokenize), None)
        if metrics is not None and "bleu" not in metrics:
            yield f"--tokenize has an effect only on BLEU, which --metrics {options.metrics} leaves out"
    if options.lowercase and metrics == ["ter"]:
        yield "--lowercase has no effect on TER, which ignores case always"
    models = yield from read_models(vars(options))
    option, path = ("--hypotheses", options.hypotheses) if options.hypotheses else ("--source", options.source)
    others = [*models.files, ("--source", options.source), ("--hypotheses", options.hypotheses)]
    others += [("--reference", options.reference), ("--dictionary", options.dictionary)]
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    yield from check_outputs(outputs, others=others)
    lines = yield from read_whole(option, path, _unread)
    references = yield from read_whole("--reference", options.reference, _unread)
    if lines and references and len(lines) != len(references):
        yield (
            f"{option} {path} has {len(lines)} lines and --reference {options.reference} has {len(references)}: line i "
            "of the one must go with line i of the other"
        )
    return Request(
        path=path,
        lines=lines,
        references=references,
        models=models,
        how=how,
        metrics=metrics or [],
        scoring={"tokenize": options.tokenize or TOKENIZE, "lowercase": options.lowercase},
        output=options.output,
        json=options.json,
    )


def _unread(lines: Iterable[str], *, name: str) -> list[str]:
    del name
    return list(lines)


def _contradictions(options: argparse.Namespace) -> Iterator[str]:
    if options.hypotheses and options.model:
        yield "--hypotheses and --model exclude each other: score a file, or translate with a model and score"
    if not options.hypotheses and not options.model:
        yield "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE"
    if not options.reference:
        yield "--reference FILE is missing"
    if options.model and not options.hypotheses and not options.source:
        yield "--model needs --source FILE, the text to translate"
    if options.output == STANDARD:
        yield "--output -: standard output has the scores; give a file, or use nmt-translate"
    if not options.model:
        for name in MODEL_ONLY:
            if getattr(options, name) is not None:
                yield f"{option_name(name)} has an effect only with --model"


def _given(options: argparse.Namespace, *, but: Collection[str]) -> list[str]:
    """The options on the command line, without those of these names."""
    usual = vars(parser().parse_args([]))
    names = (name for name, value in vars(options).items() if value != usual[name])
    return [option_name(name) for name in names if name not in but]


@enough_memory(MEMORY)
def _translated(request: Request) -> list[str]:
    from nmt.decoding.options import TranslationOptions  # only here: scoring needs no PyTorch

    translations = request.models.load().translate(request.lines, TranslationOptions(**request.how))
    watched = tqdm(translations, total=len(request.lines), unit=" sentences", disable=None)
    return [best.text for best, *_ in watched]


def _evaluate(request: Request) -> None:
    hypotheses, references = _translated(request) if request.models.paths else request.lines, request.references
    if request.output:
        write_text(request.output, "".join(f"{line}\n" for line in hypotheses))
    for warning in text_warnings(hypotheses, references, **request.scoring, metrics=request.metrics):
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    with sentences_watched(len(references), tell=partial(_slow, request, hypotheses)) as begin:
        scores = corpus_scores(hypotheses, references, **request.scoring, metrics=request.metrics, begin=begin)
    numbers = json_object(scores, sentences=len(references), **request.scoring)
    write_report(request.json, table(scores, sentences=len(references)), numbers)


def _slow(request: Request, hypotheses: Sequence[str], index: int) -> str:
    """The warning about a sentence for which TER takes long."""
    words = [len(lines[index].split()) for lines in (hypotheses, request.references)]
    return (
        f"{PROGRAM}: warning: TER is still at {request.path}, line {index + 1} ({words[0]:,} words, and {words[1]:,} "
        "in the reference): looking for phrases that were moved takes minutes in a long line, the more so where words "
        "repeat; --metrics bleu,chrf leaves TER out"
    )
