"""nmt-eval: score files of translations, or translate with models and score; compare systems; write a page.

Wiring only: files → sentences → (translators) → `compare` → table, JSON, page. All mistakes are reported at once,
before a model is loaded; and what the models cannot do, before one of them translates.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.common import watched
from nmt.cli.options import (
    add_alignment_step_option,
    add_computing_options,
    add_model_option,
    add_search_options,
    add_sentence_option,
    add_unknown_word_options,
    line_count,
    search_keys,
    translation_options,
    whole_number,
    without_effect,
)
from nmt.cli.outputs import STANDARD, check_outputs, write_report, write_text
from nmt.cli.parser import Parser, command, option_name
from nmt.errors import InputWarning, collected, counted, refuse

if TYPE_CHECKING:
    from nmt.cli.systems import Candidate
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.translator import Translator

PROGRAM = "nmt-eval"
MEMORY = "lower --beam-size, or shorten the longest lines of --source"
SAMPLES = "lower --resamples, or test fewer lines"

References = Mapping[Path, Sequence[str]]


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Score translations with BLEU, chrF2, chrF2++, TER, accuracy, and CER, with signatures, and "
        "compare systems: by sacreBLEU, on the 0 to 100 scale. nmt-align scores word alignments.",
        epilog="Files are UTF-8 text, one detokenized sentence a line, plain or .gz.",
        usual=(
            *("hypotheses", "model", "source", "reference", "metrics", "tokenize", "lowercase", "json", "report"),
            "output",
        ),
    )
    scored = made.add_argument_group("what is scored: --hypotheses, or --model with --source, or --runs")
    scored.add_argument(
        "--hypotheses",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="translations to score. Several files are systems that are compared with the first one, the baseline; "
        "NAME=FILE gives a system a name",
    )
    add_model_option(
        scored,
        "what translates --source. --model NAME=PATH --model NAME=PATH compares models with different names; those "
        "with the same name work together, as those without names do",
    )
    scored.add_argument(
        "--runs",
        nargs="+",
        action="append",
        metavar="PATH",
        help="seeds of one system, two or more, for the mean and the standard deviation of their scores: files of "
        "translations, or model files or run folders that translate --source. NAME=PATH as the first gives the system "
        "a name; --runs again adds another system",
    )
    scored.add_argument("--source", type=Path, help="text to translate with --model or --runs, and what --report shows")
    scored.add_argument(
        "--reference",
        nargs="+",
        action="extend",
        type=Path,
        help="the right translations, line by line; required. Several files are several right translations of each "
        "line",
    )
    scoring = made.add_argument_group("scoring")
    scoring.add_argument(
        "--metrics",
        metavar="NAMES",
        help="what to compute, with commas between: bleu, chrf, chrf++, ter, accuracy, cer (default: "
        "bleu,chrf,ter). accuracy: lines that equal a reference; cer: edits per 100 characters. TER takes minutes for "
        "a line of a thousand words; bleu,chrf leaves it out",
    )
    scoring.add_argument(
        "--tokenize",
        metavar="NAME",
        help="BLEU's tokenizer: 13a, none, intl, char, zh, ja-mecab, flores200 (default: 13a)",
    )
    scoring.add_argument("--lowercase", action="store_true", help="ignore case; TER always does")
    scoring.add_argument("--json", metavar="FILE", help="write the scores as JSON too; -: instead of the table")
    chance = made.add_argument_group("chance: what a difference of scores is worth")
    chance.add_argument(
        "--intervals",
        action="store_true",
        help="show the bootstrap's mean and the half-width of its 95%% range; several systems have them anyway, for "
        "each is tested against the first one by the paired bootstrap of sacreBLEU, with its seed",
    )
    chance.add_argument(
        "--resamples", type=whole_number(40), metavar="N", help="of the bootstrap, at least 40 (default: 1,000)"
    )
    page = made.add_argument_group("a page to look at")
    page.add_argument(
        "--report",
        metavar="FILE",
        help="write an HTML page that opens without a network: scores with intervals, by length and by rare words, "
        "where systems differ most, and every sentence, with --source if given, and with the attention of --model",
    )
    page.add_argument(
        "--training-text",
        type=Path,
        help="for --report: text of the target language, usually that of training, in which the words of the reference "
        "are counted to tell how rare they are (default: the reference itself)",
    )
    translation = made.add_argument_group("translation, with --model")
    add_search_options(translation)
    add_sentence_option(translation, "lines stay whole, with a warning about several sentences")
    add_unknown_word_options(translation)
    add_alignment_step_option(translation)
    add_computing_options(translation, precision=True, shortlist=True)
    translation.add_argument("--output", metavar="FILE", help="save the translations")
    return made


def _check_files(
    options: argparse.Namespace,
    candidates: Sequence["Candidate"],
    source: Sequence[str],
    references: References,
    problems: list[str],
) -> None:
    """Check that outputs overwrite nothing, and that all texts have equally many lines."""
    read = [file for candidate in candidates for file in candidate.files]
    names = ("source", "dictionary", "training_text")
    read += [*((option_name(name), getattr(options, name)) for name in names)]
    read += [("--reference", path) for path in references]
    outputs = {"standard output": STANDARD, "--output": options.output, "--json": options.json}
    outputs["--report"] = options.report
    check_outputs(outputs, problems, others=read)
    with collected(problems):
        line_count(options.training_text)  # of a pipe mistakes are met later
    counts = [(f"{one.option} {one.paths[0]}", len(one.lines)) for one in candidates]
    counts.append((f"--source {options.source}", len(source)))
    for path, lines in references.items():
        counts.append((f"--reference {path}", len(lines)))
        if lines and not any(line.strip() for line in lines):
            problems.append(f"--reference {path}: all lines are empty, so there is nothing to compare with")
    counts = [one for one in counts if one[1]]  # without models, and what could not be read
    if len({count for _, count in counts}) > 1:
        *most, last = [f"{name} has {counted(count, 'line')}" for name, count in counts]
        problems.append(f"{', '.join(most)} and {last}: line i of all of them must be of the same sentence")


def _contradictions(options: argparse.Namespace, count: int, *, translates: bool) -> list[str]:
    """What does not go together for so many systems; `translates`: whether a model is among them."""
    problems = []
    if not options.reference:
        problems.append("--reference FILE is missing")
    if translates and not options.source:
        problems.append(f"{'--model' if options.model else '--runs'} needs --source FILE, the text to translate")
    if options.output == STANDARD:
        problems.append("--output -: standard output has the scores; give a file, or use nmt-translate")
    elif options.output is not None and count > 1:
        problems.append("--output has an effect only with one system: save translations with nmt-translate")
    if options.report == STANDARD:
        problems.append("--report -: standard output has the scores; give a file")
    others = ("replace_unknown", "dictionary", "ensemble", "precision", "shortlist", "output", "device")
    translating = dict.fromkeys((*search_keys(), *others, "alignment_step", "split_sentences"), ("model",))
    needed = {**translating, "source": ("model", "report"), "training_text": ("report",)}
    return problems + without_effect(vars(options), needed, {"model": translates})


def _read_scoring(
    options: argparse.Namespace, candidates: Sequence["Candidate"], problems: list[str]
) -> dict[str, Any]:
    """The arguments of `compare`: several systems are tested against the first one, but runs are not."""
    from nmt.evaluation.metrics import TOKENIZERS, USUAL, check_tokenizer, chosen_metrics

    scoring: dict[str, Any] = {"tokenize": options.tokenize or TOKENIZERS[0], "lowercase": options.lowercase}
    scoring["metrics"] = USUAL
    if options.metrics is not None:
        with collected(problems):
            scoring["metrics"] = chosen_metrics(options.metrics)
    with collected(problems):
        check_tokenizer(scoring["tokenize"])
    scoring["tested"] = len(candidates) > 1 and not options.runs
    scoring["intervals"] = options.intervals or options.report is not None
    if scoring["tested"] or scoring["intervals"]:
        scoring |= {} if options.resamples is None else {"resamples": options.resamples}
    else:
        problems += without_effect(vars(options), {"resamples": ("intervals",)})
    return scoring


# ------------------------------------------------------------------------------------------------------------- the call


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    from nmt.cli.report_page import with_attention, write_page
    from nmt.cli.systems import read_sentences, read_systems
    from nmt.evaluation.comparison import compare
    from nmt.evaluation.tables import json_object, table
    from nmt.ops.memory import enough_memory

    candidates = read_systems(options, problems)
    translates = any(one.models is not None for one in candidates)
    problems += _contradictions(options, len(candidates), translates=translates)
    how = translation_options(vars(options), problems) if translates else None
    scoring = _read_scoring(options, candidates, problems)
    source = read_sentences("--source", options.source, problems)
    references = {path: read_sentences("--reference", path, problems) for path in options.reference or ()}
    _check_files(options, candidates, source, references, problems)
    refuse(problems)
    with enough_memory(MEMORY):
        translators = _loaded(candidates, how)
        systems: dict[str, Sequence[str]] = {one.name: one.lines for one in candidates}
        attention: dict[str, list[str | None]] = {}
        shown = {name for name, one in translators.items() if options.report and not one.scorer.without_alignments}
        for name, translator in translators.items():
            translations = translator.translate(source, how, alignments=name in shown)
            label = name if len(systems) > 1 else None
            translated = (best for best, *_ in watched(translations, "sentences", total=len(source), label=label))
            if name in shown:
                systems[name], attention[name] = with_attention(source, translated, models=len(shown))
            else:
                systems[name] = [best.text for best in translated]
    if options.output:
        write_text(options.output, "".join(f"{line}\n" for lines in systems.values() for line in lines))
    for warning in _warnings(candidates, systems, references, scoring):
        warnings.warn(warning, InputWarning, stacklevel=1)
    runs: dict[str, list[str]] = {}
    for one in candidates:
        if one.seed_of is not None:
            runs.setdefault(one.seed_of, []).append(one.name)
    with enough_memory(SAMPLES, what=" for the samples"):
        comparison = compare(systems, [*references.values()], source=source or None, runs=runs, **scoring)
    write_report(options.json, table(comparison), json_object(comparison))
    if options.report is not None:
        write_page(options.report, comparison, attention, training_text=options.training_text)


def _loaded(candidates: Sequence["Candidate"], how: "TranslationOptions | None") -> dict[str, "Translator"]:
    """The model of each system that has one. All are loaded and checked before the first translates, which may take
    hours: one may be damaged, or unable to do what the options ask for."""
    problems: list[str] = []
    translators: dict[str, Translator] = {}
    for one in candidates:
        if one.models is None or how is None:
            continue
        with collected(problems):
            translators[one.name] = one.models.load()
            with collected(problems, of=one.name if len(candidates) > 1 else ""):
                translators[one.name].check(how)
    refuse(problems)
    return translators


def _warnings(
    candidates: Sequence["Candidate"],
    systems: Mapping[str, Sequence[str]],
    references: References,
    scoring: Mapping[str, Any],
) -> list[str]:
    from nmt.evaluation.text_warnings import text_warnings

    hypotheses, right = (
        {f"{what} of {name}" if len(texts) > 1 else what: lines for name, lines in texts.items()}
        for what, texts in (("hypotheses", systems), ("references", references))
    )
    form = {name: scoring[name] for name in ("tokenize", "lowercase", "metrics")}
    found = text_warnings(hypotheses, right, **form)
    for one, other in combinations([one.name for one in candidates if one.seed_of is not None], 2):
        if systems[one] == systems[other]:
            found.append(f"{one} and {other} are identical, as two seeds hardly ever are: is it the same run?")
    return found
