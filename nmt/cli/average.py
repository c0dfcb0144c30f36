"""nmt-average: one model from several, the weighted mean of their weights.

Wiring only: model files → one architecture and vocabularies → average → file. All mistakes are reported at once.
"""

import argparse
import sys
import warnings
from pathlib import Path

from nmt.cli.options import missing, number_within
from nmt.cli.outputs import check_outputs, failing_as
from nmt.cli.parser import Parser, command
from nmt.errors import InputWarning, counted, refuse

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
        action="extend",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a model file, or a run folder (its best model); required, at least two of them",
    )
    made.add_argument(
        "--weights",
        nargs="+",
        type=number_within(0.001, 1e6),
        metavar="A",
        help="how much each model counts, in the order of --model; they need not sum to 1 (default: all the same)",
    )
    made.add_argument("--output", metavar="FILE", help="where the average goes, a .safetensors file; required")
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    """Write the weighted mean of the models, of whose weights memory holds those of one at a time."""
    from nmt.cli.models import kept, read_model_paths
    from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
    from nmt.protected import LEARNED, learned_by
    from nmt.text_form import FORMS
    from nmt.training.averaging import WeightedMean
    from nmt.training.starting_weights import why_not_alike

    problems += missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run; at least two of them"),
            "--output FILE": (options.output, "where the average goes"),
        }
    )
    paths = read_model_paths(options.model, problems)
    if len(paths) == 1:
        problems.append("--model was given once; an average takes at least two models")
    weights = [1.0] * len(paths) if options.weights is None else options.weights
    if paths and len(weights) != len(paths):
        sizes = f"--weights has {counted(len(weights), 'number')} and --model {counted(len(paths), 'model')}"
        problems.append(f"{sizes}: each model needs one")
    check_outputs({"--output": options.output}, problems, others=kept(paths), file="a model")
    refuse(problems)

    models: list[ModelFile] = []
    mean = WeightedMean()
    for path, share in zip(paths, weights, strict=True):
        model = load_model(path)
        models.append(model)
        reasons = why_not_alike(model, models[0], name=str(paths[0]))
        problems += [f"{path}: {reason}" for reason in reasons]
        if not reasons:
            if len(models) > 1 and (agreement := mean.agreement(model.weights)) < _BEGAN_APART:
                few = f"its weights have little in common with those before it (the cosine is {agreement:.2f})"
                of_no_use = "as if they began apart; the average of such models is of no use"
                warnings.warn(f"{path}: {few}, {of_no_use}", InputWarning, stacklevel=1)
            mean.add(model.weights, share)
        model.weights.clear()
    refuse(problems)
    shares = [weight / sum(weights) for weight in weights]
    training = {
        LONGEST_SOURCE: max(map(longest_trained, models)),
        FORMS: models[0].training.get(FORMS),
        LEARNED: learned_by(*(model.training for model in models)),
        "average_of": [{"digest": model.digest, "share": share} for model, share in zip(models, shares, strict=True)],
    }
    average = models[0]._replace(weights=mean.weights(), training=training, digest=None)
    with failing_as(options.output):
        save_model(Path(options.output).resolve(), average)
    for path, share in zip(paths, shares, strict=True):
        print(f"{PROGRAM}: {share:.4g} of {path}", file=sys.stderr)
