"""nmt-export: a model as a file that translates without PyTorch, and that other programs can use, or as a page.

Wiring only: model file → graphs → an export, or the folder of a page.
"""

import argparse
import sys
from pathlib import Path

from nmt.cli.options import missing, without_effect
from nmt.cli.outputs import check_outputs, failing_as
from nmt.cli.parser import Parser, command
from nmt.errors import collected, refuse
from nmt.web.package import ADDRESS, files_of, runtime_of

PROGRAM = "nmt-export"
EXPORTED_IN = ("float32", "int8")


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Write a model as a file for ONNX Runtime, which translates on a CPU without PyTorch.",
        epilog="nmt-translate, nmt-serve, and others take it as a model, also where only nmt-runtime is "
        "installed. Other programs run its graphs with ONNX Runtime.",
    )
    made.add_argument("--model", type=Path, metavar="PATH", help="a model file, or a run folder (its best), required")
    where = made.add_mutually_exclusive_group()
    where.add_argument("--output", metavar="FILE", help="save the export; any name will do, such as en-de.safetensors")
    where.add_argument(
        "--web",
        type=Path,
        metavar="FOLDER",
        help="write a page instead, which translates in a browser by itself: static files for any host",
    )
    made.add_argument("--onnxruntime-web", type=Path, help="for --web, the npm package of this name, version 1.30.0")
    made.add_argument(
        "--precision",
        choices=EXPORTED_IN,
        metavar="NAME",
        help=f"what products are computed in: {' or '.join(EXPORTED_IN)}; int8 is smaller and faster, and changes a "
        f"translation here and there (default: {EXPORTED_IN[0]}, with --web int8)",
    )
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    from nmt.cli.models import kept, read_model_paths

    output: str | None = options.output
    folder: Path | None = options.web
    package: Path | None = options.onnxruntime_web
    problems += missing(
        {
            "--model PATH": (options.model, "a model file, or the folder of a run"),
            "--output FILE": (output or folder, "where the export goes; or --web FOLDER for a page"),
            "--onnxruntime-web FILE": (package if folder else "", f"the package that curl -O {ADDRESS} fetches"),
        }
    )
    problems += without_effect(vars(options), {"onnxruntime_web": ("web",)})
    paths = read_model_paths([options.model] if options.model else None, problems)
    check_outputs({"--output": output}, problems, others=kept(paths), file="an export")
    if folder and folder.is_dir() and [*folder.iterdir()] and not files_of(folder):
        problems.append(f"--web {folder}: holds other files, and no page of nmt-export; give a new folder")
    with collected(problems):
        runtime = runtime_of(package) if folder and package else []
    refuse(problems)
    from nmt.decoding.exports import export_graphs, save_export

    precision = options.precision or ("int8" if folder else "float32")
    model, graphs = export_graphs(paths[0], precision)
    if folder is not None:
        from nmt.web.export import write_page

        with failing_as(str(folder)):
            write_page(folder, model, graphs, runtime)
        written = [*folder.iterdir()]
    else:
        assert output is not None
        written = [Path(output).resolve()]
        with failing_as(output):
            save_export(written[0], model, graphs, precision)
    size = sum(file.stat().st_size for file in written) / 1e6
    print(f"{PROGRAM}: {output or folder}: {precision}, {size:.1f} MB", file=sys.stderr)
