"""The whole model: where dropout strikes, and which parameters are shared."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

ON_INPUTS = {"dropout": 0.999999, "output_dropout": 0.0}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"encoder": {"dropout": 0.999999}}, "encoder.network"),  # the source embeddings it reads are 0
        ({"encoder": {"word_dropout": 0.999999}}, "encoder.network"),
        ({"encoder": {"output_dropout": 0.999999}}, "decoder.attention.score.memory_layer"),  # so are the annotations
        ({"decoder": {"word_dropout": 0.999999}}, "decoder.cells.0.input_layer"),
        ({"decoder": {"type": "bahdanau", "word_dropout": 0.999999}}, "decoder.cells.0.input_layer"),
        ({"decoder": {"type": "conditional_gru", "word_dropout": 0.999999}}, "decoder.cells.0.input_layer"),
        ({"decoder": ON_INPUTS}, "decoder.cells.0.input_layer"),
        ({"decoder": {**ON_INPUTS, "layers": 2}}, "decoder.cells.1.input_layer"),
        ({"decoder": {"output_dropout": 0.999999}}, "decoder.feed"),
        ({"decoder": {"fed_dropout": 0.999999}}, "decoder.feed"),
        ({"decoder": {"attentional_dropout": 0.999999}}, "decoder.combine"),
        ({"decoder": {"attentional_dropout": 0.999999, "input_feeding": False}}, "decoder.combine"),
        ({"decoder": {"type": "bahdanau", **ON_INPUTS}}, "decoder.cells.0.input_layer"),
        ({"decoder": {"type": "bahdanau", "layers": 2, **ON_INPUTS}}, "decoder.cells.1.input_layer"),
        ({"decoder": {"type": "bahdanau", "output_dropout": 0.999999}}, "decoder.readout"),
        ({"decoder": {"type": "conditional_gru", **ON_INPUTS}}, "decoder.cells.0.input_layer"),
        ({"decoder": {"type": "conditional_gru", "layers": 2, **ON_INPUTS}}, "decoder.cells.1.input_layer"),
        ({"decoder": {"type": "conditional_gru", "output_dropout": 0.999999}}, "decoder.readout"),
    ],
    ids=[
        "source embeddings",
        "source words",
        "annotations",
        "target words",
        "bahdanau, target words",
        "conditional gru, target words",
        "target embeddings",
        "between layers",
        "attentional vector",
        "fed vector",
        "context and state",
        "context and state, at once",
        "bahdanau, target embeddings",
        "bahdanau, between layers",
        "maxout",
        "conditional gru, target embeddings",
        "conditional gru, between layers",
        "tanh layer",
    ],
)
def test_each_rate_drops_at_its_place(make_model: MakeModel, batch: Batch, changes: dict[str, Any], place: str) -> None:
    """A rate of nearly 1 leaves the layer behind it nothing to read: its input weights get no gradient, others do."""
    model = make_model(**changes).train()
    outputs = model(*batch)
    (outputs.vectors.sum() + outputs.weights.square().sum()).backward()
    weights = {name: weight.grad for name, weight in model.named_parameters() if name.endswith(("weight", "ih_l0"))}
    inputs = {f"{place}.weight", f"{place}.weight_ih_l0"} & weights.keys()
    assert inputs
    for name in inputs:
        gradient = weights[name]
        assert gradient is None or not gradient.any(), name
    recurrent = [gradient for name, gradient in weights.items() if "recurrent_layer" in name and gradient is not None]
    assert any(gradient.any() for gradient in recurrent)


LOCKED = {"dropout": 0.5, "output_dropout": 0.0, "locked_dropout": True, "layers": 2}


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize(
    ("side", "changes", "place"),
    [
        ("encoder", {}, "encoder.network.weight_ih_l0"),
        ("encoder", {}, "encoder.network.weight_ih_l1"),
        ("encoder", {"residual": True, "cell": "lstm"}, "encoder.network.weight_ih_l1"),
        ("encoder", {"output_dropout": 0.5}, "decoder.attention.score.memory_layer.weight"),
        ("decoder", {}, "decoder.cells.0.input_layer.weight"),
        ("decoder", {}, "decoder.cells.1.input_layer.weight"),
        ("decoder", {"residual": True, "input_feeding": False}, "decoder.cells.1.input_layer.weight"),
        ("decoder", {"output_dropout": 0.5}, "decoder.feed.weight"),
        ("decoder", {"fed_dropout": 0.3}, "decoder.feed.weight"),
        ("decoder", {"attentional_dropout": 0.3}, "decoder.combine.weight"),
        ("decoder", {"attentional_dropout": 0.3, "input_feeding": False}, "decoder.combine.weight"),
        ("decoder", {"type": "bahdanau"}, "decoder.cells.0.input_layer.weight"),
        ("decoder", {"type": "bahdanau", "order": "paper"}, "decoder.cells.1.input_layer.weight"),
        ("decoder", {"type": "conditional_gru"}, "decoder.cells.1.input_layer.weight"),
    ],
)
def test_locked_masks_leave_units_unread(
    make_model: MakeModel, batch: Batch, side: str, changes: dict[str, Any], place: str, locked: bool
) -> None:
    """What is dropped is dropped at every step: in one sentence, a layer never reads some of its inputs, and the
    weights of these get no gradient. With a new mask at each step, each is read at some of the 13 or 8 steps."""
    settings = {**LOCKED, "locked_dropout": locked, **changes}
    model = make_model(embedding_size=23, **{side: settings}).train()
    outputs = model(*(part[:1] for part in batch))
    (outputs.vectors.sum() + outputs.weights.square().sum()).backward()
    gradient = model.get_parameter(place).grad
    assert gradient is not None
    unread = int((gradient == 0).all(dim=0).sum())
    assert (0 < unread < gradient.size(1)) if locked else (unread == 0)


def test_annotations_are_dropped_after_their_normalization(make_model: MakeModel, batch: Batch) -> None:
    """Dropped before it, they would come out as its bias."""
    model = make_model(encoder={"output_dropout": 0.999999, "layer_normalization": True}).train()
    assert isinstance(model.encoder.norm, torch.nn.LayerNorm)
    torch.nn.init.constant_(model.encoder.norm.bias, 3.0)
    source, lengths, _ = batch
    assert not model.encoder(model.source_embedding(source), lengths).annotations.any()


def test_the_fed_vector_alone_is_dropped(make_model: MakeModel, batch: Batch) -> None:
    """Its own mask leaves the vectors of the output layer whole."""
    model = make_model(decoder={"fed_dropout": 0.5}).train()
    assert model(*batch).vectors.all()


@pytest.mark.parametrize(
    ("tie", "parameters"),
    [
        ("none", {"source_embedding", "own_target_embedding", "output_layer"}),
        ("target", {"source_embedding", "own_target_embedding"}),
        ("all", {"source_embedding"}),
    ],
)
def test_tied_embeddings_are_one_parameter(make_model: MakeModel, tie: str, parameters: set[str]) -> None:
    model = make_model(tie_embeddings=tie, decoder={"output_size": 2})
    owners = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert owners & {"source_embedding", "own_target_embedding", "output_layer"} == parameters
    assert (model.output_weight is model.target_embedding.weight) == (tie != "none")
    assert (model.target_embedding is model.source_embedding) == (tie == "all")
