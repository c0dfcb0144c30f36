"""nmt-shortlist: which target pieces may translate which source pieces, learnt from parallel text, for faster search.

Wiring only: parallel files → pairs of lines → shortlist → file. What was given is checked before a model is loaded, and
every mistake is reported at once.
"""

import sys

if __name__ == "__main__":  # before what takes seconds to import, so that Ctrl-C is answered meanwhile
    from nmt.cli import start

    sys.exit(start.shortlist())

import argparse
import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from nmt.cli.common import run
from nmt.cli.models import model_files, named
from nmt.cli.options import STANDARD, check_output, collect, is_device
from nmt.config.schema import SubwordSampling
from nmt.data.corpus import check_corpora, read_pairs
from nmt.data.subwords import Vocabularies
from nmt.decoding.shortlist import LONGEST, MOST_FREQUENT, TRANSLATIONS, Trained, save_shortlist, train_shortlist
from nmt.errors import UserError
from nmt.models.model_file import load_model

MOST_PAIRS = 200_000  # read; of more, every second, every third, …: what bounds memory and time


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-shortlist; returns the exit code: 0, or 2 when something given was wrong."""
    given = _parser().parse_args(arguments)
    return run("nmt-shortlist", lambda: _shortlist(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-shortlist",
        allow_abbrev=False,
        description="Learn from parallel text which target pieces may translate which source pieces, by IBM Model 1, "
        "for the --shortlist of nmt-translate and nmt-eval: they then choose among hundreds of pieces, not among all.",
        epilog="Files are UTF-8 text, one sentence a line, plain or .gz; the model's training text serves best. Of "
        f"more than {MOST_PAIRS:,} pairs every second is read, or every third, and so on. The shortlist is for models "
        "with the vocabularies of this one, and refused by others.",
    )
    parser.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help="whose subword models cut the text, required: a model file, or a run folder (its best model)",
    )
    parser.add_argument(
        "--source", nargs="+", type=Path, metavar="FILE", help="text in the model's source language; required"
    )
    parser.add_argument(
        "--target", nargs="+", type=Path, metavar="FILE", help="its translations, file by file; required"
    )
    parser.add_argument("--output", metavar="FILE", help="where the shortlist goes, a .safetensors file; required")
    parser.add_argument(
        "--translations",
        metavar="K",
        help=f"the most probable target pieces that each source piece has (default: {TRANSLATIONS})",
    )
    parser.add_argument(
        "--most-frequent",
        metavar="N",
        help=f"the most frequent target pieces, which every sentence has (default: {MOST_FREQUENT})",
    )
    return parser


def _shortlist(given: argparse.Namespace) -> None:
    """Check, learn, write."""
    problems: list[str] = []
    corpora, lines = _corpora(given, problems)
    models = model_files(given, problems)
    if len(given.model or []) > 1:
        problems.append(
            "--model was given several times; one is enough, as the models of an ensemble share vocabularies"
        )
    translations = collect(problems, partial(_number, "--translations", given.translations, TRANSLATIONS, least=1))
    most_frequent = collect(problems, partial(_number, "--most-frequent", given.most_frequent, MOST_FREQUENT, least=0))
    _check_output(given, corpora, models, problems)
    if problems or not models or translations is None or most_frequent is None:
        raise UserError(*problems)

    vocabularies, sampling = _subwords(models[0])
    for option, count in (("--translations", translations), ("--most-frequent", most_frequent)):
        if count >= vocabularies.target.size:
            problems.append(
                f"{option} {count}: the model has only {vocabularies.target.size} target pieces; a shortlist of as "
                "many would leave none out; give a smaller number"
            )
    if problems:
        raise UserError(*problems)
    step = math.ceil(lines / MOST_PAIRS)
    pairs = islice((pair for corpus in corpora for pair in read_pairs(*corpus)), 0, None, step)
    watched = tqdm(pairs, total=math.ceil(lines / step), unit=" pairs", disable=not sys.stderr.isatty())
    trained = train_shortlist(
        watched, vocabularies, translations=translations, most_frequent=most_frequent, sampling=sampling
    )
    try:
        save_shortlist(Path(given.output).resolve(), trained.shortlist)
    except OSError as error:
        raise UserError(f"{given.output}: cannot be written ({error.strerror or error})") from None
    for line in _report(trained, lines, sampled=sampling is not None):
        print(f"nmt-shortlist: {line}", file=sys.stderr)


def _report(trained: Trained, lines: int, *, sampled: bool) -> Iterator[str]:
    """What was read and found, a line each."""
    reasons = (
        (lines - trained.read, f"beyond the {MOST_PAIRS:,} that are read, evenly spread"),
        (trained.blank, "blank on a side"),
        (trained.overlong, f"of more than {LONGEST} pieces"),
    )
    left_out = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
    yield f"{trained.used:,} of {lines:,} pairs used" + (f" (left out: {left_out})" if left_out else "")
    if sampled:
        yield "each also with its target cut at random, as in the model's training (subwords.sampling)"
    yield f"{trained.entries:,} pairs of pieces occur together"


def _corpora(given: argparse.Namespace, problems: list[str]) -> tuple[list[tuple[Path, Path]], int]:
    """The pairs of files and the lines of all; what is missing, or wrong with them, is added to `problems`."""
    needed = {
        "--model PATH": (given.model, "a model file, or the folder of a run"),
        "--source FILE": (given.source, "text in the source language"),
        "--target FILE": (given.target, "its translation"),
        "--output FILE": (given.output, "where the shortlist goes"),
    }
    problems.extend(f"{option} is missing: {meaning}" for option, (value, meaning) in needed.items() if value is None)
    if given.source is None or given.target is None:
        return [], 0
    if len(given.source) != len(given.target):
        problems.append(
            f"--source has {len(given.source)} files and --target {len(given.target)}: file i of the one must go with "
            "file i of the other"
        )
        return [], 0
    corpora = list(zip(given.source, given.target, strict=True))
    return corpora, sum(collect(problems, partial(check_corpora, corpora)) or [])


def _number(option: str, text: str | None, default: int, *, least: int) -> int:
    if text is None:
        return default
    with suppress(ValueError):
        if int(text) >= least:
            return int(text)
    raise UserError(f"{option} {shlex.quote(text)}: allowed: a whole number, at least {least}")


def _check_output(
    given: argparse.Namespace, corpora: Sequence[tuple[Path, Path]], models: list[Path], problems: list[str]
) -> None:
    """Check that the file can be written, and overwrites nothing that is read."""
    if given.output is None:
        return
    if given.output == STANDARD or is_device(Path(given.output)):
        problems.append(f"--output {given.output}: a shortlist is a file; give a name")
        return
    found: list[str] = []
    collect(found, partial(check_output, "--output", given.output, others=named(models)))
    for corpus in corpora:
        for option, path in zip(("--source", "--target"), corpus, strict=True):
            collect(found, partial(check_output, "--output", given.output, others={option: path}))
    problems.extend(dict.fromkeys(found))


def _subwords(path: Path) -> tuple[Vocabularies, SubwordSampling | None]:
    """The model's vocabularies, and how its training has cut sentences at random."""
    file = load_model(path)
    try:
        return Vocabularies.from_bytes(
            file.source_subwords, file.target_subwords, file.sizes
        ), file.config.subwords.sampling
    except ValueError as error:
        raise UserError(f"{path}: damaged: its parts do not fit together ({error})") from error
