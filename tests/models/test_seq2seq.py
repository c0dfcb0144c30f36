"""The whole model: where dropout strikes, and which parameters are shared."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from nmt.models.seq2seq import Seq2Seq
from nmt.ops import packed_weights
from nmt.ops.activations import ScoreVector

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


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("decoder", ["luong", "luong at once", "bahdanau", "conditional_gru"])
def test_locked_masks_of_annotations_and_vectors(
    make_model: MakeModel, batch: Batch, decoder: str, locked: bool
) -> None:
    """The same units are 0 at all steps of a sentence, and others in other sentences."""
    settings = {"output_dropout": 0.5, "locked_dropout": locked}
    feeding = {"input_feeding": False} if "once" in decoder else {}
    model = make_model(encoder=settings, decoder={**settings, "type": decoder.split()[0], **feeding}).train()
    annotations = model.encoder(model.source_embedding(batch[0]), batch[1]).annotations
    vectors = model(*batch).vectors
    for zeros in (annotations[0] == 0, vectors[0] == 0, vectors[1] == 0):
        assert zeros.any()
        assert (zeros == zeros[:1]).all() == locked
    assert ((vectors[0] == 0) != (vectors[1] == 0)).any()


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


def test_fed_vector_is_the_one_that_was_dropped(make_model: MakeModel, batch: Batch) -> None:
    """With the attentional vector dropped altogether, the feed weights see zeros only and get no gradient."""
    model = make_model(decoder={"output_dropout": 0.999999})
    model.train()
    outputs = model(*batch)
    assert not outputs.vectors.any()
    outputs.weights.square().sum().backward()
    assert model.decoder.feed is not None
    assert not model.decoder.feed.weight.grad.any()  # type: ignore[union-attr]


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


@torch.inference_mode()
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("precision", "error"), [("bfloat16", 0.02), ("int8", 0.05)])
def test_rounded_weights_give_near_log_probabilities(
    make_model: MakeModel, batch: Batch, precision: str, error: float, tied: bool
) -> None:
    """The output layer is among the rounded ones, tied or not; the weights themselves stay what they are."""
    sizes = {"embedding_size": 16, "tie_embeddings": "target"} if tied else {}
    model = make_model(**sizes).float()
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    tokens = torch.tensor([5, 6, 7])
    exact = model.step(tokens, model.start(*batch[:2]))[0].exp()
    model.pack_weights(precision)
    rounded = model.step(tokens, model.start(*batch[:2]))[0].exp()
    assert model.packed is not None
    assert 1e-5 < float((rounded - exact).abs().max()) < error
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())


@torch.inference_mode()
@pytest.mark.parametrize("score", ["additive", "concat", "location_sensitive"])
def test_a_packed_score_is_the_score(make_model: MakeModel, score: str) -> None:
    model = make_model(attention={"score": score, "scope": "global", "coverage": True})
    attention = model.decoder.attention
    lengths, query = torch.tensor([5, 7]), torch.randn(6, model.decoder.size, dtype=torch.float64)
    values = torch.randn(2, 7, attention.context_size, dtype=torch.float64)
    weights = []
    for packed in (False, True):
        if packed:
            model.pack_weights("float32")
            assert attention.score.packed is not None
        memory = attention.remember(values, lengths)
        past = attention.start(memory)
        past = past.select(torch.tensor([0, 0, 0, 1, 1, 1])).next(torch.full((6, 7), 0.25, dtype=torch.float64))
        weights.append(attention.step(query, memory, past)[1])
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-14)
    attention.score.packed = ScoreVector.of(-attention.score.vector)  # it is what was computed with
    assert not torch.allclose(attention.step(query, memory, past)[1], weights[1])
    assert model.float().decoder.attention.score.packed is None


@torch.inference_mode()
@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("input_feeding", [True, False])
def test_a_packed_step_is_the_step(make_model: MakeModel, batch: Batch, cell: str, input_feeding: bool) -> None:
    """The word and h̃ are multiplied by one matrix: the same sums, as the second step shows, which has an h̃."""
    model = make_model(decoder={"cell": cell, "input_feeding": input_feeding, "layers": 2}, encoder={"cell": cell})
    results, products = [], Mock()
    for packed in (False, True):
        if packed:
            model.pack_weights("float32")
            products = model.decoder.packed = model.decoder.packed and Mock(wraps=model.decoder.packed)
        state = model.start(*batch[:2])
        for tokens in (torch.tensor([5, 6, 7]), torch.tensor([8, 4, 9])):
            log_probabilities, state = model.step(tokens, state)
        results.append(log_probabilities)
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=1e-12)
    assert results[0].dtype == torch.float64
    assert (products.call_count == 2) if input_feeding else (products is None)
    assert model.double().decoder.packed is None


def test_a_packed_model_has_its_gradients(make_model: MakeModel, batch: Batch) -> None:
    """Where they are recorded, the weights themselves are multiplied."""
    model = make_model(attention={"score": "concat"}).float()
    model.pack_weights("bfloat16")
    outputs = model(*batch)
    model.step(torch.tensor([5, 6, 7]), model.start(*batch[:2]))[0].sum().add(outputs.vectors.sum()).backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize(
    ("precision", "packable", "packed"),
    [
        ("float32", {torch.float32}, True),
        ("bfloat16", {torch.float32}, False),
        ("bfloat16", {torch.float32, torch.bfloat16}, True),
        ("float32", set(), False),
    ],
)
def test_a_model_is_packed_when_all_of_its_products_are(
    make_model: MakeModel, precision: str, packable: set[torch.dtype], packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if packed and not all(map(packed_weights._packs_type, packable)):
        pytest.skip(f"nothing is packed here in one of {packable}")
    monkeypatch.setattr(packed_weights, "_packs_type", lambda kind: kind in packable)
    model = make_model().float()
    model.pack_weights(precision)
    assert model.is_packed == packed


@torch.inference_mode()
def test_a_packed_model_that_loads_weights_is_not_packed_any_more(make_model: MakeModel, batch: Batch) -> None:
    model, other = make_model().float(), make_model().float()
    for parameter in other.parameters():
        parameter.mul_(-1.5)
    model.pack_weights("float32")
    model.load_state_dict(other.state_dict())
    tokens = torch.tensor([5, 6, 7])
    log_probabilities, expected = (network.step(tokens, network.start(*batch[:2]))[0] for network in (model, other))
    assert torch.equal(log_probabilities, expected)


@torch.inference_mode()
def test_a_packed_model_that_is_converted_is_not_packed_any_more(make_model: MakeModel, batch: Batch) -> None:
    model, tokens = make_model().float(), torch.tensor([5, 6, 7])
    model.pack_weights("bfloat16")
    model.double()
    log_probabilities, _ = model.step(tokens, model.start(*batch[:2]))
    expected, _ = (again := make_model()).step(tokens, again.start(*batch[:2]))
    assert log_probabilities.dtype == torch.float64
    torch.testing.assert_close(log_probabilities, expected, rtol=1e-6, atol=1e-6)
