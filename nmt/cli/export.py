"""nmt-export: a model as files that translate without PyTorch, and that other programs can use.

Wiring only: model file → graphs → folder, of an export or of a page.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli.common import run
from nmt.cli.options import missing
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser
from nmt.errors import collected, refuse
from nmt.web.package import ADDRESS, LAST, runtime_of

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
    where = made.add_mutually_exclusive_group()
    where.add_argument(
        "--output", type=Path, metavar="FOLDER", help="where to write, made if missing; an export there is replaced"
    )
    where.add_argument(
        "--web",
        type=Path,
        metavar="FOLDER",
        help="write a page there instead, which translates in a browser by itself: static files for any host",
    )
    made.add_argument(
        "--onnxruntime-web", type=Path, metavar="FILE", help="for --web, the npm package of this name, version 1.30.0"
    )
    made.add_argument(
        "--precision",
        choices=PRECISIONS,
        metavar="NAME",
        help=f"what products are rounded to: {' or '.join(PRECISIONS)}; int8 is smaller and faster, and changes a "
        f"translation here and there (default: {PRECISIONS[0]}, with --web int8)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-export; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _export(parser().parse_args(arguments)))


def _export(options: argparse.Namespace) -> None:
    from nmt.cli.models import read_model_paths
    from nmt.models.model_file import EXPORT

    is_page = options.web is not None
    option, what, last = ("--web", "page", LAST) if is_page else ("--output", "export", EXPORT)
    folder: Path | None = options.web if is_page else options.output
    package: Path | None = options.onnxruntime_web
    problems = missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run"),
            f"{option} FOLDER": (folder, "where the export goes; or --web FOLDER for a page"),
            "--onnxruntime-web FILE": (package if is_page else "", f"the package that curl -O {ADDRESS} fetches"),
        }
    )
    if package and not is_page:
        problems.append("--onnxruntime-web has an effect only with --web")
    paths = read_model_paths([options.model] if options.model else None, problems)
    files = [file.name for file in folder.iterdir()] if folder and folder.is_dir() else []
    if files and last not in files:
        problems.append(f"{option} {folder}: holds other files, and no {what}; give a new folder")
    with collected(problems):
        runtime = runtime_of(package) if is_page and package else []
    refuse(problems)
    assert folder is not None
    from nmt.decoding.exports import export_graphs, save_export

    precision = options.precision or ("int8" if is_page else "float32")
    model, graphs = export_graphs(paths[0], precision)
    with failing_as(str(folder)):
        if is_page:
            from nmt.web.export import in_half, write_page

            write_page(folder, model, in_half(graphs) if precision == "int8" else graphs, runtime)
        else:
            save_export(folder, model, graphs, precision)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(f"{PROGRAM}: {folder}: {precision}, {size:.1f} MB", file=sys.stderr)
