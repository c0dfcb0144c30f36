"""Starting from another model's weights: what a configuration inherits, may not change, and freezes.

It knows configurations and models. That a run folder keeps a copy of the model it started from is the folder's affair.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from torch import nn

from nmt.config import Config
from nmt.config.problems import in_words
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError
from nmt.models.model_file import ModelFile, load_model, model_path
from nmt.models.seq2seq import Seq2Seq

_FREE = {"dropout", "output_dropout"}  # keys of `model` that concern training, not the weights
_SEGMENTATION = {"type", "size", "joint", "lowercase", "normalisation", "character_coverage", "byte_fallback"}


class Origin(NamedTuple):
    """The model that a fine-tuning starts from."""

    path: Path  # of the file itself, also where a run folder was given
    model: ModelFile
    vocabularies: Vocabularies


def load_origin(path: Path) -> Origin:
    """Read a model file, or the best model of a run folder. Raises UserError when it is damaged or no model of ours."""
    path = model_path(path)
    model = load_model(path)
    try:
        vocabularies = Vocabularies.from_bytes(model.source_subwords, model.target_subwords)
    except ValueError as error:
        raise UserError(f"{path}: damaged: its subword model is {error}") from error
    return Origin(path, model, vocabularies)


def inherited(config: Config, origin: Origin) -> Config:
    """`config` with the architecture and the subword settings of the model it starts from.

    Keys that `config` gives explicitly must agree with the model's, except dropout. Subword sampling is a way to train,
    so `config` alone decides about it. Raises UserError with every disagreement.
    """
    theirs = origin.model.config
    problems = [*_disagreements(config.model, theirs.model, "model"), *_vocabulary_problems(config, origin)]
    if problems:
        raise UserError(*(f"{problem}; --init-from {origin.path} cannot change it" for problem in problems))
    subwords = config.subwords
    if not _given_models(config):
        subwords = theirs.subwords.model_copy(update={"sampling": subwords.sampling})
    return config.model_copy(update={"model": _merged(config.model, theirs.model), "subwords": subwords})


def load_weights(model: Seq2Seq, origin: Origin) -> None:
    """Give `model` the weights of its origin. Raises UserError when they do not fit."""
    try:
        model.load_state_dict(origin.model.weights)
    except RuntimeError as error:
        raise UserError(f"{origin.path}: damaged: its weights do not fit its configuration") from error


def _disagreements(new: BaseModel, old: BaseModel, path: str) -> Iterator[str]:
    """The explicitly given keys below `path` whose value differs from the model's."""
    for name in sorted(new.model_fields_set - _FREE):
        mine, theirs = getattr(new, name), getattr(old, name)
        if isinstance(mine, BaseModel) and type(mine) is type(theirs):
            yield from _disagreements(mine, theirs, f"{path}.{name}")
        elif mine != theirs:
            yield f"{path}.{name}: {_shown(theirs)} in the model, {_shown(mine)} here"


def _shown(value: Any) -> str:
    """A value in words; of a section with variants, such as `initialisation`, the name of the variant."""
    return in_words(value.name if isinstance(value, BaseModel) and hasattr(value, "name") else value)


def _given_models(config: Config) -> dict[str, Path]:
    """The subword models that the configuration names, by their keys."""
    settings = config.subwords
    keys = ("model", "source_model", "target_model")
    return {key: path for key in keys if (path := getattr(settings, key)) is not None}


def _vocabulary_problems(config: Config, origin: Origin) -> Iterator[str]:
    """Why the configured subwords are not those of the model. Given model files are compared byte by byte."""
    source, target = origin.model.source_subwords, origin.model.target_subwords
    wanted = {"model": (source, target), "source_model": (source,), "target_model": (target,)}
    given = _given_models(config)
    for key, path in given.items():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"subwords.{key}: {path}: cannot be read ({error.strerror or error})") from error
        if any(content != each for each in wanted[key]):
            yield f"subwords.{key}: {path} is another vocabulary than the model's, whose embeddings it would not fit"
    if not given:
        theirs = origin.model.config.subwords
        for name in sorted(config.subwords.model_fields_set & _SEGMENTATION):
            if getattr(config.subwords, name) != getattr(theirs, name):
                here = in_words(getattr(config.subwords, name))
                yield f"subwords.{name}: {in_words(getattr(theirs, name))} in the model, {here} here"


def _merged(new: BaseModel, old: BaseModel) -> BaseModel:
    """`old` with what `new` gives explicitly; sections are merged key by key."""
    update = {}
    for name in new.model_fields_set:
        mine, theirs = getattr(new, name), getattr(old, name)
        update[name] = _merged(mine, theirs) if isinstance(mine, BaseModel) else mine
    return old.model_copy(update=update)


def parts(model: Seq2Seq) -> dict[str, list[nn.Module]]:
    """The parts that training.freeze names: together all of the model, and none has a weight of another.

    The decoder has the initial state, the attention and the output layer with it; an output layer that is tied to the
    embeddings belongs to them.
    """
    embeddings = [model.source_embedding, model.own_target_embedding]
    decoder = [model.decoder, model.initial_state, model.output_layer]
    return {
        "embeddings": [module for module in embeddings if module is not None],
        "encoder": [model.encoder],
        "decoder": [module for module in decoder if module is not None],
    }


def freeze(model: Seq2Seq, names: Sequence[str]) -> None:
    """Keep the weights of these parts as they are. Raises UserError when nothing is left to train."""
    for name in names:
        for module in parts(model)[name]:
            module.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("training.freeze: names every part, so nothing is left to train")
