"""Whole models computed by the fused kernels and by their plain twins, in float64: losses, weights and gradients."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.decoders import DECODERS
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import computing
from nmt.ops.loss import smoothed_cross_entropy

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

DECODER_VARIANTS: dict[str, Changes] = {
    "gru": {},
    "layers": {"layers": 3},
    "reset first": {"cell": "gru_reset_first", "layers": 2},
    "lstm": {"cell": "lstm"},
    "lstm layers": {"cell": "lstm", "layers": 2},
    "normalized": {"layers": 2, "layer_normalization": True},
    "residual": {"layers": 3, "residual": True},
    "residual lstm": {"layers": 2, "residual": True, "cell": "lstm"},
    "locked": {"layers": 3, "locked_dropout": True},
}
ENCODERS: dict[str, Changes] = {
    "gru": {},
    "lstm layers": {"cell": "lstm", "layers": 2},
    "one direction": {"bidirectional": False, "layers": 2},
    "summed": {"directions": "sum"},
    "residual": {"layers": 3, "residual": True},
    "locked": {"layers": 3, "locked_dropout": True, "dropout": 0.3, "output_dropout": 0.3},
    "residual lstm": {"layers": 2, "residual": True, "cell": "lstm", "directions": "sum", "reverse_source": True},
    "reset first": {"cell": "gru_reset_first", "layers": 2},
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


@pytest.mark.parametrize("score", SCORES)
def test_scores(make_model: MakeModel, batch: Batch, score: str) -> None:
    options = {"positions": 12} if score == "location" else {}
    if score == "location_sensitive":
        options = {"filters": 4, "filter_width": 5}
    assert_equal(make_model(attention={"score": score, **options}, decoder={"hidden_size": 20}), batch)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoders(make_model: MakeModel, batch: Batch, encoder: str) -> None:
    assert_equal(make_model(encoder={"dropout": 0.0, "word_dropout": 0.2, **ENCODERS[encoder]}), batch)


@torch.inference_mode()
@pytest.mark.parametrize(("dtype", "copies"), [(torch.float64, 1), (torch.float64, 2), (torch.float32, 2)])
@pytest.mark.parametrize(
    ("encoder", "decoder"), [*zip(ENCODERS, cycle(["gru", "reset first", "lstm layers", "paper's order"]))]
)
def test_steps(
    make_model: MakeModel, batch: Batch, encoder: str, decoder: str, copies: int, dtype: torch.dtype
) -> None:
    """Of few sentences, whose encoder is the library's, and of more; of the model as it is, too."""
    variants = {**DECODER_VARIANTS, "gru": DECODER_VARIANTS["layers"]}
    changes = variants.get(decoder, {"type": "bahdanau", "order": "paper", "layers": 2})
    score = {"score": "concat"} if decoder == "gru" else {}  # a layer that is multiplied in two parts
    model = make_model(encoder=ENCODERS[encoder], decoder=changes, attention=score).to(dtype)
    source, lengths = batch[0].repeat(copies, 1), batch[1].repeat(copies)
    tolerance = 1e-11 if dtype == torch.float64 else 1e-5
    results = []
    for fused in (False, True):
        with computing(fused=fused):
            state = model.start(source, lengths)
            for words in ([5, 6, 7], [8, 3, 4]):
                log_probabilities, state = model.step(torch.tensor(words * copies), state)
        results.append(log_probabilities)
    torch.testing.assert_close(results[1], results[0], rtol=tolerance, atol=tolerance)
