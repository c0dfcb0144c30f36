"""nmt-average: one model from several, the weighted mean of their weights.

Wiring only: model files → one architecture and vocabularies → average → file. All mistakes are reported at once.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.average())

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.models import kept, read_model_paths
from nmt.cli.options import missing, number_in
from nmt.cli.outputs import check_outputs, failing_as, is_in_place
from nmt.cli.parsers.average import PROGRAM, parser
from nmt.errors import Checking, checked, counted
from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
from nmt.training.averaging import WeightedMean
from nmt.training.finetuning import why_not_alike

_BEGAN_APART = 0.1  # cosine of matrices, below; the demo's first and tenth epoch have 0.70, two seeds -0.01


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which models to average, and how much each counts."""

    models: Sequence[Path]
    weights: Sequence[float]
    output: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-average; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _average(checked(_read_request(parser().parse_args(arguments)))))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    needed = {
        "--model PATH": (options.model, "a model file, or the folder of a run; at least twice"),
        "--output FILE": (options.output, "where the average goes"),
    }
    yield from missing(needed)
    models = yield from read_model_paths(options.model)
    if len(models) == 1:
        yield "--model was given once; an average takes at least two models"
    for path, count in Counter(models).items():
        if count > 1:
            yield f"--model {path} is given {count} times; give it once, and have it count more with --weights"
    weights = [1.0] * len(models)
    if options.weights is not None:
        weights = yield from _read_weights(options.weights, len(models))
    if options.output is not None and is_in_place(options.output):
        yield f"--output {options.output}: a model is a file; give a name"
    yield from check_outputs({"--output": options.output}, others=kept(models))
    return Request(models=models, weights=weights, output=Path(options.output or ""))


def _read_weights(texts: Sequence[str], models: int) -> Checking[list[float]]:
    weights = []
    for text in texts:
        number = number_in(text)
        if number is not None and 0 < number <= 1e9:
            weights.append(float(number))
        else:
            yield f"--weights {shlex.quote(text)}: allowed: a number, more than 0 and at most 1,000,000,000"
    if models and len(texts) != models:
        sizes = f"--weights has {counted(len(texts), 'number')} and --model {counted(models, 'model')}"
        yield f"{sizes}: each model needs one"
    return weights


def _read_models(request: Request) -> Checking[tuple[list[ModelFile], WeightedMean]]:
    """The models without their weights, of which memory holds those of one at a time, and the mean of these."""
    models: list[ModelFile] = []
    mean = WeightedMean()
    for path, share in zip(request.models, request.weights, strict=True):
        model = load_model(path)
        models.append(model)
        reasons = list(why_not_alike(model, models[0], name=str(request.models[0])))
        yield from (f"{path}: {reason}" for reason in reasons)
        if not reasons:
            if len(models) > 1 and (agreement := mean.agreement(model.weights)) < _BEGAN_APART:
                print(f"{PROGRAM}: warning: {path}: {_unlike(agreement)}", file=sys.stderr)
            mean.add(model.weights, share)
        model.weights.clear()
    return models, mean


def _unlike(agreement: float) -> str:
    what = f"its weights have little in common with those before it (the cosine is {agreement:.2f})"
    return f"{what}, as if they began apart; the average of such models is of no use"


def _average(request: Request) -> None:
    models, mean = checked(_read_models(request))
    first, total = models[0], sum(request.weights)
    shares = [weight / total for weight in request.weights]
    training = {
        LONGEST_SOURCE: max(map(longest_trained, models)),
        "average_of": [{"digest": model.digest, "share": share} for model, share in zip(models, shares, strict=True)],
    }
    average = first._replace(weights=mean.weights(), training=training, digest=None)
    with failing_as(str(request.output)):
        save_model(request.output.resolve(), average)
    for path, share in zip(request.models, shares, strict=True):
        print(f"{PROGRAM}: {share:.4g} of {path}", file=sys.stderr)
