"""nmt-export: a model as files that translate without PyTorch, and that other programs can use.

Wiring only: model file → graphs → folder.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import missing
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser
from nmt.errors import refuse

PROGRAM = "nmt-export"
PRECISIONS = ("float32", "int8")


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Write a model as files for ONNX Runtime, which translate on a CPU without PyTorch.",
        epilog="nmt-translate, nmt-serve, and others take the folder as a model, also where only nmt-runtime is "
        "installed. Other programs run its graphs with ONNX Runtime.",
    )
    made.add_argument("--model", type=Path, metavar="PATH", help="a model file, or a run folder (its best), required")
    made.add_argument(
        "--output", type=Path, metavar="FOLDER", help="where to write, made if missing; an export there is replaced"
    )
    made.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        metavar="NAME",
        help=f"what products are rounded to: {' or '.join(PRECISIONS)}; int8 is smaller and faster, and changes a "
        f"translation here and there (default: {PRECISIONS[0]})",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-export; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _export(parser().parse_args(arguments)))


def _export(options: argparse.Namespace) -> None:
    problems = missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run"),
            "--output FOLDER": (options.output, "where the export goes"),
        }
    )
    from nmt.cli.models import read_model_paths
    from nmt.models.model_file import EXPORT

    paths = read_model_paths([options.model] if options.model else None, problems)
    folder: Path | None = options.output
    files = [file.name for file in folder.iterdir()] if folder and folder.is_dir() else []
    if files and EXPORT not in files:
        problems.append(f"--output {folder}: holds other files, and no export; give a new folder")
    refuse(problems)
    assert folder is not None
    from nmt.decoding.exports import export_graphs, save_export

    model, graphs = export_graphs(paths[0], options.precision)
    with failing_as(str(folder)):
        save_export(folder, model, graphs, options.precision)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(f"{PROGRAM}: {folder}: {options.precision}, {size:.1f} MB", file=sys.stderr)
