"""The whole model against an independent computation, and the contracts that search and training rely on."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

VARIANTS: dict[str, dict[str, Any]] = {
    "gru": {},
    "no input feeding": {"decoder": {"input_feeding": False}},
    "lstm": {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}},
    "lstm, no input feeding": {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm", "input_feeding": False}},
    "gru encoder, lstm decoder": {"decoder": {"cell": "lstm", "layers": 2}},
    "layers": {"encoder": {"layers": 2}, "decoder": {"layers": 3}},
    "layers, no input feeding": {"encoder": {"layers": 2}, "decoder": {"layers": 2, "input_feeding": False}},
    "unidirectional": {"encoder": {"bidirectional": False}},
    "mean": {"decoder": {"initial_state": "mean"}},
    "zeros": {"decoder": {"initial_state": "zeros", "cell": "lstm"}},
    "copy": {
        "encoder": {"cell": "lstm", "layers": 2, "hidden_size": 4},
        "decoder": {"initial_state": "copy", "cell": "lstm", "layers": 2, "hidden_size": 8},
    },
    "attention bias": {"attention": {"bias": True}},
    "tied target": {"tie_embeddings": "target", "decoder": {"output_size": 3}},
}


@pytest.fixture(scope="module")
def second() -> ModuleType:
    """The independent implementation, numpy_luong.py beside this file."""
    specification = importlib.util.spec_from_file_location("numpy_luong", Path(__file__).with_name("numpy_luong.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def log_probabilities(model: Seq2Seq, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = model(*batch)
    return torch.log_softmax(functional.linear(outputs.vectors, model.output_weight), dim=-1), outputs.weights


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_equals_the_numpy_implementation(
    make_model: MakeModel, batch: Batch, second: ModuleType, changes: dict[str, Any]
) -> None:
    """Log-probabilities and attention weights of padded batches equal those of single sentences in NumPy, to 1e-10."""
    model = make_model(**changes)
    encoder, decoder = changes.get("encoder", {}), changes.get("decoder", {})
    found, attention = log_probabilities(model, batch)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    for row, length in enumerate(batch[1].tolist()):
        expected, alphas = second.log_probabilities(
            weights,
            batch[0][row, :length].tolist(),
            batch[2][row].tolist(),
            encoder_cell=encoder.get("cell", "gru"),
            encoder_layers=encoder.get("layers", 1),
            directions=2 if encoder.get("bidirectional", True) else 1,
            decoder_cell=decoder.get("cell", "gru"),
            decoder_layers=decoder.get("layers", 1),
            size=decoder.get("hidden_size", 5),
            input_feeding=decoder.get("input_feeding", True),
            initial_state=decoder.get("initial_state", "final"),
        )
        np.testing.assert_allclose(found[row].detach().numpy(), expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(attention[row, :, :length].detach().numpy(), alphas, rtol=0, atol=1e-10)
        assert (attention[row, :, length:] == 0).all()


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_steps_equal_the_whole_sentence(make_model: MakeModel, batch: Batch, changes: dict[str, Any]) -> None:
    model = make_model(**changes)
    whole, _ = log_probabilities(model, batch)
    state = model.start(batch[0], batch[1])
    for position in range(batch[2].size(1)):
        step, state = model.step(batch[2][:, position], state)
        torch.testing.assert_close(step, whole[:, position], rtol=0, atol=1e-12)


def test_select_expands_reorders_and_drops(make_model: MakeModel, batch: Batch) -> None:
    """A beam of 2 is made, reordered, and the middle sentence dropped; each row goes on as if alone."""
    model = make_model()
    source, lengths, _ = batch
    state = model.start(source, lengths).select(torch.tensor([[0, 0], [1, 1], [2, 2]]))
    assert state.memory.values.size(0) == 3  # the memory is not copied a hypothesis
    _, state = model.step(torch.tensor([2, 9, 2, 9, 2, 9]), state)
    state = state.select(torch.tensor([[1, 0], [5, 5]]))
    found, _ = model.step(torch.tensor([10, 11, 12, 13]), state)
    for row, (sentence, tokens) in enumerate([(0, [9, 10]), (0, [2, 11]), (2, [9, 12]), (2, [9, 13])]):
        alone = model.start(source[sentence : sentence + 1, : lengths[sentence]], lengths[sentence : sentence + 1])
        for token in tokens:
            expected, alone = model.step(torch.tensor([token]), alone)
        torch.testing.assert_close(found[row], expected[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("changes", [{}, {"decoder": {"input_feeding": False}}], ids=["feeding", "no feeding"])
def test_gradients(make_model: MakeModel, batch: Batch, changes: dict[str, Any]) -> None:
    """Autograd against finite differences, for every parameter at once."""
    model = make_model(**changes)
    names, values = zip(*model.named_parameters(), strict=True)

    def outputs(*parameters: torch.Tensor) -> torch.Tensor:
        result = torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), batch)
        return result.vectors * result.vectors.detach().sign()

    assert torch.autograd.gradcheck(outputs, values, fast_mode=True)


def test_input_feeding_matters_and_carries_gradient(make_model: MakeModel, batch: Batch) -> None:
    model = make_model()
    model(*batch).vectors[:, -1].sum().backward()
    assert model.decoder.feed is not None
    gradient = model.decoder.feed.weight.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_no_dropout_outside_training(make_model: MakeModel, batch: Batch) -> None:
    rates = {"dropout": 0.5, "output_dropout": 0.5}
    model = make_model(encoder={**rates, "layers": 2}, decoder={**rates, "layers": 2})
    assert torch.equal(model(*batch).vectors, model(*batch).vectors)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"encoder": {"dropout": 0.999999}}, "encoder.network"),  # the source embeddings it reads are 0
        ({"encoder": {"output_dropout": 0.999999}}, "decoder.attention.score.memory_layer"),  # so are the annotations
        ({"decoder": {"dropout": 0.999999, "output_dropout": 0.0}}, "decoder.cells.0.input_layer"),
        ({"decoder": {"dropout": 0.999999, "output_dropout": 0.0, "layers": 2}}, "decoder.cells.1.input_layer"),
        ({"decoder": {"output_dropout": 0.999999}}, "decoder.feed"),
    ],
    ids=["source embeddings", "annotations", "target embeddings", "between layers", "attentional vector"],
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
    model = make_model(tie_embeddings=tie, decoder={"output_size": 3})
    owners = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert owners & {"source_embedding", "own_target_embedding", "output_layer"} == parameters
    assert (model.output_weight is model.target_embedding.weight) == (tie != "none")
    assert (model.target_embedding is model.source_embedding) == (tie == "all")
