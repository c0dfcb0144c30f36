"""Whole models computed by the fused kernels and by their plain twins, in float64: losses, weights and gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.attention import SCORES
from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import computing
from nmt.ops.loss import smoothed_cross_entropy

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

DECODER_VARIANTS: dict[str, Changes] = {
    "gru": {},
    "layers": {"layers": 3},
    "lstm": {"cell": "lstm"},
    "lstm layers": {"cell": "lstm", "layers": 2},
    "normalised": {"layers": 2, "layer_normalisation": True},
}
ENCODERS: dict[str, Changes] = {
    "gru": {},
    "lstm layers": {"cell": "lstm", "layers": 2},
    "one direction": {"bidirectional": False, "layers": 2},
    "summed": {"directions": "sum"},
    "reversed": {"reverse_source": True, "bidirectional": False, "cell": "lstm"},
}


def computed(model: Seq2Seq, batch: Batch, *, fused: bool) -> dict[str, Tensor]:
    """Loss, attention weights, and the gradient of every parameter; with dropout, if the model trains."""
    torch.manual_seed(3)
    model.zero_grad()
    with computing(fused=fused):
        outputs = model(*batch)
        vectors, targets = outputs.vectors.flatten(0, 1), batch[2].roll(-1, dims=1).flatten()
        loss, _ = smoothed_cross_entropy(vectors, model.output_weight, targets, smoothing=0.1)
        loss.backward()
    found = {"loss": loss.detach(), "weights": outputs.weights.detach()}
    return found | {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def assert_equal(model: Seq2Seq, batch: Batch) -> None:
    fast, plain = (computed(model.train(), batch, fused=fused) for fused in (True, False))
    assert fast.keys() == plain.keys()
    for name, expected in plain.items():
        assert torch.allclose(fast[name], expected, rtol=1e-10, atol=1e-10), name


@pytest.mark.parametrize("variant", DECODER_VARIANTS)
@pytest.mark.parametrize("decoder", [*DECODERS, "luong without input feeding"])
def test_decoders(make_model: MakeModel, batch: Batch, decoder: str, variant: str) -> None:
    if decoder == "conditional_gru" and "lstm" in variant:
        pytest.skip("the conditional GRU has no LSTM form")
    feeding = {"input_feeding": False} if "without" in decoder else {}
    settings = {"type": decoder.split()[0], **feeding, **DECODER_VARIANTS[variant], "dropout": 0.3}
    assert_equal(make_model(decoder=settings), batch)


@pytest.mark.parametrize("score", SCORES)
def test_scores(make_model: MakeModel, batch: Batch, score: str) -> None:
    options = {"positions": 12} if score == "location" else {}
    if score == "location_sensitive":
        options = {"filters": 4, "filter_width": 5}
    assert_equal(make_model(attention={"score": score, **options}, decoder={"hidden_size": 20}), batch)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoders(make_model: MakeModel, batch: Batch, encoder: str) -> None:
    assert_equal(make_model(encoder={"dropout": 0.0, **ENCODERS[encoder]}), batch)
