#!/usr/bin/env python3
"""Run notebooks from the first cell to the last, as a reader would, and stop at the first cell that fails.

    python scripts/run_notebooks.py notebooks/*.ipynb

It needs no Jupyter, since the notebooks are plain Python, so that they can be tested wherever the toolkit is. A cell
may write to standard output, draw with matplotlib, and end with an expression, whose value is shown. With --write, all
that is stored in the notebook, as Jupyter does.
"""

import argparse
import ast
import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

DOTS = 72  # per inch, of pictures that are stored: a notebook is to stay small


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--write", action="store_true", help="store what the cells write and draw in the notebook")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in this process and folder
    options = parser.parse_args()
    if options.here:
        return run(options.notebooks[0], write=options.write)
    for notebook in options.notebooks:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            arguments = [notebook.resolve(), "--here", *(["--write"] if options.write else [])]
            code = subprocess.run(
                [sys.executable, Path(__file__).resolve(), *arguments],
                cwd=folder,
                env={**os.environ, "MPLBACKEND": "agg"},
                check=False,
            ).returncode
        if code:
            return code
        print(f"{notebook.name}: {time.perf_counter() - began:.0f} s", flush=True)
    return 0


def run(path: Path, *, write: bool) -> int:
    """Run a notebook in this process; 1 if a cell fails."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        source = "".join(cell["source"])
        try:
            cell["outputs"] = outputs(source, names, f"{path.name}, code cell {number}")
        except Exception:
            print(f"{path.name}: code cell {number} failed:\n\n{source}\n", file=sys.stderr)
            traceback.print_exc()
            return 1
        cell["execution_count"] = number
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def outputs(source: str, names: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """Run a cell among the `names` of those before it; what it shows, in the form that notebooks have."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    printed, result = io.StringIO(), []
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), place, "exec"), names)
        value = eval(compile(ast.Expression(last.value), place, "eval"), names) if isinstance(last, ast.Expr) else None
    if text := printed.getvalue():
        result.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        result.append(shown({"text/plain": repr(value).splitlines(keepends=True)}))
    if "matplotlib.pyplot" in sys.modules:
        from matplotlib import pyplot

        for number in pyplot.get_fignums():
            picture = io.BytesIO()
            pyplot.figure(number).savefig(picture, format="png", dpi=DOTS, bbox_inches="tight")
            result.append(shown({"image/png": base64.b64encode(picture.getvalue()).decode()}))
        pyplot.close("all")
    return result


def shown(data: dict[str, Any]) -> dict[str, Any]:
    return {"data": data, "metadata": {}, "output_type": "display_data"}


if __name__ == "__main__":
    sys.exit(main())
