"""The oracle knows all that a configuration can ask of a model: a new name, or a new key, fails here until it does."""

import ast
import random
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

from nmt.config.allowed import whole_schema
from nmt.config.contradictions import contradictions
from nmt.config.schema import AlignmentStep, Config, DecodingConfig
from nmt.decoding.engines import ENSEMBLES
from nmt.models.cells import CELLS
from nmt.models.combinations import FAMILIES, model_problems
from nmt.models.decoders import DECODERS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from tests.oracle import equations, searches
from tests.oracle.cases import (
    ALIGNMENT_STEPS,
    CASES,
    DECODING,
    FACTORS,
    NO_STATE_ATTENDS,
    ORDERS,
    Case,
    goes_together,
    pairs,
    settings,
)

SIZES = {"embedding_size", "encoder.hidden_size", "decoder.hidden_size"}
NOT_IN_EVALUATION = (
    {"initialization", "embeddings"}
    | {
        f"{side}.{kind}"
        for side in ("encoder", "decoder")
        for kind in ("dropout", "output_dropout", "word_dropout", "locked_dropout")
    }
    | {"decoder.fed_dropout", "decoder.attentional_dropout"}
)
"""Where weights start, and dropout, of which test_training.py has that of words."""
BATCHES = {"batch_tokens", "batch_sentences"}  # what is computed together


@pytest.mark.parametrize(
    ("oracle", "package"),
    [
        (equations.SCORES, SCORES),
        (equations.SCOPES, SCOPES),
        (equations.CELLS, CELLS),
        (equations.DECODERS, DECODERS),
        (FACTORS["initial state"], INITIAL_STATES),
        (searches.ENSEMBLES, ENSEMBLES),
        (dict.fromkeys(ALIGNMENT_STEPS), dict.fromkeys(get_args(AlignmentStep))),
    ],
    ids=["scores", "scopes", "cells", "decoders", "initial states", "ensembles", "alignment steps"],
)
def test_every_name_is_known(oracle: Mapping[str, Any], package: Mapping[str, Any]) -> None:
    assert oracle.keys() == package.keys()


def test_every_key_and_every_choice_is_in_a_case() -> None:
    compared: dict[str, set[Any]] = {}
    for values in FACTORS.values():
        for changes in values.values():
            for key, value in changes.items():
                compared.setdefault(key, set()).add(value)
    schema = whole_schema()["$defs"]
    keys = dict(schema["ModelConfig"]["properties"])
    for section in ("encoder", "attention", "decoder"):
        del keys[section]
        of_section = schema[f"{section.capitalize()}Config"]["properties"]
        keys |= {f"{section}.{key}": node for key, node in of_section.items()}
    assert keys.keys() - SIZES - NOT_IN_EVALUATION == compared.keys()
    for key in compared:
        node = keys[key]
        switch = (True, False) if node.get("type") == "boolean" else ()
        choices = FAMILIES[node["x-family"]] if "x-family" in node else node.get("enum", switch)
        assert set(choices) <= compared[key] | {node.get("default")}, key


def test_every_key_of_the_search_is_compared() -> None:
    """But for what is done to texts, before and after it."""
    of_search = DecodingConfig.model_fields.keys() - BATCHES - {"protect"}
    assert {key for changes in DECODING.values() for key in changes} == of_search


def test_cases_have_every_two_values_that_go_together() -> None:
    values = [(factor, value) for factor, named in FACTORS.items() for value in named]
    possible = {pair for pair in combinations(values, 2) if pair[0][0] != pair[1][0] and goes_together(dict(pair))}
    assert {pair for case in CASES.values() for pair in pairs(case)} == possible


def test_what_goes_together_is_what_the_configuration_allows() -> None:
    """In a thousand cases, of which some hundred are allowed and as many are not; without those of keys that have no
    effect, which are allowed if they have their defaults."""
    draw = random.Random(3)
    drawn = [{factor: draw.choice(list(values)) for factor, values in FACTORS.items()} for _ in range(1000)]
    cases = [case for case in drawn if is_the_order_read(case)]
    allowed = [not problems(case) for case in cases]
    assert allowed == [goes_together(case) for case in cases]
    assert 100 < sum(allowed) < 900


def is_the_order_read(case: Case) -> bool:
    """Whether an order of Bahdanau's decoder is named where a state attends, and nowhere else."""
    if not case["decoder"].startswith("bahdanau"):
        return True
    return (case["decoder"] in ORDERS) == (case["score"] not in NO_STATE_ATTENDS)


def problems(case: Case) -> list[Any]:
    pair = {"source": "a", "target": "b"}
    data = {"source_language": "en", "target_language": "de", "train": [pair], "valid": {**pair, "source": "c"}}
    config = Config.model_validate(
        {"name": "case", "data": data, "model": settings(case), "training": {"max_updates": 1}}
    )
    return [*contradictions(config), *model_problems(config)]


@pytest.mark.parametrize("module", ["equations", "losses", "searches", "cases"])
def test_the_oracle_imports_nothing_of_the_package(module: str) -> None:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in names} & {"nmt", "torch"}
