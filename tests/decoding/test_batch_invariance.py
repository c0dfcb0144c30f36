"""Real sentences, every kind of network and of search: neither batches nor order change a translation in float64.

Networks are random and far from the uniform distribution, so that what they write differs from line to line.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from nmt.config.schema import ModelConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.translator import Translator
from nmt.models.decoders import DECODERS
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.models.seq2seq import build_model
from tests.batch_sizes import every_way, sentences

LINES = 8
DISTINCT = 6  # of the best translations, at least; a search that favors short ones may give the shortest to many

NETWORKS: dict[str, dict[str, Any]] = {
    "luong": {"decoder": {"type": "luong"}, "attention": {"score": "general"}},
    "luong at once": {
        "decoder": {"type": "luong", "input_feeding": False, "cell": "lstm"},
        "attention": {"score": "dot"},
    },
    "bahdanau": {"decoder": {"type": "bahdanau"}, "attention": {"score": "additive", "coverage": True}},
    "residual": {
        "encoder": {"hidden_size": 6, "layers": 2, "residual": True},
        "decoder": {"type": "luong", "layers": 3, "residual": True},
        "attention": {"score": "general"},
    },
    "bahdanau paper": {"decoder": {"type": "bahdanau", "order": "paper"}, "attention": {"score": "additive"}},
    "conditional_gru": {"decoder": {"type": "conditional_gru"}, "attention": {"score": "additive", "bias": True}},
    "local-m": {"decoder": {"type": "luong"}, "attention": {"score": "concat", "scope": "local-m", "half_width": 2}},
    "local-p": {
        "decoder": {"type": "luong"},
        "attention": {"score": "scaled_dot", "scope": "local-p", "half_width": 3},
    },
    "renormalized": {
        "decoder": {"type": "conditional_gru"},
        "attention": {"score": "cosine", "scope": "local-p", "renormalize": True},
    },
    "location": {"decoder": {"type": "luong"}, "attention": {"score": "location", "positions": 30}},
    "location_sensitive": {"decoder": {"type": "bahdanau"}, "attention": {"score": "location_sensitive"}},
    "none": {"decoder": {"type": "luong", "layers": 2}, "attention": {"score": "none"}},
}
NETWORKS |= {  # a score that is not among them yet
    score: {"decoder": {"type": "luong"}, "attention": {"score": score}}
    for score in SCORES
    if score not in {settings["attention"]["score"] for settings in NETWORKS.values()}
}

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 5},
    "n-best": {"beam_size": 5, "n_best": 5, "no_repeat_ngram_size": 2, "minimum_length": 5},
    "least length": {"beam_size": 3, "minimum_length": 2, "minimum_length_ratio": 0.2},
    "coverage": {"beam_size": 5, "coverage_penalty": 0.3, "length_penalty": 0.6, "suppress_unknown": True},
    "diverse": {"beam_size": 6, "n_best": 3, "diversity": 0.7},
}


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return sentences(LINES)


@pytest.fixture(scope="module")
def cut(lines: list[str]) -> Vocabularies:
    subwords = Subwords.train(lines, settings=SubwordsConfig(size=200))
    return Vocabularies(subwords, subwords)


def translator(network: str, cut: Vocabularies) -> Translator:
    torch.manual_seed(11)
    sizes = {"embedding_size": 8, "initialization": {"range": 0.1}, "encoder": {"hidden_size": 6}, **NETWORKS[network]}
    sizes["decoder"] = {"hidden_size": 12, **sizes["decoder"]}
    model = build_model(ModelConfig.model_validate(sizes), source_size=200, target_size=200).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)
    return Translator([model], cut)


def combinations() -> Iterator[object]:
    """Every search with one network, and n-best lists with one of each other decoder and scope; in the slow proofs,
    with every network."""
    for network in NETWORKS:
        for search in SEARCHES:
            if network == "bahdanau" or (search == "n-best" and network in ("local-m", "local-p", "conditional_gru")):
                yield pytest.param(network, search)
            elif search == "n-best":
                yield pytest.param(network, search, marks=pytest.mark.slow)


def test_every_member_of_every_family_takes_part() -> None:
    assert {settings["decoder"]["type"] for settings in NETWORKS.values()} == set(DECODERS)
    assert {settings["attention"].get("scope", "global") for settings in NETWORKS.values()} == set(SCOPES)


@pytest.mark.parametrize(("network", "search"), list(combinations()))
def test_neither_batches_nor_order_change_a_translation(
    network: str, search: str, lines: list[str], cut: Vocabularies
) -> None:
    ways = every_way(translator(network, cut), lines, max_length_ratio=0.25, max_length_extra=5, **SEARCHES[search])
    _, alone = next(ways)
    assert len(alone) == LINES
    assert len({best[0].text for best in alone}) >= DISTINCT
    for name, translations in ways:
        for expected, other in zip(alone, translations, strict=True):
            assert [result.tokens for result in other] == [result.tokens for result in expected], name
            assert [result.text for result in other] == [result.text for result in expected], name
            for mine, theirs in zip(expected, other, strict=True):
                assert abs(mine.score - theirs.score) <= 1e-12, name
