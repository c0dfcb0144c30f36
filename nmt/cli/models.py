"""--model, of nmt-translate, nmt-eval and nmt-score alike: one model, or several that work together as an ensemble.

It imports no PyTorch unless a model was given.
"""

import argparse
from functools import partial
from pathlib import Path

from nmt.cli.options import collect


def add_model_option(group: argparse._ActionsContainer, what: str) -> None:
    """Add --model; `what` it does begins the help. Its values are read by `model_files`."""
    group.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help=f"{what}: a model file, or a run folder (its best model). Given several times, the models work together "
        "as an ensemble by the mean of their log-probabilities; they need the same vocabularies, and the first one's "
        "configuration gives the defaults",
    )


def model_files(given: argparse.Namespace, problems: list[str]) -> list[Path]:
    """The model files of the paths that were given; what is wrong with them is added to `problems`."""
    if not given.model:
        return []
    from nmt.models.model_file import model_path  # only here: PyTorch takes longer to import than a file to score

    found = [collect(problems, partial(model_path, path)) for path in given.model]
    return [path for path in found if path is not None]


def named(models: list[Path]) -> dict[str, Path | None]:
    """The files by what the user calls them, as `check_output` wants those that must not be overwritten."""
    return {"--model" if number == 1 else f"--model number {number}": path for number, path in enumerate(models, 1)}
