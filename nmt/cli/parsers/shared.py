"""The options that several commands have, in groups."""

import argparse
from pathlib import Path
from typing import Final

from nmt.cli.parsers.parser import option_names
from nmt.cli.parsers.schema_keys import Key, keys_of
from nmt.devices import DEVICES

END_LINKS: Final = "last"  # unless told otherwise
PRECISIONS = ("float32", "bfloat16", "int8")


def add_model_option(group: argparse._ActionsContainer, what: str) -> None:
    """Add --model and --ensemble; `what` the model does begins the help text."""
    group.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help=f"{what}: a model file, or a run folder (its best model). Given several times, the models work together "
        "as an ensemble (see --ensemble); they need the same vocabularies, and the first one's configuration gives the "
        "defaults",
    )
    group.add_argument(
        "--ensemble",
        metavar="MEAN",
        help="with several models: the mean that they give each word: log-probabilities (geometric, not normalized), "
        "logits (the same, normalized), or probabilities (arithmetic) (default: log-probabilities)",
    )


def add_device_option(group: argparse._ActionsContainer) -> None:
    """Add --device."""
    group.add_argument("--device", metavar="NAME", help=f"where to compute: {', '.join(DEVICES)} (default: auto)")


def add_precision_option(group: argparse._ActionsContainer) -> None:
    """Add --precision, which makes translation faster and a little different."""
    group.add_argument(
        "--precision",
        metavar="NAME",
        help=f"what weights are rounded to: {', '.join(PRECISIONS)}; int8, for the output layer (decoder: bfloat16), "
        f"is the fastest on a CPU, and changes a translation here and there (default: {PRECISIONS[0]})",
    )


def add_speed_options(group: argparse._ActionsContainer) -> None:
    """Add --precision and --shortlist, which make translation faster and a little different."""
    add_precision_option(group)
    group.add_argument(
        "--shortlist",
        type=Path,
        metavar="FILE",
        help="write only the pieces that may translate those of a sentence, as nmt-shortlist has learned them, and "
        "those of its prefix and constraints: fewer to choose among, and a little different (default: all pieces)",
    )


def add_search_options(group: argparse._ActionsContainer) -> None:
    """Add the options of the search; `options.read_how` checks their values, not argparse."""
    for name, key in keys_of("DecodingConfig").items():
        group.add_argument(
            *option_names(name),
            dest=name,
            metavar="TRUE|FALSE" if key.is_boolean else name.rpartition("_")[2].upper(),
            nargs="?" if key.is_boolean else None,
            const="true" if key.is_boolean else None,
            help=f"{_described(key)} (default: from the model)",
        )


def add_sampling_options(group: argparse._ActionsContainer) -> None:
    """Add --sample and the options that go with it."""
    group.add_argument(
        "--sample",
        action="store_true",
        help="draw translations at random instead of searching for the best; --n-best K draws K of each line, "
        "independently, and sorts them by score",
    )
    for name, key in keys_of("SamplingConfig").items():
        group.add_argument(
            *option_names(name),
            metavar=name.rpartition("_")[2].upper(),
            help=f"with --sample: {_described(key)} (default: {'off' if key.default == 'None' else key.default})",
        )


def _described(key: Key) -> str:
    """The description as a help text begins."""
    text = key.description.rstrip(".")
    return f"{text[0].lower()}{text[1:]}"


def add_unknown_word_options(group: argparse._ActionsContainer) -> None:
    """Add --replace-unknown and --dictionary."""
    group.add_argument(
        "--replace-unknown",
        action="store_true",
        default=None,
        help="replace each unknown word by the source word that it attends to most: its entry in --dictionary, or "
        "the word as it stands in the source; not for a model without attention",
    )
    group.add_argument(
        "--dictionary",
        type=Path,
        metavar="FILE",
        help="for --replace-unknown: lines of source word, translation and, optionally, a weight, separated by tabs or "
        "spaces; of several entries for a word, the one with the largest weight counts, the first of equal ones",
    )


def add_alignment_step_option(group: argparse._ActionsContainer) -> None:
    """Add --alignment-step."""
    group.add_argument(
        "--alignment-step",
        metavar="STEP",
        help="whose attention says which source word a word stands for: this, the step that writes the word, or next, "
        "the step after it, which reads the word (default: this)",
    )


def add_alignment_options(group: argparse._ActionsContainer) -> None:
    """Add the options whose values become `alignment_outputs.AlignmentOutputs`."""
    group.add_argument(
        "--alignments",
        metavar="FILE",
        help="write word alignments in Pharaoh format, a line for each line of the output: for each word of the "
        "translation the source word it attends to most, as source-target, counted from 0. Words are what stands "
        "between spaces",
    )
    group.add_argument(
        "--end-links",
        metavar="RULE",
        help="for --alignments: where a word attends to the end of the source more than to any word, link it to the "
        "last source word (last), to none (none), or to the word it attends to most all the same (best) (default: "
        f"{END_LINKS})",
    )
    group.add_argument(
        "--soft-alignments",
        metavar="FILE",
        help="write the attention between words, a line of JSON for each line of the output: source, target (lists of "
        "words, the source's with </s> for its end) and attention (a row for each target word, a column for each "
        "source word and the end)",
    )
    group.add_argument(
        "--plot-alignments",
        type=Path,
        metavar="FOLDER",
        help="draw the attention between words: 000001.png for the first line (with its best translation, where there "
        "are several), and so on; none for a blank line. Needs matplotlib",
    )
