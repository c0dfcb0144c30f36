"""Small models with pairwise distinct sizes, so that a swapped axis cannot go unnoticed, and every allowed combination
of a decoder, a score and a scope."""

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import pytest
import torch

from nmt.config.schema import ModelConfig
from nmt.models.combinations import options
from nmt.models.decoders import DECODERS
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_model

Changes = dict[str, Any]

FILE = """
name: toy
data: {source_language: en, target_language: de, train: [{source: a, target: b}], valid: {source: c, target: d}}
training: {max_updates: 1}
"""
SOURCE_VOCABULARY, TARGET_VOCABULARY = 17, 19
SETTINGS: Changes = {
    "embedding_size": 2,
    "encoder": {"hidden_size": 10, "layers": 1},  # both directions: a memory of 20 units
    "attention": {"size": 11},
    "decoder": {"type": "luong", "hidden_size": 7, "output_size": 16},
}
# GLOBAL_ONLY and NEVER are said a second time on purpose: test_refusals.py compares them with what the loader refuses,
# except for orders.
SAME_SIZE = {"dot", "scaled_dot", "cosine"}
GLOBAL_ONLY = {"location", "fixed", "none"}
NEVER = {("conditional_gru", "none"), ("paper", "none"), ("paper", "fixed")}  # a decoder or its order
SWITCHES = {
    "bias": (False, True),
    "coverage": (False, True),
    "renormalize": (False, True),
    "input_feeding": (True, False),
    "order": ("paper", "authors"),
}
SMALL = {"half_width": 2, "positions": 12, "filters": 4, "filter_width": 5}  # other options; 13 source positions


def merged(base: Changes, changes: Changes) -> Changes:
    result = dict(base)
    for key, value in changes.items():
        result[key] = merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return result


def settings_of(names: frozenset[str]) -> list[Changes]:
    """Every way to set the options that are switches, the others being small."""
    switches = [name for name in SWITCHES if name in names]
    others = {name: value for name, value in SMALL.items() if name in names}
    return [{**others, **dict(zip(switches, values, strict=True))} for values in product(*map(SWITCHES.get, switches))]


def all_combinations() -> dict[str, Changes]:
    """The allowed product of decoders, scores and scopes, with every setting of their switches."""
    allowed = {}
    for decoder, score, scope in product(DECODERS, SCORES, SCOPES):
        if (score in GLOBAL_ONLY and scope != "global") or (decoder, score) in NEVER:
            continue
        variants = (settings_of(options(part)) for part in (DECODERS[decoder], SCORES[score], SCOPES[scope]))
        for of_decoder, of_score, of_scope in product(*variants):
            if (of_decoder.get("order"), score) in NEVER:
                continue
            changes = {
                "attention": {"score": score, "scope": scope, **of_score, **of_scope},
                "decoder": {"type": decoder, **of_decoder, "hidden_size": 20 if score in SAME_SIZE else 7},
            }
            switched = {**of_decoder, **of_score, **of_scope}
            words = [f"{name}={switched[name]}" for name in SWITCHES if name in switched]
            allowed[" ".join([decoder, score, scope, *words])] = changes
    return allowed


COMBINATIONS = all_combinations()


def parts_of(changes: Changes) -> list[str]:
    """Its decoder, its score, and its scope, each with its switches."""
    attention = dict(changes["attention"])
    scope = {name: attention.pop(name) for name in ("scope", "half_width", "renormalize") if name in attention}
    return [repr(changes["decoder"]), repr(attention), repr(scope)]


def every_two_parts() -> list[str]:
    """So few combinations that every two parts that go together are in one of them."""
    pairs = {name: set(combinations(parts_of(changes), 2)) for name, changes in COMBINATIONS.items()}
    missing = set[tuple[str, str]]().union(*pairs.values())
    chosen = []
    while missing:
        chosen.append(max(pairs, key=lambda name: len(pairs[name] & missing)))
        missing -= pairs[chosen[-1]]
    return chosen


EVERY_TWO_PARTS = every_two_parts()


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Seq2Seq]:
    """make_model(decoder={...}, …) gives a model in float64 and evaluation mode; weights differ from one another."""

    def make(**changes: Any) -> Seq2Seq:
        torch.default_generator.manual_seed(5)  # `torch.manual_seed` takes longer: it writes down the stack three times
        config = ModelConfig.model_validate(merged(SETTINGS, changes))
        model = build_model(config, source_size=SOURCE_VOCABULARY, target_size=TARGET_VOCABULARY).double().eval()
        for parameter in model.parameters():  # biases too, or a forgotten one would not show
            torch.nn.init.normal_(parameter, std=0.5)
        return model

    return make


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source ids, their lengths, and target input ids: three padded sentences, one longer than the targets, one
    shorter, and one of END alone, which is shorter than any window."""
    source = torch.tensor(
        [
            [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 3],
            [16, 5, 9, 14, 3, 0, 0, 0, 0, 0, 0, 0, 0],
            [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    )
    target_input = torch.tensor(
        [[2, 10, 11, 12, 5, 6, 7, 4], [2, 13, 14, 15, 9, 9, 8, 17], [2, 16, 4, 5, 18, 11, 7, 6]]
    )
    return source, torch.tensor([13, 5, 1]), target_input
