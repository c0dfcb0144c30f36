"""Small models with pairwise distinct sizes, so that a swapped axis cannot go unnoticed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.config.schema import ModelConfig
from nmt.models.seq2seq import Seq2Seq, build_model

SOURCE_VOCABULARY, TARGET_VOCABULARY = 13, 17
SETTINGS: dict[str, Any] = {
    "embedding_size": 3,
    "encoder": {"hidden_size": 4, "layers": 1},
    "attention": {"size": 7},
    "decoder": {"hidden_size": 5, "output_size": 6},
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        result[key] = merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return result


@pytest.fixture
def make_model() -> Callable[..., Seq2Seq]:
    """make_model(decoder={...}, …) gives a model in float64 and evaluation mode; weights differ from one another."""

    def make(**changes: Any) -> Seq2Seq:
        torch.manual_seed(5)
        config = ModelConfig.model_validate(merged(SETTINGS, changes))
        model = build_model(config, source_size=SOURCE_VOCABULARY, target_size=TARGET_VOCABULARY).double().eval()
        for parameter in model.parameters():  # biases too, or a forgotten one would not show
            torch.nn.init.normal_(parameter, std=0.5)
        return model

    return make


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source ids, their lengths, and target input ids: three sentences of different lengths, padded."""
    source = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0], [3, 0, 0, 0, 0]])
    target_input = torch.tensor([[2, 10, 11, 12], [2, 13, 14, 15], [2, 16, 4, 5]])
    return source, torch.tensor([5, 3, 1]), target_input
