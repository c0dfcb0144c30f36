"""The loss of a corpus that holds pairs of any length: the same as ever, in memory that grows with a line only."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from nmt.config.schema import ModelConfig
from nmt.data.batch import make_batch
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training import corpus_loss as module
from nmt.training.corpus_loss import corpus_loss, plan_validation
from nmt.training.objective import batch_loss
from tests.conftest import planned

DECODERS = ({"type": "luong"}, {"type": "luong", "input_feeding": False}, {"type": "conditional_gru", "cell": "gru"})


def network(**decoder: Any) -> Seq2Seq:
    torch.manual_seed(4)
    sizes = {"embedding_size": 3, "encoder": {"hidden_size": 5}, "decoder": {"hidden_size": 7, **decoder}}
    return build_model(ModelConfig.model_validate(sizes), source_size=11, target_size=13)


def lengths(sources: Iterable[int], targets: Iterable[int]) -> Any:
    return SimpleNamespace(source_lengths=np.array([*sources]), target_lengths=np.array([*targets]))


class LargestTensor(TorchFunctionMode):
    """Notes the values of the largest tensor that any function of PyTorch gives."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        del types
        result = function(*arguments, **(keywords or {}))
        for output in result if isinstance(result, tuple | list) else [result]:
            if isinstance(output, torch.Tensor):
                self.size = max(self.size, output.numel())
        return result


@pytest.mark.parametrize("decoder", DECODERS)
def test_no_tensor_grows_with_source_times_target(decoder: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest is the source's projections for three gates and two directions, or the logits of a chunk."""
    monkeypatch.setattr(module, "LARGEST_AREA", 3_000)
    model, pair = network(**decoder), make_batch([[4] * 60], [[5] * 50], np.array([0]))
    corpus_loss(model, [make_batch([[4]], [[5]], np.array([0]))])  # products are tried out once a process
    with LargestTensor() as largest:
        corpus_loss(model, [pair])
    assert 61 <= largest.size <= 61 * 3 * 2 * 5


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_long_pair_costs_what_it_costs_at_once(decoder: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(**decoder).double()
    pair = make_batch([[4, 5, 6, 7, 8]], [[9, 4, 5]], np.array([0]))
    at_once = corpus_loss(model, [pair])
    monkeypatch.setattr(module, "LARGEST_AREA", 6 * 4 - 1)  # END counted on both sides
    monkeypatch.setattr(module, "batch_loss", None)
    assert corpus_loss(model, [pair])["loss"] == pytest.approx(at_once["loss"], rel=1e-12)


def test_ordinary_pairs_keep_their_batches_and_their_bits() -> None:
    """499 + END on both sides is the largest pair that is decoded at once."""
    sides = ([3, 499, 20, 7, 0], [5, 499, 18, 400, 9])
    before = planned(*map(np.array, sides), batch_size=600, batch_by="tokens", seed=0, epoch=0)
    plan = plan_validation(lengths(*sides), batch_tokens=600)
    assert [rows.tolist() for rows in plan] == [rows.tolist() for rows in before]
    model = network().eval()
    batch = make_batch([[4, 5], [6]], [[7, 8, 9], [10]], np.array([0, 1]))
    assert corpus_loss(model, [batch])["loss"] == float(batch_loss(model, batch, smoothing=0.0).nll) / 6


def test_long_pairs_have_batches_of_their_own() -> None:
    """However many tokens a batch may have; all other pairs stay together."""
    plan = plan_validation(lengths([3, 500, 20_000, 7, 30], [5, 500, 19_000, 8, 40]), batch_tokens=10**8)
    assert sorted(sorted(rows.tolist()) for rows in plan) == [[0, 3, 4], [1], [2]]
