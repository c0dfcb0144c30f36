"""A corpus of 40 pairs and a recipe that trains on it in no time, for the benchmarks."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import data_section, make_synthetic_corpus

PAIRS = 40


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """{train,valid,test}.{en,de} of the synthetic grammar: 40, 5 and 6 pairs."""
    return make_synthetic_corpus(tmp_path_factory.mktemp("tiny_corpus"), train=PAIRS, valid=5, test=6)


@pytest.fixture(scope="session")
def tiny_config(tiny_corpus: Path) -> Path:
    """The configuration file, whose sizes suit every variant of the reference task."""
    recipe: dict[str, Any] = {
        "name": "tiny",
        "data": data_section(tiny_corpus),
        "subwords": {"type": "word", "size": 120},
        "model": {"embedding_size": 5, "encoder": {"hidden_size": 3}, "decoder": {"type": "luong", "hidden_size": 6}},
        "training": {"batch_size": 16, "max_updates": 2, "validation": {"metric": "loss"}},
    }
    path = tiny_corpus / "tiny.yaml"
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return path
