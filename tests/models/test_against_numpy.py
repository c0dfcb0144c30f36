"""Decoders, scores, and scopes against the oracle in NumPy, to 1e-10: contexts and states as well. The fast tests have
every two of them, and every encoder and initial state; the slow ones every combination.

tests/oracle has the oracle, and compares what a model makes of all this: probabilities, gradients, searches.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nmt.models.seq2seq import Seq2Seq
from tests.models.conftest import COMBINATIONS, EVERY_TWO_PARTS
from tests.oracle.equations import Model, Step, Vector

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

RESET_FIRST: Changes = {"cell": "gru_reset_first"}
ENCODERS_AND_STATES: dict[str, Changes] = {
    "gru": {},
    "lstm": {"encoder": {"cell": "lstm"}, "decoder": {"cell": "lstm"}},
    "gru encoder, lstm decoder": {"decoder": {"cell": "lstm", "layers": 2}},
    "reset first": {"encoder": RESET_FIRST, "decoder": RESET_FIRST},
    "reset first, layers, no input feeding": {
        "encoder": {**RESET_FIRST, "layers": 2, "bidirectional": False, "reverse_source": True},
        "decoder": {**RESET_FIRST, "layers": 2, "input_feeding": False},
    },
    "reset first, copy": {
        "encoder": {**RESET_FIRST, "layers": 2, "directions": "sum"},
        "decoder": {**RESET_FIRST, "layers": 2, "type": "bahdanau", "initial_state": "copy", "hidden_size": 10},
    },
    "reset first, conditional GRU": {"encoder": RESET_FIRST, "decoder": {**RESET_FIRST, "type": "conditional_gru"}},
    "layers": {"encoder": {"layers": 2}, "decoder": {"layers": 3}},
    "layers, no input feeding": {"encoder": {"layers": 2}, "decoder": {"layers": 2, "input_feeding": False}},
    "unidirectional": {"encoder": {"bidirectional": False}},
    "sum": {"encoder": {"directions": "sum"}},
    "sum, lstm layers": {"encoder": {"directions": "sum", "cell": "lstm", "layers": 2}},
    "reversed": {"encoder": {"reverse_source": True}},
    "reversed, one direction": {"encoder": {"reverse_source": True, "bidirectional": False, "layers": 2}},
    "reversed, local-p": {"encoder": {"reverse_source": True}, "attention": {"scope": "local-p", "half_width": 2}},
    "normalized": {"encoder": {"layer_normalization": True}},
    "normalized, reversed sum": {
        "encoder": {"layer_normalization": True, "reverse_source": True, "directions": "sum", "layers": 2}
    },
    "mean": {"decoder": {"initial_state": "mean"}},
    "mean, normalized reversed sum": {
        "encoder": {"layer_normalization": True, "reverse_source": True, "directions": "sum"},
        "decoder": {"initial_state": "mean", "cell": "lstm", "layers": 2},
    },
    "final, reversed lstm layers": {
        "encoder": {"reverse_source": True, "cell": "lstm", "layers": 2},
        "decoder": {"cell": "lstm", "layers": 2},
    },
    "zeros": {"decoder": {"initial_state": "zeros", "cell": "lstm"}},
    "copy": {
        "encoder": {"cell": "lstm", "layers": 2},
        "decoder": {"initial_state": "copy", "cell": "lstm", "layers": 2, "hidden_size": 20},
    },
    "copy, one direction": {
        "encoder": {"layers": 2, "bidirectional": False},
        "decoder": {"initial_state": "copy", "layers": 2, "hidden_size": 10},
    },
    "copy, reversed sum": {
        "encoder": {"cell": "lstm", "layers": 2, "directions": "sum", "reverse_source": True},
        "decoder": {"initial_state": "copy", "cell": "lstm", "layers": 2, "hidden_size": 10},
    },
    "forward": {
        "encoder": {"cell": "lstm", "layers": 2},
        "decoder": {"initial_state": "forward", "cell": "lstm", "layers": 3, "hidden_size": 10},
    },
    "forward, one direction": {
        "encoder": {"bidirectional": False},
        "decoder": {"initial_state": "forward", "hidden_size": 10, "type": "bahdanau"},
    },
    "alternate": {
        "encoder": {"cell": "lstm"},
        "decoder": {"initial_state": "alternate", "cell": "lstm", "layers": 2, "hidden_size": 10},
    },
    "alternate, layers": {
        "encoder": {"layers": 2, "reverse_source": True},
        "decoder": {"initial_state": "alternate", "layers": 4, "hidden_size": 10},
    },
    "no end mark": {"encoder": {"end_mark": False}},
    "no end mark, reversed": {
        "encoder": {"end_mark": False, "reverse_source": True, "bidirectional": False, "layers": 2, "cell": "lstm"},
        "decoder": {"initial_state": "copy", "cell": "lstm", "layers": 2, "hidden_size": 10},
    },
    "no end mark, reversed, local-p": {
        "encoder": {"end_mark": False, "reverse_source": True},
        "attention": {"scope": "local-p", "half_width": 2},
    },
    "no end mark, local-m, mean": {
        "encoder": {"end_mark": False},
        "attention": {"score": "location_sensitive", "scope": "local-m", "half_width": 2, "coverage": True},
        "decoder": {"initial_state": "mean", "type": "conditional_gru"},
    },
    "no end mark, RNNencdec": {
        "encoder": {"end_mark": False, "bidirectional": False},
        "attention": {"score": "fixed"},
        "decoder": {"type": "bahdanau"},
    },
    "no end mark, reversed, RNNencdec": {
        "encoder": {"end_mark": False, "reverse_source": True, "bidirectional": False},
        "attention": {"score": "fixed"},
        "decoder": {"type": "bahdanau"},
    },
    "linear": {"decoder": {"attentional_activation": "none"}},
    "linear, no input feeding": {"decoder": {"attentional_activation": "none", "input_feeding": False}},
    "local-m, gaussian": {"attention": {"scope": "local-m", "half_width": 2, "gaussian": True}},
    "local-p, position of the length, unscaled": {
        "attention": {"scope": "local-p", "half_width": 2, "position_scale": "length", "position_logit": "unscaled"},
        "decoder": {"type": "bahdanau"},
    },
    "cosine, fixed": {"attention": {"score": "cosine", "temperature": 1.5}, "decoder": {"hidden_size": 20}},
    "no attention, mean": {"attention": {"score": "none"}, "decoder": {"initial_state": "mean", "type": "bahdanau"}},
    "paper's order": {"decoder": {"type": "bahdanau", "order": "paper", "cell": "lstm", "layers": 2}},
    "residual": {"encoder": {"layers": 3, "residual": True}, "decoder": {"layers": 3, "residual": True}},
    "residual, lstm sum": {
        "encoder": {"layers": 2, "residual": True, "cell": "lstm", "directions": "sum", "layer_normalization": True},
        "decoder": {"layers": 3, "residual": True, "cell": "lstm", "input_feeding": False},
    },
    "residual, reversed, one direction": {
        "encoder": {"layers": 3, "residual": True, "reverse_source": True, "bidirectional": False, "cell": "lstm"},
        "decoder": {"layers": 2, "residual": True, "initial_state": "mean", "type": "conditional_gru"},
    },
    "residual, copy": {
        "encoder": {"layers": 2, "residual": True},
        "decoder": {"layers": 2, "residual": True, "initial_state": "copy", "hidden_size": 20, "type": "bahdanau"},
    },
    "residual, paper's order, local-p": {
        "encoder": {"layers": 2, "residual": True},
        "attention": {"score": "location_sensitive", "scope": "local-p", "half_width": 2, "coverage": True},
        "decoder": {"layers": 3, "residual": True, "type": "bahdanau", "order": "paper"},
    },
    "RNNencdec": {
        "encoder": {"bidirectional": False},
        "attention": {"score": "fixed"},
        "decoder": {"type": "bahdanau", "initial_state": "final"},
    },
    "tied target": {"tie_embeddings": "target", "decoder": {"output_size": 2}},
    "tied target, maxout": {"tie_embeddings": "target", "decoder": {"output_size": 2, "type": "bahdanau"}},
}


DEEP = {"layers": 3, "layer_normalization": True}


@pytest.mark.parametrize(
    "name", [name if name in EVERY_TWO_PARTS else pytest.param(name, marks=pytest.mark.slow) for name in COMBINATIONS]
)
def test_every_combination(make_model: MakeModel, resolve: Callable[..., Changes], batch: Batch, name: str) -> None:
    """With one GRU layer."""
    compare(make_model(**COMBINATIONS[name]), resolve(**COMBINATIONS[name]), batch)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_TWO_PARTS)
def test_deep_decoders(make_model: MakeModel, resolve: Callable[..., Changes], batch: Batch, name: str) -> None:
    """With layer normalization and three layers, of LSTMs where the decoder has them."""
    decoder = COMBINATIONS[name]["decoder"]
    cell = "gru" if decoder["type"] == "conditional_gru" else "lstm"
    changes = {**COMBINATIONS[name], "decoder": {**decoder, **DEEP, "cell": cell}}
    compare(make_model(**changes), resolve(**changes), batch)


LOCAL = {
    "local-m, gaussian": {"scope": "local-m", "half_width": 2, "gaussian": True},
    "local-p, unscaled": {"scope": "local-p", "half_width": 2, "position_logit": "unscaled"},
    "local-p, position of the length": {"scope": "local-p", "half_width": 2, "position_scale": "length"},
}


@pytest.mark.parametrize("attention", LOCAL.values(), ids=LOCAL)
def test_every_local_scope(
    make_model: MakeModel, resolve: Callable[..., Changes], batch: Batch, attention: Changes
) -> None:
    changes = {"attention": attention, "decoder": {"hidden_size": 20}}
    compare(make_model(**changes), resolve(**changes), batch)


@pytest.mark.parametrize("changes", ENCODERS_AND_STATES.values(), ids=ENCODERS_AND_STATES)
def test_every_encoder_and_initial_state(
    make_model: MakeModel, resolve: Callable[..., Changes], batch: Batch, changes: Changes
) -> None:
    compare(make_model(**changes), resolve(**changes), batch)


def compare(model: Seq2Seq, settings: Changes, batch: Batch) -> None:
    """Weights, contexts, states and log-probabilities of a padded batch against single sentences, all steps at once
    and step by step."""
    source, lengths, target_input = batch
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    oracle = Model(weights, settings)
    expected = [
        oracle.forced(source[row, :length].tolist(), target_input[row].tolist())
        for row, length in enumerate(lengths.tolist())
    ]
    with torch.no_grad():
        outputs = model(*batch)
        log_probabilities = torch.log_softmax(functional.linear(outputs.vectors, model.output_weight), dim=-1)
        stepwise = by_steps(model, batch)
    for row, steps in enumerate(expected):
        log_probabilities_expected, weights_expected = of_all(steps, "log_probabilities"), of_all(steps, "weights")
        close(log_probabilities[row], log_probabilities_expected)
        same_weights(outputs.weights[row], weights_expected)
        close(stepwise["log-probabilities"][row], log_probabilities_expected)
        same_weights(stepwise["weights"][row], weights_expected)
        close(stepwise["contexts"][row], of_all(steps, "context"))
        close(
            stepwise["states"][row], np.array([np.concatenate([*map(np.concatenate, step.states)]) for step in steps])
        )


def of_all(steps: list[Step], name: str) -> Vector:
    return np.array([getattr(step, name) for step in steps])


def by_steps(model: Seq2Seq, batch: Batch) -> dict[str, Tensor]:
    """What a model computes step by step, each (batch, target_length, …); a state is all vectors of all layers."""
    seen: list[tuple[Tensor, Tensor]] = []
    handle = model.decoder.attention.register_forward_hook(lambda module, inputs, result: seen.append(result))
    state, log_probabilities, states = model.start(batch[0], batch[1]), [], []
    for tokens in batch[2].unbind(1):
        of_step, state = model.step(tokens, state)
        log_probabilities.append(of_step)
        states.append(torch.cat([vector for layer in state.decoder.layers for vector in layer], dim=1))
    handle.remove()
    assert len(seen) == batch[2].size(1)
    contexts, weights = zip(*seen, strict=True)
    return {
        "log-probabilities": torch.stack(log_probabilities, dim=1),
        "weights": torch.cat(weights, dim=1),
        "contexts": torch.cat(contexts, dim=1),
        "states": torch.stack(states, dim=1),
    }


def close(result: Tensor, expected: Vector) -> None:
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-10)


def same_weights(result: Tensor, expected: Vector) -> None:
    """`result` (target_length, padded source_length) is `expected` inside the sentence and 0 after it, exactly; and
    where one of them is exactly 0 inside, outside a window, so is the other."""
    length = expected.shape[1]
    close(result[:, :length], expected)
    assert not result[:, length:].any()
    assert ((result[:, :length].numpy() == 0) == (expected == 0)).all()
