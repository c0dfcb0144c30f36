"""nmt-shortlist: which target pieces may translate which source pieces, learned from parallel text, for faster search.

Wiring only: parallel files → pairs of lines → shortlist → file. All mistakes are reported at once, before a model is
loaded.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.shortlist())

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from nmt.cli.common import run
from nmt.cli.models import kept, read_model_paths
from nmt.cli.options import missing, read_count
from nmt.cli.outputs import check_outputs, failing_as, is_in_place
from nmt.cli.parsers.shortlist import MOST_PAIRS, PROGRAM, parser
from nmt.data.corpus import check_corpora, read_pairs
from nmt.decoding.shortlist import LONGEST, Trained, save_shortlist, train_shortlist
from nmt.errors import Checking, caught, checked, counted
from nmt.training.finetuning import load_origin


@dataclass(frozen=True, kw_only=True)
class Request:
    """The text to learn a shortlist from, and the model that cuts it."""

    model: Path
    corpora: Sequence[tuple[Path, Path]]
    lines: int  # in all of them
    output: Path
    translations: int
    most_frequent: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-shortlist; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _shortlist(checked(_read_request(parser().parse_args(arguments)))))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    needed = {
        "--model PATH": (options.model, "a model file, or the folder of a run"),
        "--source FILE": (options.source, "text in the source language"),
        "--target FILE": (options.target, "its translation"),
        "--output FILE": (options.output, "where the shortlist goes"),
    }
    yield from missing(needed)
    sources, targets = options.source or [], options.target or []
    corpora, counts = list(zip(sources, targets, strict=False)), [0]
    if sources and targets and len(sources) != len(targets):
        yield (
            f"--source has {counted(len(sources), 'file')} and --target {len(targets)}: file i of the one must go with "
            "file i of the other"
        )
    elif corpora:
        counts = yield from caught(lambda: check_corpora(corpora), counts)
    models = yield from read_model_paths(options.model)
    if len(models) > 1:
        yield "--model was given several times; one is enough, as the models of an ensemble share vocabularies"
    translations = (yield from read_count("--translations", options.translations, least=1)) or 0
    most_frequent = (yield from read_count("--most-frequent", options.most_frequent, least=0)) or 0
    if options.output is not None and is_in_place(options.output):
        yield f"--output {options.output}: a shortlist is a file; give a name"
    others = [*kept(models), *(("--source", path) for path in sources), *(("--target", path) for path in targets)]
    yield from check_outputs({"--output": options.output}, others=others)
    return Request(
        model=(models or [Path()])[0],
        corpora=corpora,
        lines=sum(counts),
        output=Path(options.output or ""),
        translations=translations,
        most_frequent=most_frequent,
    )


def _shortlist(request: Request) -> None:
    _, model, vocabularies = load_origin(request.model)
    size, sampling = vocabularies.target.size, model.config.subwords.sampling
    counts = {"--translations": request.translations, "--most-frequent": request.most_frequent}
    checked(
        f"{option} {count}: the model has only {size} target pieces; a shortlist of as many would leave none out; "
        "give a smaller number"
        for option, count in counts.items()
        if count >= size
    )
    step = math.ceil(request.lines / MOST_PAIRS)
    pairs = islice((pair for corpus in request.corpora for pair in read_pairs(*corpus)), 0, None, step)
    total = math.ceil(request.lines / step)
    trained = train_shortlist(
        tqdm(pairs, total=total, unit=" pairs", disable=not sys.stderr.isatty()),
        vocabularies,
        translations=request.translations,
        most_frequent=request.most_frequent,
        sampling=sampling,
    )
    with failing_as(str(request.output)):
        save_shortlist(request.output.resolve(), trained.shortlist)
    for line in _report(trained, request.lines, sampled=sampling is not None):
        print(f"{PROGRAM}: {line}", file=sys.stderr)


def _report(trained: Trained, lines: int, *, sampled: bool) -> Iterator[str]:
    """What was read and learned, one line each."""
    reasons = (
        (lines - trained.read, f"beyond the {MOST_PAIRS:,} that are read, evenly spread"),
        (trained.blank, "blank on a side"),
        (trained.overlong, f"of more than {LONGEST} pieces"),
    )
    left_out = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
    yield f"{trained.used:,} of {lines:,} pairs used" + (f" (left out: {left_out})" if left_out else "")
    if sampled:
        yield "each also with its target cut at random, as in the model's training (subwords.sampling)"
    yield f"{trained.together:,} pairs of pieces occur together"
