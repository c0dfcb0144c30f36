"""nmt-score: the log-probability that a model gives to translations it is shown, one number for each pair of lines.

Wiring only: two files → pairs of lines → forced decoding → numbers, and the corpus perplexity. All mistakes are
reported at once, before a model is loaded.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.common import watched
from nmt.cli.options import (
    add_alignment_options,
    add_computing_options,
    add_model_option,
    missing,
    read_parallel,
    translation_options,
)
from nmt.cli.outputs import STANDARD, check_outputs, opened_for_writing, write_text
from nmt.cli.parser import Parser, command
from nmt.errors import counted, refuse

if TYPE_CHECKING:
    from nmt.cli.alignment_outputs import AlignmentOutputs
    from nmt.cli.models import Models
    from nmt.decoding.options import TranslationOptions

PROGRAM = "nmt-score"
DECIMALS = 4  # of a score
MEMORY = "shorten the longest lines, or score on another machine"


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Score given translations: for each pair of lines log p(target | source) in nats, summed over the "
        "target's pieces and its end; one number a line, in order. The perplexity of all goes to standard error.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz. Two blank lines score 0 and count no token; a "
        "blank target alone scores the end of the sentence, and of a blank source alone the model reads nothing. A "
        "line of any length is scored as a whole.",
        usual=("model", "source", "target", "output", "json", "normalize", "device", "alignments"),
    )
    add_model_option(made, "what scores, required")
    made.add_argument("--source", type=Path, help="text that was translated; required")
    made.add_argument("--target", type=Path, help="its translations, line by line; required")
    made.add_argument(
        "--contrast",
        type=Path,
        help="wrong translations, line by line: write two scores a line, with a tab between them, and how often that "
        "of --target is higher (accuracy), with its 95%% interval, and the ties, which do not count as right",
    )
    made.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where scores go; -: standard output (default)"
    )
    made.add_argument(
        "--json",
        metavar="FILE",
        help="write sentences, tokens, log_probability and perplexity (with --contrast: pairs, right, ties, accuracy "
        "and interval) as JSON, instead of the line on standard error; -: to standard output",
    )
    made.add_argument(
        "--normalize", action="store_true", help="divide each log-probability by its tokens, the end counted"
    )
    add_computing_options(made)
    attention = made.add_argument_group("alignments, from the attention of the model")
    add_alignment_options(attention)
    return made


def _read_request(
    options: argparse.Namespace, problems: list[str]
) -> tuple["Models", int, "TranslationOptions", "AlignmentOutputs"]:
    """What scores, how many sentences, with which alignments, and where these go."""
    from nmt.cli.alignment_outputs import AlignmentOutputs
    from nmt.cli.models import read_models

    needed = {
        "--model PATH": (options.model, "a model file, or the folder of a run"),
        "--source FILE": (options.source, "the text that was translated"),
        "--target FILE": (options.target, "its translation"),
    }
    problems += missing(needed)
    translations = [path for path in (options.target, options.contrast) if path is not None]
    sources = [] if options.source is None else [options.source] * len(translations)
    _, (sentences, *_) = read_parallel(sources, translations, problems)
    models = read_models(vars(options), problems)
    alignments = AlignmentOutputs(options.alignments, options.soft_alignments, options.plot_alignments)
    if alignments and options.contrast is not None:
        problems.append("alignments do not go with --contrast; leave one of them out")
    how = translation_options(vars(options), problems, alignments=bool(alignments))
    if options.output == options.json == STANDARD:
        problems.append("--json -: standard output has the scores; give a file, or --output FILE")
    names = ("source", "target", "contrast")
    read = [*models.files, *((f"--{name}", getattr(options, name)) for name in names)]
    outputs = {"--output": options.output, "--json": options.json}
    taken = check_outputs(outputs, problems, others=read)
    alignments.check(problems, others=taken)
    refuse(problems)
    return models, sentences, how, alignments


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    from nmt.data.corpus import read_lines
    from nmt.decoding.doubts import Doubts
    from nmt.decoding.scoring import score
    from nmt.evaluation.measurements import Contrast
    from nmt.ops.memory import enough_memory
    from nmt.text_form import form_of

    models, sentences, how, outputs = _read_request(options, problems)
    translations = [path for path in (options.target, options.contrast) if path is not None]
    log_probability, tokens, right, ties = 0.0, 0, 0, 0
    with enough_memory(MEMORY):
        translator = models.load()
        Doubts(form=form_of(read_lines(options.source), name=str(options.source))).warn(translator.source_form)
        lines = zip(read_lines(options.source), *map(read_lines, translations), strict=True)
        scores = score(translator, ((source, target) for source, *targets in lines for target in targets), how)
        by_line = zip(*[scores] * len(translations), strict=True)
        with (
            opened_for_writing(options.output) as file,
            outputs.opened() as write_alignments,
        ):
            for of_line in watched(by_line, "lines", total=sentences):
                log_probability += of_line[0].log_probability
                tokens += of_line[0].tokens
                divisors = [max(scored.tokens, 1) if options.normalize else 1 for scored in of_line]
                each = zip(of_line, divisors, strict=True)
                written = [round(scored.log_probability / divisor, DECIMALS) for scored, divisor in each]
                right, ties = right + (written[0] > written[-1]), ties + (written[0] == written[-1])
                file.write(("\t".join(f"{number:.{DECIMALS}f}" for number in written) + "\n").encode())
                write_alignments([scored.alignment for scored in of_line if scored.alignment is not None], [])
    if options.contrast is None:
        shown, numbers = _perplexity(sentences, tokens, log_probability)
    else:
        contrast = Contrast(sentences, right, ties)
        shown, numbers = str(contrast), contrast.numbers()
    if options.json is None:
        print(f"{PROGRAM}: {shown}", file=sys.stderr)
    else:
        write_text(options.json, f"{json.dumps(numbers, indent=2)}\n")


def _perplexity(sentences: int, tokens: int, log_probability: float) -> tuple[str, dict[str, float | None]]:
    """The totals, as a line and as numbers; two files of blank lines have no perplexity."""
    from nmt.evaluation.measurements import perplexity

    overall = perplexity(-log_probability / tokens) if tokens else None
    shown = "no perplexity" if overall is None else f"perplexity {overall:.4f}"
    return f"{shown}, {counted(sentences, 'sentence')}, {counted(tokens, 'token')}", {
        "sentences": sentences,
        "tokens": tokens,
        "log_probability": round(log_probability, 6),
        "perplexity": None if overall is None or math.isinf(overall) else float(f"{overall:.8g}"),
    }
