"""The weights that a run begins with: drawn from its seed, read from files of word vectors, or those of another model.

It knows configurations, models, and vocabularies: what a configuration inherits from a model and may not change, which
rows of the embeddings start from a file, and which parts are frozen. The run folder, of which it knows nothing, keeps a
copy of the model.

With another vocabulary than the model's, pieces that the model knows keep their weights; new ones start at the mean. A
piece is known if the old vocabulary of its side has the same text. Of each table with a row for every piece (the
embeddings, and the output layer where it is none of them), with the old rows E_v of the pieces v ∈ V and the special
symbols S:

    E'_w = E_w                                 for a known piece w
    E'_w = 1 / |V \\ S| Σ_{v ∈ V \\ S} E_v     for a new one

So a new piece is at first as probable as an average one, and reads as nothing in particular. All other weights stay.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.allowed import dotted
from nmt.config.problems import Problem
from nmt.config.resuming import differences, leaves
from nmt.config.schema import Config, EmbeddingsConfig, ModelConfig, Section
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.word_vectors import WordVectors, check_size, read_vectors
from nmt.errors import UserError, collected, counted, refuse
from nmt.models.model_file import LARGEST_WEIGHT, ModelFile, load_model, model_path
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.symbols import PIECES

_OF_TRAINING = {  # keys that concern training, not the weights
    "dropout",
    "word_dropout",
    "output_dropout",
    "fed_dropout",
    "attentional_dropout",
    "locked_dropout",
    "embeddings",
    "sampling",
    "symbols",
}
_ENOUGH_FOUND = 0.5  # of the pieces, to freeze all
_LANGUAGES = ("data.source_language", "data.target_language")
_NOT_OF_WEIGHTS = {*_OF_TRAINING, "initialization"}  # which is over once a model is trained


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


def starting_model(
    config: Config, vocabularies: Vocabularies, origin: Origin | None, pretrained: Sequence["Pretrained"]
) -> Seq2Seq:
    """The model as a run begins with it: weights from the seed, the files of vectors, or the model to start from."""
    torch.manual_seed(config.seed)
    source, target = vocabularies
    model = build_model(config.model, source_size=source.size, target_size=target.size)
    if origin is not None:
        is_same = vocabularies is origin.vocabularies
        weights = origin.model.weights
        model.load_state_dict(weights if is_same else with_vocabularies(weights, origin.vocabularies, vocabularies))
        freeze(model, config.training.freeze)
    for table in pretrained:
        ids, values = table.vectors
        with torch.no_grad():
            _embedding(model, table.side).weight[torch.from_numpy(ids)] = torch.from_numpy(values)
    if config.model.embeddings is not None and config.model.embeddings.freeze:
        for side in _files_of_vectors(config.model):
            _embedding(model, side).requires_grad_(False)
    return model


def parts(model: Seq2Seq) -> dict[str, list[nn.Module]]:
    """The parts that training.freeze names: they cover the whole model and share no weight.

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


# --------------------------------------------------------------------------------- what is inherited from another model


def inherited(config: Config, origin: Origin) -> tuple[Config, list[Problem]]:
    """`config` with the architecture and the subword settings of the model it starts from, and what contradicts these.

    Keys that `config` gives explicitly must agree with the model's, except dropout; every disagreement is a problem.
    With training.vocabulary: new, the subword settings are those of `config`. Subword sampling belongs to training, so
    `config` alone decides it, and further symbols. Embeddings start from no file, and are frozen by `training.freeze`
    alone.
    """
    theirs, subwords = origin.model.config, config.subwords
    model, compared = _merged(config.model, theirs.model), {"model"}
    if config.training.vocabulary != "new":
        subwords = theirs.subwords.model_copy(update={"sampling": subwords.sampling, "symbols": subwords.symbols})
        compared.add("subwords")
    given, same = leaves(config.model_dump(include=compared, exclude_unset=True)), _same_sizes(model, theirs.model)
    problems: list[Problem] = []
    for path, difference in differences(theirs, config, there="in the model").items():
        if path in given and _OF_TRAINING.isdisjoint(path) and dotted(path) not in same:
            both = difference.removeprefix(f"{dotted(path)}: ")
            problems.append(Problem(path, f"{both}; --init-from {origin.path} cannot change it"))
    embeddings = config.model.embeddings
    if embeddings is not None and (embeddings.freeze or embeddings != theirs.model.embeddings):
        message = (
            f"has no effect with --init-from {origin.path}, which takes the embeddings from the model; remove it, and "
            "list embeddings in training.freeze to keep them as they are"
        )
        problems.append(Problem(("model", "embeddings"), message))
    model = model.model_copy(update={"embeddings": None})
    return config.model_copy(update={"model": model, "subwords": subwords}), problems


def why_not_alike(model: ModelFile, other: ModelFile, *, name: str) -> list[str]:
    """Why the weights of a model do not mean what those of the `other`, called `name`, mean; nothing if they do."""
    reasons = []
    same = _same_sizes(model.config.model, other.config.model)
    for path, difference in differences(other.config, model.config, there=f"in {name}").items():
        key = dotted(path)
        of_weights = path[0] == "model" and _NOT_OF_WEIGHTS.isdisjoint(path) and key not in same
        if of_weights or key in _LANGUAGES:
            reasons.append(difference)
    for side in ("source", "target"):
        if getattr(model, f"{side}_subwords") != getattr(other, f"{side}_subwords"):
            reasons.append(f"another {side} vocabulary than that of {name}")
    return reasons


