"""Embeddings that start from pretrained vectors: the rows of pieces that a file has; all others keep their start.

It knows models and vocabularies; how files are read is the business of `nmt.data.word_vectors`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from nmt.config import Config, ModelConfig, Problem
from nmt.config.schema import EmbeddingsConfig
from nmt.data.subwords import Vocabularies
from nmt.data.word_vectors import WordVectors, check_size, read_vectors
from nmt.errors import Checking, UserError, checked
from nmt.files import new_digest
from nmt.models.model_file import LARGEST_WEIGHT
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import PIECES


class _Table(NamedTuple):
    """An embedding that starts from a file."""

    name: str
    side: int  # 0: source, 1: target
    key: str  # that names the file
    path: Path


class Pretrained(NamedTuple):
    """What the files of a configuration have for its vocabularies."""

    vectors: dict[str, WordVectors]  # by the names of the tables
    report: list[str]  # how many pieces each has, in lines for the log

    @property
    def fingerprint(self) -> str:
        """What tells these vectors from others."""
        digest = new_digest()
        for ids, values in self.vectors.values():
            digest.update(ids.tobytes() + values.tobytes())
        return digest.hexdigest()


def _tables(config: ModelConfig) -> Iterator[_Table]:
    """Where both sides share one embedding, it is that of the source, whichever side names the file."""
    embeddings = config.embeddings or EmbeddingsConfig()
    if config.tie_embeddings == "all":
        key = "source" if embeddings.source else "target"
        sides = [("source and target", key, embeddings.source or embeddings.target)]
    else:
        sides = [("source", "source", embeddings.source), ("target", "target", embeddings.target)]
    for side, (name, key, path) in enumerate(sides):
        if path is not None:
            yield _Table(name, side, f"model.embeddings.{key}", path)


def embedding_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the files as far as their first lines tell."""
    embeddings = config.model.embeddings
    for key in ("source", "target"):
        path = getattr(embeddings, key, None)
        if path is not None:
            try:
                check_size(path, config.model.embedding_size)
            except UserError as error:
                yield Problem(("model", "embeddings", key), "; ".join(error.messages))


def read_pretrained(config: ModelConfig, vocabularies: Vocabularies) -> Pretrained:
    """Read the files that `config` names; nothing where it names none. Raises UserError with all their mistakes."""
    return checked(_reading(config, vocabularies))


def _reading(config: ModelConfig, vocabularies: Vocabularies) -> Checking[Pretrained]:
    pretrained = Pretrained({}, [])
    for name, side, key, path in _tables(config):
        pieces = vocabularies[side].pieces(range(vocabularies[side].size))
        try:
            vectors = read_vectors(path, pieces, size=config.embedding_size, largest=LARGEST_WEIGHT)
        except UserError as error:
            yield from (f"{key}: {message}" for message in error.messages)
        else:
            count, most = len(vectors.ids), len(pieces) - len(PIECES)
            pretrained.vectors[name] = vectors
            pretrained.report.append(
                f"{name} embeddings: {count:,} of {most:,} pieces ({100 * count / most:.1f}%) from {path}"
            )
    return pretrained


def start_from(pretrained: Pretrained, model: Seq2Seq, config: ModelConfig) -> None:
    """Set the rows of the embeddings that the files have."""
    for table in _tables(config):
        ids, values = pretrained.vectors[table.name]
        with torch.no_grad():
            _embedding(model, table).weight[torch.from_numpy(ids)] = torch.from_numpy(values)


def freeze_pretrained(model: Seq2Seq, config: ModelConfig) -> None:
    """Keep the embeddings that start from a file as they are, where the configuration says so."""
    if config.embeddings is not None and config.embeddings.freeze:
        for table in _tables(config):
            _embedding(model, table).requires_grad_(False)


def _embedding(model: Seq2Seq, table: _Table) -> nn.Embedding:
    return model.target_embedding if table.side else model.source_embedding
