"""The graphs of a model, and the files in which they are kept in the user's cache from one command to the next.

The name of a file has the checksum of its content, so that a damaged one is not used. `graph` says what they compute.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import nmt
from nmt.errors import UserError
from nmt.files import file_digest, new_digest, written_atomically
from nmt.models.model_file import ModelFile

MEMORY = ("values", "keys", "lengths", "mask")
STEPS, NEXT = "steps", "next."
COLUMNS, BARRED = "columns", "barred"
BLOCK = 32  # columns of which at first only the largest is looked at
MOST_KEPT = 20  # models whose graphs are kept


class Graphs(NamedTuple):
    """Serialized ONNX models."""

    encoder: bytes
    step: bytes


def graph_key(model: ModelFile) -> str:
    """What tells the graphs of a model from others: all that its file says of it, and the sources that make them.

    The weights are in it by their checksum.
    """
    package = Path(nmt.__file__).parent
    sources = (file for folder in ("decoding", "models", "ops") for file in sorted((package / folder).glob("*.py")))
    digest = new_digest(repr(model._replace(weights={})).encode())
    for file in sources:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def kept_graphs(key: str) -> tuple[Path, Path] | None:
    """The files of the graphs with this key; None where there are none, or they are not what was written."""
    with suppress(OSError, RuntimeError):  # nobody's home
        files = [file for name in Graphs._fields for file in _folder().glob(f"{key}-{name}-*.onnx")]
        intact = [file for file in files if file.stem.endswith(file_digest(file))]
        return (intact[0], intact[1]) if len(intact) == len(Graphs._fields) else None
    return None


def keep_graphs(key: str, graphs: Graphs) -> None:
    """Keep them, as far as that is possible, in place of the oldest."""
    with suppress(OSError, RuntimeError, UserError):  # they are made again the next time
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in graphs._asdict().items():
            path = folder / f"{key}-{name}-{new_digest(content).hexdigest()}.onnx"
            with written_atomically(path, "wb") as file:
                file.write(content)
        by_age = sorted(folder.glob("*.onnx"), key=lambda file: file.stat().st_mtime)
        for old in by_age[: -MOST_KEPT * len(Graphs._fields)]:
            old.unlink(missing_ok=True)


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt-toolkit"
