"""The graphs of a model, and the files in which they are kept in the user's cache from one command to the next.

They are kept as ONNX Runtime has optimized them, their weights in files of their own that it maps into memory, as
entries of a cache (`nmt.data.cache`), so that what is damaged is not used. `graph` says what they compute.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import distributions
from inspect import isfunction
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import nmt
from nmt.data.cache import built, reused
from nmt.files import new_digest
from nmt.models.model_file import ModelFile

MEMORY = ("values", "keys", "lengths", "mask")
STEPS, NEXT = "steps", "next."
COLUMNS, BARRED = "columns", "barred"
BLOCK = 32  # columns of which at first only the largest is looked at
MOST_KEPT = 20  # folders


class Graphs(NamedTuple):
    """Serialized ONNX models."""

    encoder: bytes
    step: bytes


def graph_key(model: ModelFile, precision: str) -> str | None:
    """What tells the graphs of a model from others: what its file says, the weights by their checksum, and the programs
    that make the graphs. None where these are not only the package's, as with a score from a notebook."""
    if not all(part.__module__.startswith("nmt.") for part in _parts_of_models()):
        return None
    small = model._replace(weights={}, source_subwords=b"", target_subwords=b"")
    names = ("onnx", "onnxruntime", "torch")  # the second alone is enough for exports
    makers = [f"{name} {one.version}" for name in names for one in distributions(name=name)]
    digest = new_digest(f"{small} {makers} {platform.machine()}".encode())
    digest.update(model.source_subwords + model.target_subwords)
    package = Path(nmt.__file__).parent
    for pattern in ("decoding/graph*.py", "decoding/int8.py", "decoding/runtime.py", "models/*.py", "ops/*.py"):
        for file in sorted(package.glob(pattern)):
            digest.update(file.read_bytes())
    return f"{digest.hexdigest()}-{precision}"


def _parts_of_models() -> Iterator[Any]:
    """The classes that compute models in this process, and their methods."""
    loaded = [vars(module) for name, module in [*sys.modules.items()] if name.startswith("nmt.models.")]
    values = [value for names in loaded for value in names.values()]
    registered = [member for family in values if isinstance(family, dict) for member in family.values()]
    for kind in (*values, *registered):
        if isinstance(kind, type) and hasattr(kind, "parameters"):
            yield from (kind, *filter(isfunction, vars(kind).values()))


def kept_graphs(key: str) -> Path | None:
    """The folder of the graphs with this key; None where there is none, or its files are not what was written."""
    with suppress(OSError, RuntimeError):  # nobody's home
        folder = reused(_place() / key, lambda folder, _: folder, lambda _: None)
        if folder is not None:
            with suppress(OSError):
                os.utime(folder)  # the last that were used are kept
        return folder
    return None


def keep_graphs(key: str, write: Callable[[Path], object]) -> Path | None:
    """Keep what `write` writes into a folder, in place of the oldest; returns the folder, None where that cannot be.

    What another process has kept meanwhile stays, as it may be reading it.
    """
    with suppress(Exception):  # they are made again the next time
        place = _place()
        with built(place / key) as (folder, _):
            write(folder)
        folders = [folder for folder in place.iterdir() if folder.is_dir()]
        for old in sorted(folders, key=lambda folder: folder.stat().st_mtime)[:-MOST_KEPT]:
            rmtree(old, ignore_errors=True)
        return place / key
    return None


def _place() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA", ""))  # the latter on Windows
    return (given if given.is_absolute() else Path.home() / ".cache") / "nmt-toolkit"
