"""nmt-shortlist: which target pieces may translate which source pieces, learned from parallel text, for faster search.

Wiring only: parallel files → pairs of lines → shortlist → file. All mistakes are reported at once, before a model is
loaded.
"""

import argparse
import math
import sys
from itertools import islice
from pathlib import Path

from nmt.cli.common import watched
from nmt.cli.options import missing, parallel_inputs, read_parallel, whole_number
from nmt.cli.outputs import check_outputs, failing_as
from nmt.cli.parser import Parser, command
from nmt.errors import refuse

PROGRAM = "nmt-shortlist"
TRANSLATIONS, MOST_FREQUENT = 100, 100
MOST_PAIRS = 200_000  # at most; of more pairs every second, third, … is read, which bounds memory and time


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Learn from parallel text which target pieces may translate which source pieces, by IBM Model 1, "
        "for the --shortlist of nmt-translate and nmt-eval: they then choose among hundreds of pieces, not among all.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz; the model's training text serves best. Of "
        f"more than {MOST_PAIRS:,} pairs every second is read, or every third, and so on. The shortlist is for models "
        "with the vocabularies of this one, and refused by others.",
    )
    made.add_argument(
        "--model",
        type=Path,
        metavar="PATH",
        help="whose subword models cut the text, required: a model file, or a run folder (its best model)",
    )
    made.add_argument("--source", nargs="+", type=Path, help="text in the model's source language; required")
    made.add_argument("--target", nargs="+", type=Path, help="its translations, file by file; required")
    made.add_argument("--output", metavar="FILE", help="where the shortlist goes, a .safetensors file; required")
    made.add_argument(
        "--translations",
        type=whole_number(1),
        default=TRANSLATIONS,
        metavar="K",
        help=f"the most probable target pieces that each source piece has (default: {TRANSLATIONS})",
    )
    made.add_argument(
        "--most-frequent",
        type=whole_number(0),
        default=MOST_FREQUENT,
        metavar="N",
        help=f"the most frequent target pieces, which every sentence has (default: {MOST_FREQUENT})",
    )
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    from nmt.cli.models import kept, read_model_paths
    from nmt.data.corpus import read_pairs
    from nmt.decoding.shortlist import save_shortlist, train_shortlist
    from nmt.training.starting_weights import load_origin

    problems += missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run"),
            "--source FILE": (options.source, "text in the source language"),
            "--target FILE": (options.target, "its translation"),
            "--output FILE": (options.output, "where the shortlist goes"),
        }
    )
    corpora, counts = read_parallel(options.source, options.target, problems)
    models = read_model_paths([options.model] if options.model else None, problems)
    read = [*kept(models), *parallel_inputs(corpora)]
    check_outputs({"--output": options.output}, problems, others=read, file="a shortlist")
    refuse(problems)

    _, model, vocabularies = load_origin(models[0])
    size, sampling = vocabularies.target.size, model.config.subwords.sampling
    sizes = {"--translations": options.translations, "--most-frequent": options.most_frequent}
    refuse(
        [
            f"{option} {number}: the model has only {size} target pieces; a shortlist of as many would leave none out; "
            "give a smaller number"
            for option, number in sizes.items()
            if number >= size
        ]
    )
    lines = sum(counts)
    step = math.ceil(lines / MOST_PAIRS)
    pairs = islice((pair for corpus in corpora for pair in read_pairs(*corpus)), 0, None, step)
    total = math.ceil(lines / step)
    shortlist, used = train_shortlist(
        watched(pairs, "pairs", total=total),
        vocabularies,
        translations=options.translations,
        most_frequent=options.most_frequent,
        sampling=sampling,
    )
    with failing_as(options.output):
        save_shortlist(Path(options.output).resolve(), shortlist)
    print(f"{PROGRAM}: learned from {used:,} of {lines:,} pairs", file=sys.stderr)
