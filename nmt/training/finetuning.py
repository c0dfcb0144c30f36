"""Starting from another model's weights: what a configuration inherits, may not change, and freezes.

It knows configurations and models; the run folder takes care of its copy of the model.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from torch import nn

from nmt.config import Config, Inheritance, ModelConfig, Problem
from nmt.config.allowed import dotted
from nmt.config.problems import in_words
from nmt.config.schema import MODELS, TRAINED_SUBWORDS, SubwordsConfig, existing_models
from nmt.config.yaml_text import KeyPath
from nmt.data.prepare import named_subwords
from nmt.data.segmentation import WORD_START
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError
from nmt.models.model_file import ModelFile, load_model, model_path
from nmt.models.seq2seq import Seq2Seq

# Keys of `model` that concern training, not the weights:
_FREE = {
    "dropout",
    "word_dropout",
    "output_dropout",
    "fed_dropout",
    "attentional_dropout",
    "locked_dropout",
    "embeddings",
}
_SIZES = {("model", "attention", "size"), ("model", "decoder", "output_size")}  # null: the decoder's hidden_size
_SEGMENTATION = {"joint", "joiner", *TRAINED_SUBWORDS}


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
        vocabularies = Vocabularies.from_bytes(model.source_subwords, model.target_subwords, model.sizes)
    except ValueError as error:
        raise UserError(f"{path}: damaged: its subword model is {error}") from error
    return Origin(path, model, vocabularies)


def inherited(config: Config, origin: Origin, *, is_begun: bool = False) -> Inheritance:
    """`config` with the architecture and the subword settings of the model it starts from.

    Keys that `config` gives explicitly must agree with the model's, except dropout; every disagreement is a problem.
    With training.vocabulary: new, the subword settings are those of `config`. Subword sampling belongs to training, so
    `config` alone decides it. Embeddings start from no file, and are frozen by `training.freeze` alone.
    """
    theirs, subwords = origin.model.config, config.subwords
    models = existing_models(subwords)
    differing = list(_differences(config.model, theirs.model))
    embeddings = config.model.embeddings
    freezing = embeddings is not None and embeddings.freeze and not is_begun  # once it was taken and had no effect
    if not freezing and embeddings not in (None, theirs.model.embeddings):
        differing.append(Problem(("model", "embeddings"), "the embeddings are those of the model"))
    is_new = config.training.vocabulary == "new"
    if not models and not is_new:
        keys = subwords.model_fields_set & _SEGMENTATION
        differing += _disagreements(subwords, theirs.subwords, ("subwords",), keys)
        subwords = theirs.subwords.model_copy(update={"sampling": subwords.sampling})
    fixed = f"; --init-from {origin.path} cannot change it"
    problems = [problem._replace(message=f"{problem.message}{fixed}") for problem in differing]
    if freezing:
        message = (
            f"has no effect with --init-from {origin.path}, which takes the embeddings from the model; remove it, and "
            "list embeddings in training.freeze to keep them as they are"
        )
        problems.append(Problem(("model", "embeddings"), message))
    model = _merged(config.model, theirs.model).model_copy(update={"embeddings": None})
    completed = config.model_copy(update={"model": model, "subwords": subwords})
    known = existing_models(theirs.subwords) if is_begun else {}  # files that may be gone since the run began
    files = {key: path for key, path in models.items() if known.get(key) != path or path.exists()}
    return Inheritance(
        completed, [*problems, *([] if is_new else _vocabulary_problems(files, config.subwords, origin))]
    )


def language_warning(config: Config, origin: Origin) -> str | None:
    """The message about a model to start from that translates between other languages; None if they are the same."""
    ours, theirs = ((one.data.source_language, one.data.target_language) for one in (config, origin.model.config))
    if [name.lower() for name in ours] == [name.lower() for name in theirs]:
        return None
    return (
        f"data.source_language and data.target_language are {' and '.join(ours)}, but {origin.path} translates from "
        f"{' to '.join(theirs)}; its weights and subwords are those of other text, unless only the names differ"
    )


def why_not_alike(model: ModelFile, other: ModelFile, *, name: str) -> Iterator[str]:
    """Why the weights of a model do not mean what those of the `other`, called `name`, mean; nothing if they do."""
    first, second = model.config.model, other.config.model
    differing = [*_differences(first, second), *_differences(second, first)]
    for path in dict.fromkeys(problem.path for problem in differing):  # a file of an older version lacks some keys
        if path[:2] != ("model", "initialisation"):  # which is over once a model is trained
            theirs, mine = _at(other.config, path), _at(model.config, path)
            yield f"{dotted(path)}: {_shown(theirs)} in {name}, {_shown(mine)} here"
    for side in ("source", "target"):
        mine, theirs = (getattr(one, f"{side}_subwords") for one in (model, other))
        if mine != theirs:
            yield f"another {side} vocabulary than that of {name}"


def _differences(new: ModelConfig, old: ModelConfig) -> Iterator[Problem]:
    """The explicitly given keys of `new` that make another model than `old`; a null size is the one that it means."""
    completed = _merged(new, old)
    for problem in _disagreements(new, old, ("model",)):
        if problem.path not in _SIZES or _size(completed, problem.path) != _size(old, problem.path):
            yield problem


def _size(model: Any, path: KeyPath) -> Any:
    """The size at a path of `_SIZES`."""
    size = _at(model, path[1:])
    return model.decoder.hidden_size if size is None else size


def _at(config: Any, path: KeyPath) -> Any:
    for part in path:
        config = getattr(config, str(part))
    return config


def _disagreements(new: BaseModel, old: BaseModel, path: KeyPath, keys: Set[str] | None = None) -> Iterator[Problem]:
    """The explicitly given keys below `path` whose value differs from the model's; None: all but those of `_FREE`."""
    for name in sorted(new.model_fields_set - _FREE if keys is None else keys):
        mine, theirs = getattr(new, name), getattr(old, name)
        if isinstance(mine, BaseModel) and type(mine) is type(theirs):
            yield from _disagreements(mine, theirs, (*path, name))
        elif mine != theirs:
            yield Problem((*path, name), f"{_shown(theirs)} in the model, {_shown(mine)} here")


