"""nmt-score: the log-probability that a model gives to translations it is shown, one number for each pair of lines.

Wiring only: two files → pairs of lines → forced decoding → numbers, and the corpus perplexity. All mistakes are
reported at once, before a model is loaded.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.score())

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from nmt.cli.alignment_outputs import ALIGNMENTS, AlignmentOutputs
from nmt.cli.common import run
from nmt.cli.models import Models, read_models
from nmt.cli.options import missing, read_alignment_step, read_decoding_value, read_end_links
from nmt.cli.outputs import STANDARD, check_outputs, opened_for_writing, write_text
from nmt.cli.parsers.score import PROGRAM, parser
from nmt.config.schema import AlignmentStep, EndLinks
from nmt.data.corpus import check_corpora, read_pairs
from nmt.decoding.scoring import score
from nmt.errors import Checking, caught, checked, counted
from nmt.ops.loss import perplexity
from nmt.ops.memory import enough_memory

MEMORY = "shorten the longest lines, or score on another machine"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to score, and where the scores go."""

    models: Models
    source: Path
    target: Path
    sentences: int  # in each of the two
    batch_tokens: int | None  # None: the model's default
    normalise: bool
    output: str
    json: str | None
    alignments: AlignmentOutputs
    alignment_step: AlignmentStep
    end_links: EndLinks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-score; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _score(checked(_read_request(parser().parse_args(arguments)))))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    needed = {
        "--model PATH": (options.model, "a model file, or the folder of a run"),
        "--source FILE": (options.source, "the text that was translated"),
        "--target FILE": (options.target, "its translation"),
    }
    yield from missing(needed)
    counts = [0]
    streams = [name for name in ("source", "target") if str(vars(options)[name]) == STANDARD]
    yield from (f"--{name} {STANDARD}: standard input is not read here; give a file" for name in streams)
    if options.source is not None and options.target is not None and not streams:
        counts = yield from caught(lambda: check_corpora([(options.source, options.target)]), counts)
    models = yield from read_models(vars(options))
    batch_tokens = yield from read_decoding_value("--batch-tokens", options.batch_tokens, key="batch_tokens")
    read = [*models.files, ("--source", options.source), ("--target", options.target)]
    alignments = AlignmentOutputs(options.alignments, options.soft_alignments, options.plot_alignments)
    step = yield from read_alignment_step(vars(options), users=ALIGNMENTS)
    end_links = yield from read_end_links(vars(options))
    if options.output == options.json == STANDARD:
        yield "--json -: standard output has the scores; give a file, or --output FILE"
    taken = yield from check_outputs({"--output": options.output, "--json": options.json}, others=read)
    yield from alignments.check(others=taken)
    return Request(
        models=models,
        source=options.source,
        target=options.target,
        sentences=counts[0],
        batch_tokens=batch_tokens,
        normalise=options.normalise,
        output=options.output,
        json=options.json,
        alignments=alignments,
        alignment_step=step,
        end_links=end_links,
    )


@enough_memory(MEMORY)
def _score(request: Request) -> None:
    translator = request.models.load()
    scores = score(
        translator.scorer,
        translator.vocabularies,
        read_pairs(request.source, request.target),
        batch_tokens=request.batch_tokens or translator.decoding.batch_tokens,
        alignments=bool(request.alignments),
        alignment_step=request.alignment_step,
        end_links=request.end_links,
    )
    log_probability, tokens = 0.0, 0
    with opened_for_writing(request.output) as file, request.alignments.opened(program=PROGRAM) as write_alignments:
        for scored in tqdm(scores, total=request.sentences, unit=" lines", disable=not sys.stderr.isatty()):
            log_probability += scored.log_probability
            tokens += scored.tokens
            shown = scored.log_probability / max(scored.tokens, 1) if request.normalise else scored.log_probability
            file.write(f"{shown:.4f}\n".encode())
            write_alignments([] if scored.alignment is None else [scored.alignment])
    _report(request, tokens, log_probability)


def _report(request: Request, tokens: int, log_probability: float) -> None:
    """Write the totals; two files of blank lines have no perplexity."""
    overall = perplexity(-log_probability / tokens) if tokens else None
    if request.json is None:
        shown = "no perplexity" if overall is None else f"perplexity {overall:.4f}"
        sizes = f"{counted(request.sentences, 'sentence')}, {counted(tokens, 'token')}"
        print(f"{PROGRAM}: {shown}, {sizes}", file=sys.stderr)
        return
    numbers = {
        "sentences": request.sentences,
        "tokens": tokens,
        "log_probability": round(log_probability, 6),
        "perplexity": None if overall is None or math.isinf(overall) else float(f"{overall:.8g}"),
    }
    write_text(request.json, f"{json.dumps(numbers, indent=2)}\n")
