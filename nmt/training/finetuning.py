"""Starting from another model's weights: what a configuration inherits, may not change, and freezes."""

from collections.abc import Iterator

from pydantic import BaseModel
from torch import nn

from nmt.config import Config
from nmt.errors import UserError
from nmt.models.model_file import ModelFile
from nmt.models.seq2seq import Seq2Seq

_FREE = {"dropout", "output_dropout", "initialisation"}  # keys of `model` that do not change the shape of the weights
_SEGMENTATION = {"type", "size", "joint", "lowercase", "normalisation", "character_coverage", "byte_fallback"}


def inherited(config: Config, origin: ModelFile) -> Config:
    """`config` with the architecture and subword settings of the model it starts from.

    Keys that `config` gives explicitly must agree with the model's. Raises UserError with every disagreement.
    """
    problems = [
        *_disagreements(config.model, origin.config.model, "model"),
        *_vocabulary_problems(config, origin),
    ]
    if problems:
        raise UserError(*(f"{problem}: --init-from cannot change it" for problem in problems))
    subwords = origin.config.subwords.model_copy(update={"sampling": config.subwords.sampling})
    return config.model_copy(update={"model": _merged(config.model, origin.config.model), "subwords": subwords})


def _disagreements(new: BaseModel, old: BaseModel, path: str) -> Iterator[str]:
    """The explicitly given keys below `path` whose value differs from the model's."""
    for name in sorted(new.model_fields_set - _FREE):
        mine, theirs = getattr(new, name), getattr(old, name)
        if isinstance(mine, BaseModel) and isinstance(theirs, BaseModel):
            yield from _disagreements(mine, theirs, f"{path}.{name}")
        elif mine != theirs:
            yield f"{path}.{name}: {theirs} in the model, {mine} here"


def _vocabulary_problems(config: Config, origin: ModelFile) -> Iterator[str]:
    """Why the configured subwords are not those of the model. Given model files are compared byte by byte."""
    settings = config.subwords
    given = {"model": settings.model, "source_model": settings.source_model, "target_model": settings.target_model}
    for key, path in given.items():
        theirs = origin.target_subwords if key == "target_model" else origin.source_subwords
        try:
            same = path is None or path.read_bytes() == theirs
        except OSError as error:
            raise UserError(f"subwords.{key}: {path}: cannot be read ({error.strerror})") from error
        if not same:
            yield f"subwords.{key}: {path} is another vocabulary than the model's, and its embeddings would not fit"
    if not any(given.values()):
        for name in sorted(settings.model_fields_set & _SEGMENTATION):
            mine, theirs_too = getattr(settings, name), getattr(origin.config.subwords, name)
            if mine != theirs_too:
                yield f"subwords.{name}: {theirs_too} in the model, {mine} here"


def _merged(new: BaseModel, old: BaseModel) -> BaseModel:
    """`old` with what `new` gives explicitly; sections are merged key by key."""
    update = {}
    for name in new.model_fields_set:
        mine, theirs = getattr(new, name), getattr(old, name)
        nested = isinstance(mine, BaseModel) and type(mine) is type(theirs) and name != "initialisation"
        update[name] = _merged(mine, theirs) if nested else mine
    return old.model_copy(update=update)


def parts(model: Seq2Seq) -> dict[str, list[nn.Module]]:
    """The parts that training.freeze names. The decoder has the initial state, attention and output layer with it."""
    embeddings = [model.source_embedding, model.own_target_embedding]
    decoder = [model.decoder, model.initial_state, model.output_layer]
    return {
        "embeddings": [module for module in embeddings if module is not None],
        "encoder": [model.encoder],
        "decoder": [module for module in decoder if module is not None],
    }


def freeze(model: Seq2Seq, names: list[str]) -> None:
    """Keep the weights of these parts as they are. Raises UserError when nothing is left to train."""
    for name in names:
        for module in parts(model)[name]:
            module.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("training.freeze: names every part, so nothing is left to train")
