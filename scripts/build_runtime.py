#!/usr/bin/env python3
"""Build the wheel of nmt-runtime, which translates with exports: nmt-toolkit without PyTorch.

    python scripts/build_runtime.py [FOLDER]    # by default dist; needs hatchling

It has the files and commands of nmt-toolkit, and of its requirements only those that translating has. What needs
another says so (`nmt.errors.needing_toolkit`).
"""

import argparse
import re
from pathlib import Path
from typing import Any

from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.core import load_toml

from nmt.errors import LEFT_OUT

ROOT = Path(__file__).resolve().parent.parent
NAME = "nmt-runtime"
EXTRAS = ("detect", "localization", "serve", "text")


def configuration() -> dict[str, Any]:
    """pyproject.toml as nmt-runtime would have it."""
    config = load_toml(str(ROOT / "pyproject.toml"))
    project = config["project"]
    extras, toolkit = project["optional-dependencies"], project["name"]
    project["name"] = NAME
    project["description"] = "Neural machine translation with models of nmt-toolkit, by ONNX Runtime, without PyTorch"
    project["readme"] = "docs/runtime.md"
    project["keywords"] = ["neural machine translation", "ONNX Runtime"]
    project["dependencies"] = [one for one in project["dependencies"] if re.split(r"[^\w-]", one)[0] not in LEFT_OUT]
    project["optional-dependencies"] = {
        name: [one.replace(f"{toolkit}[", f"{NAME}[") for one in extras[name]] for name in EXTRAS
    }
    return config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", default="dist", metavar="FOLDER", help="by default dist")
    folder = parser.parse_args().folder
    builder = WheelBuilder(str(ROOT), config=configuration())
    print(next(builder.build(directory=folder, versions=["standard"])))


if __name__ == "__main__":
    main()
