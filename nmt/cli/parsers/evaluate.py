"""The options of nmt-eval."""

import argparse
from pathlib import Path

from nmt.cli.parsers.parser import Parser
from nmt.cli.parsers.shared import (
    add_alignment_step_option,
    add_device_option,
    add_model_option,
    add_search_options,
    add_speed_options,
    add_unknown_word_options,
)
from nmt.evaluation.alignments import SYMMETRISATIONS

PROGRAM = "nmt-eval"
METRICS = ("bleu", "chrf", "chrf++", "ter")
USUAL = ("bleu", "chrf", "ter")
METHODS = ("bootstrap", "randomization")
RESAMPLES, TRIALS = 1_000, 10_000
FEWEST_RESAMPLES, FEWEST_TRIALS = 40, 20
TOO_LOW = 3  # the exit code when --fail-below says so
TOKENIZERS = ("13a", "none", "intl", "char", "zh", "ja-mecab", "flores200")


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Score translations with BLEU, chrF2, chrF2++, TER, and COMET, with signatures, and compare "
        "systems: by sacreBLEU, on the 0 to 100 scale; or score word alignments, with precision, recall and alignment "
        "error rate; or draw learning curves of trainings.",
        epilog="Files are UTF-8 text, one detokenized sentence a line, plain or .gz. Exit codes: 0; 2 for a mistake in "
        f"the options or files; {TOO_LOW} if BLEU is less than --fail-below.",
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
        "a name; --runs again adds another system, whose mean is tested against that of the first",
    )
    scored.add_argument(
        "--source",
        type=Path,
        metavar="FILE",
        help="text to translate with --model or --runs; what --comet reads, and what --report shows",
    )
    scored.add_argument(
        "--reference",
        nargs="+",
        action="extend",
        type=Path,
        metavar="FILE",
        help="the right translations, line by line; required for a score of translations. Several files are several "
        "right translations of each line",
    )

    scoring = made.add_argument_group("scoring")
    scoring.add_argument(
        "--metrics",
        default=",".join(USUAL),
        metavar="NAMES",
        help=f"what to compute, with commas between: {', '.join(METRICS)} (default: {','.join(USUAL)}). TER looks for "
        "phrases that were moved and takes minutes for a line of a thousand words; bleu,chrf leaves it out",
    )
    scoring.add_argument(
        "--tokenize", metavar="NAME", help=f"BLEU's tokenizer: {', '.join(TOKENIZERS)} (default: {TOKENIZERS[0]})"
    )
    scoring.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF; TER always does")
    scoring.add_argument(
        "--comet",
        type=Path,
        metavar="FILE",
        help="compute COMET, too, with this model file, such as checkpoints/model.ckpt in the folder of a download; "
        "nothing is downloaded here. It needs --source and unbabel-comet: pip install 'nmt-toolkit[comet]'",
    )
    scoring.add_argument("--json", metavar="FILE", help="write the scores as JSON too; -: instead of the table")
    scoring.add_argument(
        "--fail-below",
        metavar="BLEU",
        help=f"end with the exit code {TOO_LOW} if a system has less BLEU (the mean, with --runs)",
    )

    chance = made.add_argument_group("chance: what a difference of scores is worth")
    chance.add_argument(
        "--significance",
        metavar="METHODS",
        help="how systems are tested against the first one, with commas between: "
        f"{', '.join(METHODS)}, the paired tests of sacreBLEU, with its seed; none (default: {METHODS[0]})",
    )
    chance.add_argument(
        "--intervals",
        action="store_true",
        help="show the bootstrap's mean and the half-width of its 95%% range, as the test by bootstrap does",
    )
    chance.add_argument(
        "--resamples", metavar="N", help=f"of the bootstrap, at least {FEWEST_RESAMPLES} (default: {RESAMPLES:,})"
    )
    chance.add_argument(
        "--trials", metavar="N", help=f"of approximate randomization, at least {FEWEST_TRIALS} (default: {TRIALS:,})"
    )

    _add_report_options(made.add_argument_group("a page to look at"))

    translation = made.add_argument_group("translation, with --model")
    add_search_options(translation)
    add_unknown_word_options(translation)
    add_alignment_step_option(translation)
    add_device_option(translation)
    add_speed_options(translation)
    translation.add_argument(
        "--output", metavar="FILE", help="save the translations, the combined alignments or the curves"
    )

    _add_alignment_score_options(made.add_argument_group("word alignments, instead of translations"))
    curves = made.add_argument_group("learning curves, instead of scores")
    curves.add_argument(
        "--curves",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="run folders of nmt-train; their loss, perplexity and BLEU, by update and by minute, are drawn into "
        "--output FILE, a .png or .svg (needs matplotlib, the extra plots)",
    )
    return made


def _add_report_options(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--report",
        metavar="FILE",
        help="write an HTML page that opens without a network: scores with intervals, by length and by rare words, "
        "where systems differ most, and every sentence, with --source and the attention of the models if given",
    )
    group.add_argument(
        "--training-text",
        type=Path,
        metavar="FILE",
        help="for --report: text of the target language, usually that of training, in which the words of the reference "
        "are counted to tell how rare they are (default: the reference itself)",
    )
    group.add_argument(
        "--attention-model",
        type=Path,
        metavar="PATH",
        help="for --report: the model whose attention is shown for translations that come from files (those that a "
        "model makes here show its own): what it looks at in --source when it is made to write them",
    )


def _add_alignment_score_options(group: argparse._ActionsContainer) -> None:
    """Add the options for alignments alone; --output and --json serve translations, too."""
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
        help="the right alignments: s-t is a sure link, spt (or s?t) a possible one, counted from 0; with --report, "
        "those of --source and --reference, with which the attention of the models is compared",
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