def _shown(value: Any) -> str:
    """A value in words; of a section with variants, such as `initialisation`, the name of the variant."""
    return in_words(value.name if isinstance(value, BaseModel) and hasattr(value, "name") else value)


def _vocabulary_problems(files: Mapping[str, Path], subwords: SubwordsConfig, origin: Origin) -> Iterator[Problem]:
    """Why the `files`, by key, are not the vocabularies of the model, byte by byte apart from its tags."""
    source, target = origin.vocabularies
    for key, path in files.items():
        try:
            content = path.read_bytes() if key in MODELS else named_subwords(subwords, key, path).model
        except OSError as error:
            yield Problem(("subwords", key), f"{path}: cannot be read ({error.strerror or error})")
            continue
        except UserError as error:
            yield from (Problem(("subwords", key), message) for message in error.messages)
            continue
        sides = {"source": [source], "target": [target]}.get(key.partition("_")[0], [source, target])
        if not all(_is_without_tags(content, expected) for expected in sides):
            ways_out = "leave this key out, or give training.vocabulary: new to change to this one"
            message = f"{path} is not the vocabulary of {origin.path}, which --init-from keeps; {ways_out}"
            yield Problem(("subwords", key), message)


def _is_without_tags(content: bytes, expected: Subwords) -> bool:
    """Whether a serialized model is the expected one, or what that was before its last pieces were added as tags."""
    if content == expected.model:
        return True
    try:
        model = Subwords(content)
        added = expected.pieces(range(model.size, expected.size))
        return bool(added) and model.with_symbols(tag.removeprefix(WORD_START) for tag in added).model == expected.model
    except ValueError:  # no model, or another one
        return False


def _merged(new: BaseModel, old: BaseModel) -> BaseModel:
    """`old` with what `new` gives explicitly; sections are merged key by key."""
    update = {}
    for name in new.model_fields_set:
        mine, theirs = getattr(new, name), getattr(old, name)
        if isinstance(mine, BaseModel):
            mine = _merged(mine, theirs) if type(mine) is type(theirs) else theirs
        update[name] = mine
    return old.model_copy(update=update)


def parts(model: Seq2Seq) -> dict[str, list[nn.Module]]:
    """The parts that training.freeze and training.rate_factors name: they cover the whole model and share no weight.

    The decoder includes the initial state, the attention and the output layer, unless the embeddings are the output
    layer.
    """
    embeddings = [model.source_embedding, model.own_target_embedding]
    decoder = [model.decoder, model.initial_state, model.output_layer]
    return {
        "embeddings": [module for module in embeddings if module is not None],
        "encoder": [model.encoder],
        "decoder": [module for module in decoder if module is not None],
    }


def freeze(model: Seq2Seq, names: Sequence[str]) -> None:
    """Keep the weights of these parts as they are."""
    for name in names:
        for module in parts(model)[name]:
            module.requires_grad_(False)
