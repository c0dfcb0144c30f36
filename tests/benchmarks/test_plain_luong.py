"""The second opinion on training: with the same weights it has our loss and gradients."""

import ast
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch
import yaml
from torch import Tensor

from benchmarks.plain_luong import (
    BATCH,
    DROPOUT,
    END,
    EPOCHS,
    LONGEST_GRADIENT,
    PAD,
    PIECES,
    RATE,
    SMOOTHING,
    START,
    STEADY_EPOCHS,
    UNKNOWN,
    PlainLuong,
    batched,
    loss_of,
    rate,
)
from nmt.config.loading import read_config
from nmt.data.batch import make_batch
from nmt.models.seq2seq import build_model
from nmt.training.objective import batch_loss
from tests.conftest import ROOT

RECIPE = ROOT / "configs" / "research" / "attention_synthetic.yaml"
NAMES = {  # of parameters, theirs to ours; the rest below
    "target_embedding.weight": "own_target_embedding.weight",
    "general.weight": "decoder.attention.score.layer.weight",
    "combine.weight": "decoder.combine.weight",
    "output.weight": "output_layer.weight",
    "cell.weight_hh": "decoder.cells.0.recurrent_layer.weight",
    "cell.bias_ih": "decoder.cells.0.input_layer.bias",
    "cell.bias_hh": "decoder.cells.0.recurrent_layer.bias",
}


def by_our_names(plain: PlainLuong, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What belongs to the plain model's parameters. Its cell reads [E y; h̃] with one matrix, ours with two."""
    ours = {}
    for name, value in values.items():
        if name == "cell.weight_ih":
            words = plain.target_embedding.embedding_dim
            ours["decoder.cells.0.input_layer.weight"] = value[:, :words]
            if plain.input_feeding:
                ours["decoder.feed.weight"] = value[:, words:]
        else:
            ours[NAMES.get(name, name.replace("encoder.", "encoder.network."))] = value
    return ours


@pytest.mark.parametrize(("score", "input_feeding"), [("dot", True), ("general", False)])
def test_loss_and_gradients_of_our_model(score: str, input_feeding: bool) -> None:
    """The recipe's model in float64, without dropout, on sentences of different lengths."""
    torch.manual_seed(3)
    plain = PlainLuong(score, input_feeding=input_feeding, start=0.2).double()
    plain.drop.p = 0.0
    changes = [f"model.attention.score={score}", f"model.decoder.input_feeding={str(input_feeding).lower()}"]
    changes += ["model.encoder.dropout=0", "model.decoder.dropout=0"]
    model = build_model(read_config(RECIPE, changes).config.model, source_size=PIECES, target_size=PIECES).double()
    model.load_state_dict(by_our_names(plain, plain.state_dict()))
    sources, targets = ([torch.randint(UNKNOWN, PIECES, (n,)) for n in lengths] for lengths in ((3, 11, 7), (5, 2, 13)))

    pairs = make_batch(*map(as_numpy, (sources, targets)), np.arange(3))
    ours = batch_loss(model, pairs, smoothing=SMOOTHING).objective
    ours.backward()
    batch = batched([(ended(source), ended(target)) for source, target in zip(sources, targets, strict=True)])
    theirs = loss_of(plain(batch), batch) * (batch.target != PAD).sum()  # ours is the sum, theirs the mean
    theirs.backward()

    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    gradients = by_our_names(plain, {name: gradient(parameter) for name, parameter in plain.named_parameters()})
    assert {name for name, _ in model.named_parameters()} == gradients.keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradient(parameter), gradients[name], rtol=1e-9, atol=1e-12)


def as_numpy(sentences: Sequence[Tensor]) -> list[npt.NDArray[np.int64]]:
    return [sentence.numpy() for sentence in sentences]


def ended(sentence: Tensor) -> Tensor:
    return torch.cat((sentence, torch.tensor([END])))


def gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def test_the_recipe() -> None:
    """What shapes of weights and the loss do not show."""
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    training = recipe["training"]
    assert training["optimizer"] == {"name": "adam", "learning_rate": RATE}
    assert training["schedule"] == {"name": "halving", "after": f"{STEADY_EPOCHS} epochs", "factor": 0.5}
    assert [rate(epoch) for epoch in (1, 6, 7, 10)] == [RATE, RATE, RATE / 2, RATE / 16]
    assert training["label_smoothing"] == SMOOTHING
    assert (training["batch_size"], training["gradient_clip_norm"]) == (BATCH, LONGEST_GRADIENT)
    assert (training["batch_by"], training["max_epochs"]) == ("sentences", EPOCHS)
    assert read_config(RECIPE).config.training.normalize_by == "tokens"  # the loss is a mean over the pieces
    assert recipe["model"]["initialization"] == {"name": "uniform", "range": START}
    assert recipe["model"]["encoder"]["dropout"] == recipe["model"]["decoder"]["dropout"] == DROPOUT
    assert recipe["subwords"] == {"type": "bpe", "size": PIECES, "joint": True}


def test_it_uses_nothing_of_the_toolkit() -> None:
    tree = ast.parse((ROOT / "benchmarks" / "plain_luong.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"sentencepiece", "torch"}
