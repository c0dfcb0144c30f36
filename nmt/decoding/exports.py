"""Exports: a model for ONNX Runtime alone, as files in a folder.

    encoder.onnx, step.onnx    the graphs (see `graph`), which other programs can run as well
    export.safetensors         what a model file has besides weights, and the checksums of the graphs

They are written with PyTorch, and read without it.
"""

from pathlib import Path
from textwrap import shorten

import numpy as np

from nmt.decoding.graph_files import Graphs
from nmt.decoding.runtime import Engine
from nmt.errors import DamagedFile, UserError
from nmt.files import new_digest, written_atomically
from nmt.models.model_file import EXPORT, Exported, ModelFile, load_model, rebuild, save_model
from nmt.symbols import BEGIN, END


def export_graphs(path: Path, precision: str) -> tuple[ModelFile, Graphs]:
    """A model file with its graphs, for any machine. Raises UserError where it is damaged or has none."""
    from nmt.decoding.graph import checked_export

    model = load_model(path)
    graphs = checked_export(rebuild(model), precision, among=False)
    if graphs is None:
        raise UserError(f"{path}: cannot be exported: ONNX Runtime does not compute what a part of this model computes")
    return model, graphs


def save_export(folder: Path, model: ModelFile, graphs: Graphs, precision: str) -> None:
    """Write an export; the last file makes it complete. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    for name, content in graphs._asdict().items():
        with written_atomically(folder / f"{name}.onnx", "wb") as file:
            file.write(content)
        digests[f"{name}.onnx"] = new_digest(content).hexdigest()
    parameters = sum(weight.numel() for weight in model.weights.values())
    exported = Exported(precision=precision, parameters=parameters, digests=digests)
    save_model(folder / EXPORT, model._replace(weights={}, exported=exported))


def read_export(path: Path, model: ModelFile) -> Graphs:
    """The graphs beside the file of an export, which compute a step. Raises UserError unless they are its own."""
    assert model.exported is not None
    contents = {}
    for name in Graphs._fields:
        file = path.with_name(f"{name}.onnx")
        try:
            contents[name] = file.read_bytes()
        except OSError as error:
            raise UserError(
                f"{file}: cannot be read ({error.strerror}); an export is all files of its folder"
            ) from error
        if new_digest(contents[name]).hexdigest() != model.exported.digests.get(file.name):
            raise DamagedFile(f"{file}: damaged, or of another export than {path} (the checksums differ)")
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
