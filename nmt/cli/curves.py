"""nmt-curves: learning curves of one run or several in one picture.

Wiring only: run folders → measurements → picture. It imports no PyTorch.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from nmt.cli.common import run
from nmt.cli.outputs import check_outputs, opened_for_writing
from nmt.cli.parser import Parser
from nmt.errors import UserError, collected, first_of, nothing_at, refuse

if TYPE_CHECKING:
    from nmt.evaluation.measurements import Record

PROGRAM = "nmt-curves"
FORMS = (".png", ".svg")
_MOST = 3  # lines that a warning names


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Draw learning curves of trainings: their loss, perplexity and BLEU, by update and by minute.",
        epilog="It needs matplotlib, the extra plots. A run may still be going on.",
    )
    made.add_argument("--runs", type=Path, nargs="+", metavar="RUN", help="run folders of nmt-train; required")
    made.add_argument("--output", metavar="FILE", help="the picture, a .png or .svg; required")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-curves; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_draw, arguments))


def _draw(arguments: Sequence[str] | None) -> None:
    options = parser().parse_args(arguments)
    from nmt.evaluation.alignment_plot import check_plots
    from nmt.evaluation.curves import names, plot_curves
    from nmt.evaluation.measurements import FILE

    problems: list[str] = []
    with collected(problems):
        check_plots()
    folders: list[Path] = options.runs or []
    if not folders:
        problems.append("--runs RUN is missing: the folder of a training, or several")
    form = Path(options.output or "").suffix.lower()
    if options.output is None:
        problems.append("--output FILE is missing: the picture, such as curves.png")
    elif form not in FORMS:
        problems.append(f"--output {options.output}: must end with {' or '.join(FORMS)}, the formats of the picture")
    measured = [("the measurements of", folder / FILE) for folder in folders]
    check_outputs({"--output": options.output}, problems, others=measured)
    runs: list[list[Record]] = []
    warnings: list[str] = []
    for folder in folders:
        with collected(problems):
            runs.append(_read(folder, warnings))
    refuse(problems)
    for warning in warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    places = [Path(os.path.abspath(folder)) for folder in folders]  # noqa: PTH100 - without what is before ".."
    with opened_for_writing(options.output) as file:
        named = dict(zip(names(places), runs, strict=True))
        plot_curves(named, file, form=cast(Literal["png", "svg"], form.removeprefix(".")))


def _read(folder: Path, warnings: list[str]) -> "list[Record]":
    """The measurements of a run; `warnings` gets what is wrong with some. Raises UserError where there are none."""
    from nmt.evaluation.measurements import FILE, measurements

    path = folder / FILE
    if missing := nothing_at(path):
        raise UserError(f"--runs {missing}")
    with open(path, "rb") as file:
        records, damaged = measurements(file)
    if not records:
        raise UserError(f"{path}: has no measurements yet, or no line of it can be read")
    if damaged:
        which = ", ".join(first_of([*map(str, damaged)], _MOST))
        warnings.append(f"{path}: no measurement in line {which}; the others are drawn")
    return records