def _same_sizes(first: Any, second: Any) -> set[str]:
    """Which sizes two configurations of models have in common, where null stands for the decoder's hidden_size."""
    sizes = {
        "model.attention.size": [one.attention.size or one.decoder.hidden_size for one in (first, second)],
        "model.decoder.output_size": [one.decoder.output_size or one.decoder.hidden_size for one in (first, second)],
    }
    return {key for key, (mine, theirs) in sizes.items() if mine == theirs}


def _merged(new: ModelConfig, old: ModelConfig) -> ModelConfig:
    """`old` with what `new` gives explicitly."""
    update = {}
    for name in new.model_fields_set:
        mine, theirs = getattr(new, name), getattr(old, name)
        is_alike = isinstance(mine, Section) and type(mine) is type(theirs)
        update[name] = _merged(mine, theirs) if is_alike else mine
    return old.model_copy(update=update)


# ---------------------------------------------------------------------------------------------- vocabularies of a model


def known_rows(old: Subwords, new: Subwords) -> Tensor:
    """For each piece of `new` its row in the tables of `old`, (new size,) int64, and -1 for a new piece.

    Special symbols have the same ids in both, whatever they are called.
    """
    special = len(PIECES)
    places = {piece: row for row, piece in enumerate(old.pieces(range(special, old.size)), start=special)}
    return torch.tensor([*range(special), *(places.get(piece, -1) for piece in new.pieces(range(special, new.size)))])


def with_vocabularies(weights: Mapping[str, Tensor], old: Vocabularies, new: Vocabularies) -> dict[str, Tensor]:
    """The weights of a model with the `old` vocabularies, for the `new` ones."""
    source, target = (known_rows(*sides) for sides in zip(old, new, strict=True))
    tables = {"source_embedding": source, "own_target_embedding": target, "output_layer": target}
    changed = dict(weights)
    for table, rows in tables.items():
        if (name := f"{table}.weight") in weights:
            mean = weights[name][len(PIECES) :].double().mean(0).to(weights[name].dtype)
            changed[name] = torch.where((rows >= 0)[:, None], weights[name][rows.clamp(min=0)], mean)
    return changed


def vocabulary_report(old: Vocabularies, new: Vocabularies) -> list[str]:
    """A line for each side, or one if both vocabularies are joint: how many of the new pieces the model knows."""
    is_joint = all(source is target for source, target in (old, new))
    lines = []
    for name, *sides in zip(["joint"] if is_joint else ["source", "target"], old, new, strict=False):
        rows = known_rows(*sides)[len(PIECES) :]
        known = int((rows >= 0).sum())
        lines.append(
            f"{name} vocabulary: {known:,} of {len(rows):,} pieces are known to the model, "
            f"{counted(len(rows) - known, 'starts', 'start')} at the mean"
        )
    return lines


# --------------------------------------------------------------------------------------------------- files of vectors


class Pretrained(NamedTuple):
    """What a file of vectors has for the vocabulary of a side; one for both sides where they share an embedding."""

    side: str  # source or target
    vectors: WordVectors
    report: str  # how many pieces it has: a line for the log


def _files_of_vectors(config: ModelConfig) -> dict[str, tuple[str, Path]]:
    """The sides whose embeddings start from a file, with its key and path.

    Where both sides share one embedding, it is that of the source, whichever side names the file.
    """
    embeddings = config.embeddings or EmbeddingsConfig()
    files = {key: (key, path) for key, path in (("source", embeddings.source), ("target", embeddings.target)) if path}
    if config.tie_embeddings == "all" and "target" in files:
        files = {"source": files["target"]}
    return files


def embedding_problems(config: Config) -> list[Problem]:
    """What is wrong with the files of vectors as far as their first lines tell."""
    found = []
    for key, path in _files_of_vectors(config.model).values():
        problems: list[str] = []
        with collected(problems):
            check_size(path, config.model.embedding_size)
        found += [Problem(("model", "embeddings", key), message) for message in problems]
    return found


def read_pretrained(config: ModelConfig, vocabularies: Vocabularies) -> list[Pretrained]:
    """Read the files of vectors that `config` names. Raises UserError with all their mistakes."""
    pretrained: list[Pretrained] = []
    problems: list[str] = []
    embeddings = config.embeddings or EmbeddingsConfig()
    for side, (key, path) in _files_of_vectors(config).items():
        subwords: Subwords = getattr(vocabularies, side)
        pieces = subwords.pieces(range(subwords.size))
        with collected(problems, of=f"model.embeddings.{key}"):
            vectors = read_vectors(path, pieces, size=config.embedding_size, largest=LARGEST_WEIGHT)
            count, most = len(vectors.ids), len(pieces) - len(PIECES)
            name = "source and target" if config.tie_embeddings == "all" else side
            report = f"{name} embeddings: {count:,} of {most:,} pieces ({100 * count / most:.1f}%) from {path}"
            if embeddings.freeze and count < _ENOUGH_FOUND * most:
                report = f"warning: {report}, and model.embeddings.freeze keeps the others random; set it to false"
            pretrained.append(Pretrained(side, vectors, report))
    refuse(problems)
    return pretrained


def _embedding(model: Seq2Seq, side: str) -> nn.Embedding:
    return model.source_embedding if side == "source" else model.target_embedding
