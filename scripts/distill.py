#!/usr/bin/env python3
"""Choose from n-best lists the translations nearest to the references: the interpolation of Kim & Rush (2016).

    nmt-translate --model runs/teacher --input train.en --output train.nbest --beam-size 5 --n-best 5 --resume
    python scripts/distill.py --n-best train.nbest --reference train.de --output train.nearest.de

Line i of the output is, of the translations of source i, the one whose sentence BLEU (or chrF2) against reference i is
highest; of equal ones the first, which the teacher prefers. With the sources it is the corpus for a student. Texts are
read as streams, and the output is there only when it is complete. The package never imports the script.

Kim & Rush (2016), "Sequence-Level Knowledge Distillation", arXiv 1606.07947, section 3.3.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import NamedTuple, get_args

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli.common import run
from nmt.cli.options import missing
from nmt.cli.outputs import check_outputs, opened_for_writing
from nmt.cli.parser import Parser
from nmt.config.schema import SentenceMetric, Tokenizer
from nmt.data.corpus import excerpt, read_lines
from nmt.errors import UserError, refuse
from nmt.evaluation.metrics import TOKENIZERS, SentenceScore, check_tokenizer, sentence_score

PROGRAM = "distill.py"
BETWEEN = " ||| "
TOKENIZE: Tokenizer = "13a"
MOST_DIGITS = 18  # of the number of a source
SCORE = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|inf)|nan")
FEATURES = re.compile(r"\S+= -?[0-9]")  # what Moses writes between translation and score begins so: "LM0= -3.1 …"


class Entry(NamedTuple):
    """A line of an n-best list, such as `0 ||| ein Hund ||| -0.4567`."""

    source: int  # the number of the source, from 0
    text: str
    line: int


def n_best_lists(path: Path) -> Iterator[list[str]]:
    """The translations of each source, best first, as `nmt-translate --n-best` writes them.

    Raises UserError for a line of another form, and where a source is missing.
    """
    for number, (source, entries) in enumerate(groupby(_entries(path), lambda entry: entry.source)):
        if source != number:
            line = next(entries).line
            raise UserError(f"{path}, line {line}: is of source {source}, where those of {number} should be")
        yield [entry.text for entry in entries]


def _entries(path: Path) -> Iterator[Entry]:
    for number, line in enumerate(read_lines(path), start=1):
        source, _, rest = line.partition(BETWEEN)
        text, between, score = rest.rpartition(BETWEEN)
        is_number = source.isascii() and source.isdecimal() and len(source) <= MOST_DIGITS
        if not between or not is_number or not SCORE.fullmatch(score):
            raise UserError(
                f"{path}, line {number}: is not of the form NUMBER{BETWEEN}TRANSLATION{BETWEEN}SCORE, which "
                "nmt-translate writes with --n-best of 2 and more"
            )
        last = text.rpartition(BETWEEN)[2]
        if last != text and FEATURES.match(last):
            raise UserError(
                f"{path}, line {number}: {excerpt(last)} looks like the features of Moses; leave only "
                f"NUMBER{BETWEEN}TRANSLATION{BETWEEN}SCORE"
            )
        yield Entry(int(source), text, number)


def nearest(n_best: Path, reference: Path, score: SentenceScore) -> Iterator[str]:
    """Of the translations of each source the nearest to its reference. Raises UserError unless there are as many, and
    some."""
    number = 0
    for number, (texts, line) in enumerate(zip_longest(n_best_lists(n_best), read_lines(reference)), start=1):
        if texts is None or line is None:
            shorter, longer = (n_best, reference) if texts is None else (reference, n_best)
            raise UserError(f"{shorter}: ends after line or list {number - 1}, where {longer} goes on")
        yield max(texts, key=lambda text: score(text, line))
    if number == 0:
        raise UserError(f"{n_best}: the file is empty; there is nothing to choose from")


def read_score(options: argparse.Namespace) -> SentenceScore:
    """Check the options before anything is read; returns the score that chooses."""
    n_best, reference = options.n_best, options.reference
    needed = {
        "--n-best FILE": (n_best, "what nmt-translate --n-best wrote of the sources"),
        "--reference FILE": (reference, "a translation for each source"),
        "--output FILE": (options.output, "where the translations go; - is standard output"),
    }
    problems = missing(needed)
    if n_best and reference and n_best.exists() and reference.exists() and n_best.samefile(reference):
        problems.append(f"--reference {reference}: is the same file as --n-best {n_best}")
    read = [("--n-best", n_best), ("--reference", reference)]
    check_outputs({"--output": options.output}, problems, others=read)
    if options.metric != "bleu" and options.tokenize is not None:
        problems.append(f"--tokenize {options.tokenize}: has no effect with --metric {options.metric}; remove it")
    tokenize: Tokenizer = options.tokenize or TOKENIZE
    refuse(problems)
    check_tokenizer(tokenize)
    return sentence_score(options.metric, tokenize=tokenize, lowercase=options.lowercase)


def _parser() -> Parser:
    parser = Parser(
        PROGRAM,
        description="Choose from n-best lists the translations nearest to the references, as the targets of a student.",
        epilog="Line i of the output is, of the translations of source i, the one with the best score against line i "
        "of the reference.",
    )
    parser.add_argument(
        "--n-best", type=Path, metavar="FILE", help="what nmt-translate --n-best wrote of the sources; required"
    )
    parser.add_argument("--reference", type=Path, metavar="FILE", help="a translation for each source; required")
    parser.add_argument("--output", metavar="FILE", help="where they go; - is standard output; required")
    parser.add_argument(
        "--metric",
        choices=get_args(SentenceMetric),
        default="bleu",
        help="sentence BLEU, with sacreBLEU's smoothing exp and effective order, or chrF2 (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenize",
        choices=TOKENIZERS,
        help=f"sacreBLEU's tokenization for BLEU; none for text that is tokenized (default: {TOKENIZE})",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return run(PROGRAM, lambda: _choose(options))


def _choose(options: argparse.Namespace) -> None:
    score = read_score(options)
    with opened_for_writing(options.output) as file:
        for text in nearest(options.n_best, options.reference, score):
            file.write(f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
