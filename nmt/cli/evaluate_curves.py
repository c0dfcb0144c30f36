"""nmt-eval --curves: learning curves of several runs in one picture.

Wiring only: run folders → measurements → picture. It imports no PyTorch.
"""

import argparse
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, cast

from nmt.cli.outputs import check_outputs, opened_for_writing
from nmt.cli.parsers.evaluate import PROGRAM
from nmt.errors import Checking, UserError, caught, first_of, nothing_at
from nmt.evaluation.alignment_plot import check_plots
from nmt.evaluation.curves import names, plot_curves
from nmt.evaluation.measurements import FILE, Record, measurements

FORMS = (".png", ".svg")
_MOST = 3  # lines that a warning names


@dataclass(frozen=True, kw_only=True)
class Request:
    """The measurements of runs by their names, and where the picture of them goes."""

    runs: Mapping[str, Sequence[Record]]
    warnings: Sequence[str]
    output: str
    form: Literal["png", "svg"]


def read_curves_request(options: argparse.Namespace, *, unwanted: Collection[str]) -> Checking[Request]:
    """Check the arguments and read the measurements. `unwanted`: the options that do not concern curves."""
    yield from (f"{option} has no effect on --curves; leave it out" for option in unwanted)
    yield from caught(check_plots, None)
    output = options.output or ""
    form = Path(output).suffix.lower()
    folders: list[Path] = options.curves
    places = [Path(os.path.abspath(folder)) for folder in folders]  # noqa: PTH100 - without what comes before ".."
    for number, folder in enumerate(folders):
        if places[number] in places[:number]:
            yield f"--curves {folder}: is there twice"
    if not output:
        yield "--curves needs --output FILE: the picture, such as curves.png"
    elif form not in FORMS:
        yield f"--output {output}: must end with {' or '.join(FORMS)}, the formats of the picture"
    else:
        taken = [(f"the measurements of --curves {folder}:", folder / FILE) for folder in folders]
        yield from check_outputs({"--output": output}, others=taken)
    runs: list[list[Record]] = []
    warnings: list[str] = []
    for folder in folders:
        runs.append((yield from caught(partial(_read, folder, warnings), [])))
    return Request(
        runs=dict(zip(names(places), runs, strict=True)),
        warnings=warnings,
        output=output,
        form=cast(Literal["png", "svg"], form.removeprefix(".")),
    )


def _read(folder: Path, warnings: list[str]) -> list[Record]:
    """The measurements of a run, which may still be going on; `warnings` gets what is wrong with some of them.

    Raises UserError where there are none.
    """
    path = folder / FILE
    if not folder.is_dir():
        what = nothing_at(folder, "no such folder") or f"{folder}: is a file; give the folder of its run"
        raise UserError(f"--curves {what}")
    try:
        with open(path, "rb") as file:
            records, damaged = measurements(file)
    except FileNotFoundError:
        raise UserError(f"--curves {folder}: is not the folder of a run: there is no {FILE} in it") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if not records:
        what = "no line of it can be read" if damaged else "the run has not measured anything yet"
        raise UserError(f"{path}: has no measurements; {what}")
    if damaged:
        which = f"line{'s' if len(damaged) > 1 else ''} {', '.join(first_of([*map(str, damaged)], _MOST))}"
        warnings.append(f"{path}: {which}: no measurement; the others are drawn")
    return records


def draw_curves(request: Request) -> None:
    for warning in request.warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    with opened_for_writing(request.output) as file:
        plot_curves(request.runs, file, form=request.form)
