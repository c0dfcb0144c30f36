"""A trained model in one file: weights, resolved configuration and subword models, in the safetensors format.

Nothing in the file is ever executed. The subword models are bytes here: text is the business of `nmt.data`.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.config import Config, dump_config, parse_config
from nmt.errors import UserError
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.tensor_file import below, read_tensors, write_tensors

KIND = "model"
BEST = "best.safetensors"


class ModelFile(NamedTuple):
    """What a model file holds."""

    config: Config
    weights: dict[str, Tensor]
    source_subwords: bytes  # a serialised sentencepiece model
    target_subwords: bytes  # the same bytes as the source's when the vocabulary is joint
    sizes: tuple[int, int]  # source and target vocabulary
    training: dict[str, Any]  # how the weights came about: updates, epochs, validation metrics


def save_model(path: Path, model: ModelFile) -> None:
    """Write `path` so that a crash leaves the old file or the new one."""
    tensors = {f"weights.{name}": weight for name, weight in model.weights.items()}
    tensors["subwords.source"] = _as_tensor(model.source_subwords)
    if model.target_subwords != model.source_subwords:
        tensors["subwords.target"] = _as_tensor(model.target_subwords)
    texts = {
        "config": dump_config(model.config),
        "sizes": json.dumps(model.sizes),
        "training": json.dumps(model.training),
    }
    write_tensors(path, tensors, kind=KIND, texts=texts)


def model_path(path: Path) -> Path:
    """The model file that the user means: `path` itself, or the best model of the run folder `path`."""
    if path.is_dir():
        if (path / BEST).is_file():
            return path / BEST
        raise UserError(
            f"{path}: holds no {BEST}; give a model file, or the folder of a run that has validated at least once"
        )
    if not path.exists():
        raise UserError(f"{path}: no such model file or run folder")
    return path


def load_model(path: Path) -> ModelFile:
    """Read a model file, or the best model of a run folder. Raises UserError when it is damaged or no model of ours."""
    path = model_path(path)
    tensors, texts = read_tensors(path, kind=KIND)
    try:
        source = tensors["subwords.source"].numpy().tobytes()
        target = tensors["subwords.target"].numpy().tobytes() if "subwords.target" in tensors else source
        source_size, target_size = json.loads(texts["sizes"])
        config = parse_config(texts["config"])
        if config.model.attention.score not in SCORES:
            raise UserError(f"model.attention.score: {config.model.attention.score}, which this version does not have")
        return ModelFile(
            config=config,
            weights=below(tensors, "weights."),
            source_subwords=source,
            target_subwords=target,
            sizes=(source_size, target_size),
            training=json.loads(texts["training"]),
        )
    except UserError as error:  # of another version of the toolkit, with other keys
        raise UserError(f"{path}: its configuration cannot be read: {'; '.join(error.messages)}") from error
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: damaged: its parts do not fit together ({error})") from error


def rebuild(model: ModelFile) -> Seq2Seq:
    """The network with the file's weights, in evaluation mode. Raises UserError when they do not fit."""
    network = build_model(model.config.model, source_size=model.sizes[0], target_size=model.sizes[1])
    try:
        network.load_state_dict(model.weights)
    except RuntimeError as error:
        raise UserError(f"the model's weights do not fit its configuration: {error}") from error
    return network.eval()


def _as_tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
