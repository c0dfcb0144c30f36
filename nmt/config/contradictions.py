"""Checks between keys: combinations that contradict each other, and options that would have no effect.

Checks of one key by itself are constraints in `schema.py`. An option counts as without effect only when its value
differs from the default, so that a resolved configuration, which spells out every key, passes.
"""

from collections.abc import Iterator

from nmt.config.contradictions_subwords import subword_contradictions
from nmt.config.contradictions_training import training_contradictions
from nmt.config.problems import Problem
from nmt.config.schema import Config, ParallelFiles, changed
from nmt.config.yaml_text import KeyPath


def contradictions(config: Config) -> Iterator[Problem]:
    """Every problem between keys."""
    yield from _data(config)
    yield from subword_contradictions(config)
    yield from _tied_embeddings(config)
    yield from _copied_state(config)
    yield from training_contradictions(config)
    yield from _decoding(config)


def _data(config: Config) -> Iterator[Problem]:
    valid = config.data.valid
    pairs: list[tuple[KeyPath, ParallelFiles]] = [(("data", "valid"), valid)]
    pairs += [(("data", "train", index), pair) for index, pair in enumerate(config.data.train)]
    for path, pair in pairs:
        if pair.source == pair.target:
            reads: tuple[KeyPath, ...] = ((*path, "source"), (*path, "target"))
            yield Problem(path, f"source and target are the same file, {pair.source}", reads)
        if path != ("data", "valid") and pair == valid:
            message = "these are the files of data.valid; validation needs sentences that are not trained on"
            yield Problem(path, message, (path, ("data", "valid")))


def _tied_embeddings(config: Config) -> Iterator[Problem]:
    model, path = config.model, ("model", "tie_embeddings")
    tie, decoder = model.tie_embeddings, model.decoder
    if tie == "none":
        return
    if tie == "all" and not config.subwords.joint:
        message = (
            "all needs one vocabulary for both languages, but subwords.joint is false; use target, or set joint: true"
        )
        yield Problem(path, message, (("subwords", "joint"),))
    key = "hidden_size" if decoder.output_size is None else "output_size"
    size = decoder.output_size or decoder.hidden_size
    if size != model.embedding_size:
        reads: tuple[KeyPath, ...] = (
            ("model", "embedding_size"),
            ("model", "decoder", "output_size"),
            ("model", "decoder", "hidden_size"),
        )
        message = (
            f"{tie} needs an attentional vector as large as an embedding, but model.decoder.{key} is {size} and "
            f"model.embedding_size is {model.embedding_size}; set model.decoder.output_size: {model.embedding_size}, "
            f"or model.embedding_size: {size}"
        )
        yield Problem(path, message, reads)


def _copied_state(config: Config) -> Iterator[Problem]:
    encoder, decoder = config.model.encoder, config.model.decoder
    if decoder.initial_state != "copy":
        return
    wanted = {
        "cell": encoder.cell,
        "layers": encoder.layers,
        "hidden_size": encoder.hidden_size * (2 if encoder.bidirectional else 1),
    }
    for key, value in wanted.items():
        given = getattr(decoder, key)
        if given != value:
            both = " (its two directions together)" if key == "hidden_size" and encoder.bidirectional else ""
            message = (
                f"copy needs decoder states like the encoder's{both}: set model.decoder.{key}: {value} (now {given}), "
                "or use final, mean or zeros"
            )
            reads = (("model", "decoder", key), ("model", "encoder", key), ("model", "encoder", "bidirectional"))
            yield Problem(("model", "decoder", "initial_state"), message, reads)


def _decoding(config: Config) -> Iterator[Problem]:
    beam_sizes: tuple[KeyPath, ...] = (("decoding", "beam_size"), ("training", "validation", "beam_size"))
    greedy = config.decoding.beam_size == 1 and config.training.validation.beam_size == 1
    if greedy and changed(config.decoding, "length_penalty"):
        message = (
            f"{config.decoding.length_penalty} has no effect on greedy search, which has one hypothesis to choose from "
            "(decoding.beam_size and training.validation.beam_size are 1); use a larger beam, or remove it"
        )
        yield Problem(("decoding", "length_penalty"), message, beam_sizes)
