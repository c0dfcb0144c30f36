"""nmt-eval: score a file of translations, or translate with a model and score; or score word alignments.

Wiring only: files → sentences → (translator) → metrics → table or JSON. Everything that can be wrong with what was
given is reported before a model is loaded, and all of it at once.
"""

import sys

if __name__ == "__main__":  # before what takes seconds to import, so that Ctrl-C is answered meanwhile
    from nmt.cli import start

    sys.exit(start.evaluate())

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.cli.alignment_scores import about_alignments, add_alignment_score_options, evaluate_alignments
from nmt.cli.common import run
from nmt.cli.memory import enough_memory, within_memory
from nmt.cli.models import add_model_option, model_files, named
from nmt.cli.options import (
    SEARCH,
    STANDARD,
    add_device_option,
    add_precision_option,
    add_search_options,
    add_shortlist_option,
    add_unknown_word_options,
    check_output,
    check_shortlist,
    collect,
    device_option,
    opened_for_writing,
    option_name,
    precision_option,
    search_options,
    unknown_word_options,
)
from nmt.cli.slow_sentences import sentences_watched
from nmt.data.corpus import read_lines
from nmt.errors import UserError
from nmt.evaluation.metrics import METRICS, TOKENIZERS, check_tokenizer, chosen_metrics, corpus_scores
from nmt.evaluation.report import json_object, table, text_warnings

TOKENIZE = "13a"
MODEL_ONLY = (
    "source",
    *SEARCH,
    "replace_unknown",
    "dictionary",
    "device",
    "precision",
    "shortlist",
    "output",
)  # options that say how to translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-eval; returns the exit code: 0, or 2 when something given was wrong."""
    given = _parser().parse_args(arguments)
    if about_alignments(given):
        return run("nmt-eval", lambda: evaluate_alignments(given, unwanted=_about_translations(given)))
    return run("nmt-eval", lambda: _evaluate(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-eval",
        allow_abbrev=False,
        description="Score translations with BLEU, chrF2 and TER by sacreBLEU, on the 0 to 100 scale, with signatures; "
        "or word alignments, with precision, recall and alignment error rate.",
        epilog="Files are UTF-8 text, one detokenised sentence a line, plain or .gz.",
    )
    scored = parser.add_argument_group("what is scored: --hypotheses, or --model with --source")
    scored.add_argument("--hypotheses", type=Path, metavar="FILE", help="translations to score")
    add_model_option(scored, "what translates --source")
    scored.add_argument("--source", type=Path, metavar="FILE", help="text to translate")
    scored.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="the right translations, line by line; required for a score of translations",
    )

    scoring = parser.add_argument_group("scoring")
    scoring.add_argument(
        "--metrics",
        default=",".join(METRICS),
        metavar="NAMES",
        help=f"what to compute, with commas between: {', '.join(METRICS)} (default: all). TER looks for phrases that "
        "were moved and takes minutes for a line of a thousand words; bleu,chrf leaves it out",
    )
    scoring.add_argument(
        "--tokenize", metavar="NAME", help=f"BLEU's tokeniser: {', '.join(TOKENIZERS)} (default: {TOKENIZE})"
    )
    scoring.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF; TER always does")
    scoring.add_argument("--json", metavar="FILE", help="write the scores as JSON too; -: instead of the table")

    translation = parser.add_argument_group("translation, with --model")
    add_search_options(translation)
    add_unknown_word_options(translation)
    add_device_option(translation)
    add_precision_option(translation)
    add_shortlist_option(translation)
    translation.add_argument("--output", metavar="FILE", help="save the translations, or the combined alignments")

    add_alignment_score_options(parser.add_argument_group("word alignments, instead of translations"))
    return parser


def _evaluate(given: argparse.Namespace) -> None:
    """Check, read, translate if asked to, score and report."""
    problems = list(_contradictions(given))
    how = {**search_options(given, problems), **unknown_word_options(given, problems)}
    metrics = _metrics(given, problems)
    models = model_files(given, problems)
    device = device_option(given, problems) if given.model else None
    loading = {"device": device, "precision": precision_option(given, problems), "shortlist": given.shortlist}
    check_shortlist(given, problems)
    _check_outputs(given, models, problems)
    text, references = _read_both(given, problems)
    if problems:
        raise UserError(*problems)

    hypotheses = _translated(text, models, how, loading) if models else text
    if given.output:
        _write(given.output, "".join(f"{line}\n" for line in hypotheses))
    scoring = {"tokenize": given.tokenize or TOKENIZE, "lowercase": given.lowercase}
    for warning in text_warnings(hypotheses, references, **scoring, metrics=metrics):
        print(f"nmt-eval: warning: {warning}", file=sys.stderr)
    with sentences_watched(len(references), tell=partial(_slow, given, hypotheses, references)) as begin:
        scores = corpus_scores(hypotheses, references, **scoring, metrics=metrics, begin=begin)
    as_json = json.dumps(json_object(scores, sentences=len(references), **scoring), indent=2)
    if given.json != STANDARD:
        _write(STANDARD, f"{table(scores, sentences=len(references))}\n")
    if given.json is not None:
        _write(given.json, f"{as_json}\n")


