"""Whole models that are trained with dropout, by the fused kernels and by their plain twins, in float64.

Without dropout both are compared with the oracle, all options with each other, by tests/oracle/test_models.py.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import Seq2Seq
from nmt.ops import steps
from nmt.ops.computing import computing
from nmt.ops.loss import smoothed_cross_entropy

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

DECODER_VARIANTS: dict[str, Changes] = {
    "layers": {"layers": 3},
    "reset first": {"cell": "gru_reset_first", "layers": 2},
    "lstm layers": {"cell": "lstm", "layers": 2},
    "locked": {"layers": 3, "locked_dropout": True},
}
ENCODERS: dict[str, Changes] = {
    "lstm layers": {"cell": "lstm", "layers": 2},
    "locked": {"layers": 3, "locked_dropout": True, "dropout": 0.3, "output_dropout": 0.3},
    "reset first": {"cell": "gru_reset_first", "layers": 2},
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
    values = {"loss": loss.detach(), "weights": outputs.weights.detach()}
    return values | {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


def assert_equal(model: Seq2Seq, batch: Batch) -> None:
    fast, plain = (computed(model.train(), batch, fused=fused) for fused in (True, False))
    assert fast.keys() == plain.keys()
    for name, expected in plain.items():
        assert torch.allclose(fast[name], expected, rtol=1e-10, atol=1e-10), name


@pytest.mark.parametrize("variant", DECODER_VARIANTS)
@pytest.mark.parametrize("decoder", [*DECODERS, "luong without input feeding", "bahdanau in the paper's order"])
def test_decoders(make_model: MakeModel, batch: Batch, decoder: str, variant: str) -> None:
    if decoder == "conditional_gru" and "lstm" in variant:
        pytest.skip("the conditional GRU has no LSTM form")
    feeding = {"input_feeding": False} if "without" in decoder else {}
    order = {"order": "paper"} if "paper" in decoder else {}
    rates = {"dropout": 0.3, "word_dropout": 0.2}
    settings = {"type": decoder.split()[0], **feeding, **order, **DECODER_VARIANTS[variant], **rates}
    assert_equal(make_model(decoder=settings), batch)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoders(make_model: MakeModel, batch: Batch, encoder: str) -> None:
    assert_equal(make_model(encoder={"dropout": 0.0, "word_dropout": 0.2, **ENCODERS[encoder]}), batch)


@pytest.mark.parametrize(("score", "products"), [("additive", 1), ("dot", 2)])
def test_the_gradient_of_the_memory_is_formed_once(
    make_model: MakeModel, batch: Batch, score: str, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the sums of all steps, and of the inner products with the same annotations."""
    formed = []
    backward = steps._Memory.backward
    monkeypatch.setattr(steps._Memory, "backward", lambda ctx, _: formed.append(len(ctx.kept)) or backward(ctx, _))
    model = make_model(
        decoder={"type": "luong", "hidden_size": 2 * 3}, attention={"score": score}, encoder={"hidden_size": 3}
    )
    computed(model.train(), batch, fused=True)
    assert formed == [products * batch[2].size(1)]
