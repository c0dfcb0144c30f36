"""Exports: a model for ONNX Runtime alone, as a model file with graphs (see `graph`) in place of weights.

They are written with PyTorch, and read without it.
"""

import re
from pathlib import Path
from textwrap import shorten

import numpy as np

from nmt.decoding.graph_files import Graphs
from nmt.decoding.runtime import Engine
from nmt.errors import DamagedFile, UserError
from nmt.models.model_file import Exported, ModelFile, load_model, rebuild, save_model
from nmt.symbols import BEGIN, END

# A weight that is in another file has its name under the key "location", the first field, of 8 bytes, of an entry. Some
# releases of ONNX Runtime read any file, and a stranger may write the numbers 10 and 8 longer than needed.
_IN_ANOTHER_FILE = re.compile(rb"(?:\x0a|\x8a\x80*\x00)(?:\x08|\x88\x80*\x00)location")


def export_graphs(path: Path, precision: str) -> tuple[ModelFile, Graphs]:
    """A model file with its graphs, for any machine. Raises UserError where it is damaged or has none."""
    from nmt.decoding.graph import checked_export

    model = load_model(path)
    graphs = checked_export(rebuild(model), precision, among=False)
    if graphs is None:
        raise UserError(f"{path}: cannot be exported: ONNX Runtime does not compute what a part of this model computes")
    return model, graphs


def save_export(path: Path, model: ModelFile, graphs: Graphs, precision: str) -> None:
    """Write an export so that a crash leaves the old file or the new one. Raises OSError."""
    parameters = sum(weight.numel() for weight in model.weights.values())
    about = {"precision": precision, "parameters": parameters, "graphs": graphs._asdict()}
    save_model(path, model._replace(weights={}, exported=Exported.model_validate(about)))


def checked_graphs(path: Path, model: ModelFile) -> Graphs:
    """The graphs of an export that has been read, which compute a step. Raises UserError unless there are any."""
    assert model.exported is not None
    contents = model.exported.graphs
    if contents.keys() != set(Graphs._fields) or any(map(_IN_ANOTHER_FILE.search, contents.values())):
        raise DamagedFile(f"{path}: damaged: its graphs are not those that nmt-export writes")
    graphs = Graphs(**contents)
    try:
        engine = Engine(graphs, 1)
        state, tokens = engine.start(np.array([[END]]), np.array([1]), coverage=False), np.array([BEGIN])
        for _ in range(2):
            _, state = engine.step(tokens, state.select(np.array([[0]]), 1), None)
    except Exception as error:  # ONNX Runtime has a class for each of its reasons
        reason = shorten(str(error), 200, placeholder=" …")
        raise UserError(f"{path}: its graphs cannot be computed with the ONNX Runtime here ({reason})") from error
    if engine.vocabulary != model.sizes[1]:
        raise UserError(f"{path}: damaged: its parts do not fit together (its graphs are over another vocabulary)")
    return graphs