def _slow(given: argparse.Namespace, hypotheses: Sequence[str], references: Sequence[str], index: int) -> str:
    """What to say of a sentence that takes TER long."""
    words = [len(lines[index].split()) for lines in (hypotheses, references)]
    return (
        f"nmt-eval: warning: TER is still at {given.hypotheses or given.source}, line {index + 1} ({words[0]:,} words, "
        f"and {words[1]:,} in the reference): looking for phrases that were moved takes minutes in a long line, the "
        "more so where words repeat; --metrics bleu,chrf leaves TER out"
    )


def _contradictions(given: argparse.Namespace) -> Iterator[str]:
    """Find options that are missing, or that do not go together."""
    if given.hypotheses and given.model:
        yield "--hypotheses and --model exclude each other: score a file, or translate with a model and score"
    if not given.hypotheses and not given.model:
        yield "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE"
    if not given.reference:
        yield "--reference FILE is missing"
    if given.model and not given.hypotheses and not given.source:
        yield "--model needs --source FILE, the text to translate"
    if given.output == STANDARD:
        yield "--output -: standard output has the scores; give a file, or use nmt-translate"
    if not given.model:
        for name in MODEL_ONLY:
            if getattr(given, name) is not None:
                yield f"{option_name(name)} has an effect only with --model"


def _about_translations(given: argparse.Namespace) -> list[str]:
    """The options that were given and that only translations have."""
    names = ["hypotheses", "model", "reference", "tokenize", *(name for name in MODEL_ONLY if name != "output")]
    options = [option_name(name) for name in names if getattr(given, name) is not None]
    options += ["--metrics"] if given.metrics != ",".join(METRICS) else []
    return options + (["--lowercase"] if given.lowercase else [])


def _metrics(given: argparse.Namespace, problems: list[str]) -> list[str]:
    """The metrics to compute; options without effect on them are added to `problems`."""
    metrics = collect(problems, partial(chosen_metrics, given.metrics))
    if given.tokenize is not None:
        collect(problems, partial(check_tokenizer, given.tokenize))
    if metrics is None:
        return []
    if given.tokenize is not None and "bleu" not in metrics:
        problems.append(f"--tokenize has an effect only on BLEU, which --metrics {given.metrics} leaves out")
    if given.lowercase and metrics == ["ter"]:
        problems.append("--lowercase has no effect on TER, which ignores case always")
    return metrics


def _check_outputs(given: argparse.Namespace, models: list[Path], problems: list[str]) -> None:
    """Check that the files to write can be written, and overwrite neither what is read nor each other."""
    others = {**named(models), "--source": given.source, "--hypotheses": given.hypotheses}
    others |= {"--reference": given.reference, "--dictionary": given.dictionary, "--shortlist": given.shortlist}
    collect(problems, partial(check_output, "--json", STANDARD, others={}))  # scores always go to standard output
    for name in ("output", "json"):
        output = getattr(given, name)
        if output is not None and output != STANDARD:
            collect(problems, partial(check_output, f"--{name}", output, others=others))
            others = {**others, f"--{name}": Path(output)}


def _read_both(given: argparse.Namespace, problems: list[str]) -> tuple[list[str], list[str]]:
    """Read the hypotheses or the source, and the references; they must have equally many lines, at least one."""
    option, path = ("--hypotheses", given.hypotheses) if given.hypotheses else ("--source", given.source)
    lines = _read(option, path, problems)
    references = _read("--reference", given.reference, problems)
    if lines and references and len(lines) != len(references):
        problems.append(
            f"{option} {path} has {len(lines)} lines and --reference {given.reference} has {len(references)}: line i "
            "of the one must go with line i of the other"
        )
    return lines, references


def _read(option: str, path: Path | None, problems: list[str]) -> list[str]:
    """Read a file's lines; what is wrong with it is added to `problems`, and there are no lines."""
    if path is None:
        return []
    try:
        lines = list(read_lines(path))
    except UserError as error:
        problems.extend(f"{option}: {message}" for message in error.messages)
        return []
    if not lines:
        problems.append(f"{option} {path}: the file is empty")
    return lines


def _translated(source: list[str], models: list[Path], how: dict[str, Any], loading: dict[str, Any]) -> list[str]:
    """Translate each line to the text of its best hypothesis, with a progress bar where a person watches."""
    from nmt.decoding.translator import Translator  # only here, as in model_files

    advice = "lower --beam-size, or shorten the longest lines of --source"
    with enough_memory(advice):
        translator = Translator.load(models, **loading)
    translations = within_memory(translator.translate(source, **how), advice=advice)
    return [best.text for best, *_ in tqdm(translations, total=len(source), unit=" sentences", disable=None)]


def _write(name: str, text: str) -> None:
    with opened_for_writing(name) as file:
        file.write(text.encode("utf-8"))
