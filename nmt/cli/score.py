"""nmt-score: the log-probability that a model gives to translations it is shown, one number for each pair of lines.

Wiring only: two files → pairs of lines → forced decoding → numbers, and the corpus perplexity. What was given is
checked before a model is loaded, and every mistake is reported at once.
"""

import sys

if __name__ == "__main__":  # before what takes seconds to import, so that Ctrl-C is answered meanwhile
    from nmt.cli import start

    sys.exit(start.score())

import argparse
import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from nmt.cli.alignments import (
    add_alignment_options,
    alignments_written,
    check_alignment_outputs,
    wants_alignments,
)
from nmt.cli.common import run
from nmt.cli.memory import enough_memory, within_memory
from nmt.cli.models import add_model_option, model_files, named
from nmt.cli.options import (
    STANDARD,
    add_device_option,
    check_output,
    collect,
    decoding_value,
    device_option,
    opened_for_writing,
)
from nmt.data.corpus import check_corpora, read_pairs
from nmt.decoding.scoring import score
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.ops.loss import perplexity

MEMORY = "shorten the longest lines, or score on another machine"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-score; returns the exit code: 0, or 2 when something given was wrong."""
    given = _parser().parse_args(arguments)
    return run("nmt-score", lambda: _score(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-score",
        allow_abbrev=False,
        description="Score given translations: for each pair of lines log p(target | source) in nats, summed over the "
        "target's pieces and its end; one number a line, in order. The perplexity of all goes to standard error.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz. Two blank lines score 0 and count no token; a "
        "blank target alone scores the end of the sentence, and of a blank source alone the model reads nothing. A "
        "line of any length is scored as a whole.",
    )
    add_model_option(parser, "what scores, required")
    parser.add_argument("--source", type=Path, metavar="FILE", help="text that was translated; required")
    parser.add_argument("--target", type=Path, metavar="FILE", help="its translations, line by line; required")
    parser.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where scores go; -: standard output (default)"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write sentences, tokens, log_probability and perplexity as JSON, instead of the line on standard error; "
        "-: to standard output",
    )
    parser.add_argument(
        "--normalise", action="store_true", help="divide each log-probability by its tokens, the end counted"
    )
    parser.add_argument(
        "--batch-tokens",
        metavar="TOKENS",
        help="sentences × longest source of a batch; it changes speed and memory, no score (default: from the model)",
    )
    add_device_option(parser)
    add_alignment_options(parser.add_argument_group("alignments, from the attention of the model"))
    return parser


def _score(given: argparse.Namespace) -> None:
    """Check, load, score."""
    problems: list[str] = []
    sentences = _pairs(given, problems)
    models = model_files(given, problems)
    device = device_option(given, problems)
    batch_tokens = None
    if given.batch_tokens is not None:
        check = partial(decoding_value, "--batch-tokens", given.batch_tokens, key="batch_tokens")
        batch_tokens = collect(problems, check)
    _check_outputs(given, models, problems)
    if not models or device is None or problems:
        raise UserError(*problems)

    with enough_memory(MEMORY):
        translator = Translator.load(models, device=device)
    scores = score(
        translator.model,
        translator.vocabularies,
        read_pairs(given.source, given.target),
        batch_tokens=batch_tokens or translator.decoding.batch_tokens,
        alignments=wants_alignments(given),
    )
    log_probability, tokens = 0.0, 0
    with opened_for_writing(given.output) as file, alignments_written(given, program="nmt-score") as write_alignments:
        for scored in tqdm(
            within_memory(scores, advice=MEMORY), total=sentences, unit=" lines", disable=not sys.stderr.isatty()
        ):
            log_probability += scored.log_probability
            tokens += scored.tokens
            shown = scored.log_probability / max(scored.tokens, 1) if given.normalise else scored.log_probability
            file.write(f"{shown:.4f}\n".encode())
            write_alignments([] if scored.alignment is None else [scored.alignment])
    _report(given, sentences, tokens, log_probability)


def _report(given: argparse.Namespace, sentences: int, tokens: int, log_probability: float) -> None:
    """Write what was found over all lines; two files of blank lines have no perplexity."""
    found = perplexity(-log_probability / tokens) if tokens else None
    if given.json is None:
        shown = "no perplexity" if found is None else f"perplexity {found:.4f}"
        print(f"nmt-score: {shown}, {sentences:,} sentences, {tokens:,} tokens", file=sys.stderr)
        return
    numbers = {
        "sentences": sentences,
        "tokens": tokens,
        "log_probability": round(log_probability, 6),
        "perplexity": None if found is None or math.isinf(found) else float(f"{found:.8g}"),
    }
    with opened_for_writing(given.json) as file:
        file.write(f"{json.dumps(numbers, indent=2)}\n".encode())


def _pairs(given: argparse.Namespace, problems: list[str]) -> int:
    """The number of pairs of lines; what is missing, or wrong with the files, is added to `problems`."""
    needed = {
        "--model PATH": (given.model, "a model file, or the folder of a run"),
        "--source FILE": (given.source, "the text that was translated"),
        "--target FILE": (given.target, "its translation"),
    }
    problems.extend(f"{option} is missing: {meaning}" for option, (value, meaning) in needed.items() if value is None)
    if given.source is None or given.target is None:
        return 0
    (sentences,) = collect(problems, lambda: check_corpora([(given.source, given.target)])) or [0]
    return sentences


def _check_outputs(given: argparse.Namespace, models: list[Path], problems: list[str]) -> None:
    """Check that what is to be written can be, and overwrites neither what is read nor each other."""
    others: dict[str, Path | None] = {**named(models), "--source": given.source, "--target": given.target}
    if given.output == given.json == STANDARD:
        problems.append("--json -: standard output has the scores; give a file, or --output FILE")
    for name in ("output", "json"):
        output = getattr(given, name)
        if output is not None:
            collect(problems, partial(check_output, f"--{name}", output, others=others))
            if output != STANDARD:
                others = {**others, f"--{name}": Path(output)}
    check_alignment_outputs(given, problems, others=others)
