"""nmt-average: one model from several, the weighted mean of their weights.

Wiring only: model files → one architecture and vocabularies → average → file. All mistakes are reported at once.
"""

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import missing, number_in
from nmt.cli.outputs import check_outputs, failing_as, is_in_place
from nmt.cli.parser import Parser
from nmt.errors import counted, refuse

PROGRAM = "nmt-average"
_BEGAN_APART = 0.1  # cosine of matrices, below; the demo's first and tenth epoch have 0.70, two seeds -0.01


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Average the weights of several models, such as checkpoints of a run, or a model before and after "
        "fine-tuning.",
        epilog="The models must have the same architecture and vocabularies, and one must have come from the other, or "
        "both from a third: the average of models that began apart is of no use.",
    )
    made.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help="a model file, or a run folder (its best model); required, at least twice",
    )
    made.add_argument(
        "--weights",
        nargs="+",
        metavar="A",
        help="how much each model counts, in the order of --model; they need not sum to 1 (default: all the same)",
    )
    made.add_argument("--output", metavar="FILE", help="where the average goes, a .safetensors file; required")
    return made


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which models to average, and how much each counts."""

    models: Sequence[Path]
    weights: Sequence[float]
    output: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-average; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_command, arguments))


def _command(arguments: Sequence[str] | None) -> None:
    _average(_read_request(parser().parse_args(arguments)))


def _read_request(options: argparse.Namespace) -> Request:
    from nmt.cli.models import kept, read_model_paths

    problems = missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run; at least twice"),
            "--output FILE": (options.output, "where the average goes"),
        }
    )
    models = read_model_paths(options.model, problems)
    if len(models) == 1:
        problems.append("--model was given once; an average takes at least two models")
    for path, count in Counter(models).items():
        if count > 1:
            problems.append(
                f"--model {path} is given {count} times; give it once, and have it count more with --weights"
            )
    weights = [1.0] * len(models)
    if options.weights is not None:
        weights = _read_weights(options.weights, len(models), problems)
    if options.output is not None and is_in_place(options.output):
        problems.append(f"--output {options.output}: a model is a file; give a name")
    check_outputs({"--output": options.output}, problems, others=kept(models))
    refuse(problems)
    return Request(models=models, weights=weights, output=Path(options.output))


def _read_weights(texts: Sequence[str], models: int, problems: list[str]) -> list[float]:
    weights = []
    for text in texts:
        number = number_in(text)
        if number is not None and 0 < number <= 1e9:
            weights.append(float(number))
        else:
            problems.append(f"--weights {shlex.quote(text)}: allowed: a number, more than 0 and at most 1,000,000,000")
    if models and len(texts) != models:
        sizes = f"--weights has {counted(len(texts), 'number')} and --model {counted(models, 'model')}"
        problems.append(f"{sizes}: each model needs one")
    return weights


def _average(request: Request) -> None:
    """Write the weighted mean of the models, of whose weights memory holds those of one at a time."""
    from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
    from nmt.training.averaging import WeightedMean
    from nmt.training.finetuning import why_not_alike

    problems: list[str] = []
    models: list[ModelFile] = []
    mean = WeightedMean()
    for path, share in zip(request.models, request.weights, strict=True):
        model = load_model(path)
        models.append(model)
        reasons = list(why_not_alike(model, models[0], name=str(request.models[0])))
        problems += [f"{path}: {reason}" for reason in reasons]
        if not reasons:
            if len(models) > 1 and (agreement := mean.agreement(model.weights)) < _BEGAN_APART:
                print(f"{PROGRAM}: warning: {path}: {_unlike(agreement)}", file=sys.stderr)
            mean.add(model.weights, share)
        model.weights.clear()
    refuse(problems)
    total = sum(request.weights)
    shares = [weight / total for weight in request.weights]
    training = {
        LONGEST_SOURCE: max(map(longest_trained, models)),
        "average_of": [{"digest": model.digest, "share": share} for model, share in zip(models, shares, strict=True)],
    }
    average = models[0]._replace(weights=mean.weights(), training=training, digest=None)
    with failing_as(str(request.output)):
        save_model(request.output.resolve(), average)
    for path, share in zip(request.models, shares, strict=True):
        print(f"{PROGRAM}: {share:.4g} of {path}", file=sys.stderr)


def _unlike(agreement: float) -> str:
    what = f"its weights have little in common with those before it (the cosine is {agreement:.2f})"
    return f"{what}, as if they began apart; the average of such models is of no use"


if __name__ == "__main__":
    from nmt.cli import start

    raise SystemExit(start.main(PROGRAM))
