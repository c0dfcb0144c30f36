"""Checks between the keys of the section `subwords`."""

from collections.abc import Iterator

from nmt.config.problems import Problem, in_words
from nmt.config.schema import Config, changed
from nmt.config.yaml_text import KeyPath


def subword_contradictions(config: Config) -> Iterator[Problem]:
    """Combinations that sentencepiece refuses or that have no effect."""
    yield from _given_models(config)
    yield from _trained_models(config)
    yield from _sampling(config)


def _given_models(config: Config) -> Iterator[Problem]:
    subwords = config.subwords
    joint: KeyPath = ("subwords", "joint")
    sides = [key for key in ("source_model", "target_model") if getattr(subwords, key) is not None]
    given = (["model"] if subwords.model is not None else []) + sides
    reads = tuple(("subwords", key) for key in given)
    if not given:
        return
    if subwords.model is not None and sides:
        message = "contradicts subwords.model; give either model (joint) or source_model and target_model"
        yield from (Problem(("subwords", key), message, (("subwords", "model"),)) for key in sides)
    elif len(sides) == 1:
        other = "target_model" if sides == ["source_model"] else "source_model"
        yield Problem(("subwords", sides[0]), f"needs subwords.{other} too", (("subwords", other),))
    elif sides and subwords.joint:
        message = (
            "true contradicts source_model and target_model, two vocabularies; set joint: false, or give one model"
        )
        yield Problem(joint, message, reads)
    elif not sides and not subwords.joint:
        message = (
            "false contradicts subwords.model, one vocabulary; set joint: true, or give source_model and target_model"
        )
        yield Problem(joint, message, reads)
    settings = ("type", "size", "lowercase", "normalisation", "character_coverage", "byte_fallback")
    for key in changed(subwords, *settings):
        value = in_words(getattr(subwords, key))
        message = f"{value} has no effect, because subwords.{given[0]} is already trained; remove one of them"
        yield Problem(("subwords", key), message, reads)


def _trained_models(config: Config) -> Iterator[Problem]:
    subwords = config.subwords
    if subwords.model or subwords.source_model or subwords.target_model:
        return
    if subwords.lowercase and subwords.normalisation == "identity":
        message = "true contradicts normalisation: identity, which changes no character; use nfkc or nmt_nfkc"
        yield Problem(("subwords", "lowercase"), message, (("subwords", "normalisation"),))
    if subwords.byte_fallback and subwords.size <= 260:
        message = (
            f"{subwords.size} is too small for byte_fallback: 256 bytes and 4 special symbols leave no piece for text"
        )
        yield Problem(("subwords", "size"), message, (("subwords", "byte_fallback"),))


def _sampling(config: Config) -> Iterator[Problem]:
    subwords, sampling = config.subwords, config.subwords.sampling
    path: KeyPath = ("subwords", "sampling")
    given = subwords.model or subwords.source_model or subwords.target_model
    kind = None if given else subwords.type  # only a model that is given knows its type
    if sampling and kind in ("char", "word"):
        message = f"has no effect for type: {kind}, which cuts in one way only; use bpe or unigram, or remove it"
        yield Problem(path, message, (("subwords", "type"),))
    elif sampling and kind == "bpe" and changed(sampling, "nbest_size"):
        message = f"{sampling.nbest_size} has no effect for type: bpe, which is sampled by alpha alone; remove it"
        yield Problem((*path, "nbest_size"), message, (("subwords", "type"),))
    elif sampling and sampling.nbest_size in (0, 1):
        message = f"{sampling.nbest_size} leaves nothing to sample from; allowed: -1 (all segmentations), or 2 and more"
        yield Problem((*path, "nbest_size"), message)
