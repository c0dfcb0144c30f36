"""The package's side of the comparison: models in float64 with weights that differ from one another, and their batches.

The oracle imports nothing from here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from nmt.config.schema import ModelConfig
from nmt.data.batch import Batch, make_batch
from nmt.models.seq2seq import Seq2Seq, build_model
from tests.oracle.cases import SOURCE_SIZE, TARGET_SIZE, Case, settings
from tests.oracle.equations import Model, Settings, Vector, Weights

BEGIN, END = 2, 3
SOURCES = [[4, 5, 6, 7, 8, 9], [10, 5, 9], []]  # without END: longer than any window, shorter, and shorter than all
TARGETS = [[10, 11, 12, 5], [4, 9], [6]]
TOLERANCE = 1e-9
STEP = 1e-30  # i times this is added to weights; its square is 0 beside any of them


class Sides(NamedTuple):
    """One model twice."""

    model: Seq2Seq
    weights: Weights  # the oracle's: by the names of the parameters
    settings: Settings  # the section `model`, with every key

    def oracle(self) -> Model:
        return Model(self.weights, self.settings)


def sides(case: Case, *, seed: int = 5, **changes: Any) -> Sides:
    """The model of a case; `changes` by section, such as decoder={"dropout": 0.5}."""
    asked = settings(case)
    for section, values in changes.items():
        asked[section] = {**asked[section], **values}
    config = ModelConfig.model_validate(asked)
    source_size = TARGET_SIZE if config.tie_embeddings == "all" else SOURCE_SIZE
    torch.manual_seed(seed)
    model = build_model(config, source_size=source_size, target_size=TARGET_SIZE).double().eval()
    for parameter in model.parameters():  # biases too, or a forgotten one would not show
        torch.nn.init.normal_(parameter, std=0.5)
    weights = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    return Sides(model, weights, config.model_dump())


def batch(sources: Sequence[Sequence[int]] = SOURCES) -> Batch:
    """The pairs with TARGETS, padded."""
    return make_batch(sources, TARGETS, np.arange(len(TARGETS)))


def direction(weight: Vector) -> Vector:
    """One in which a weight is moved; always the same."""
    return np.random.default_rng(weight.size).normal(size=weight.shape)


def gradients(model: Seq2Seq) -> Weights:
    """Those that an update has left, by the names of the weights; 0 where nothing reads a weight."""
    return {
        name: np.zeros(weight.shape) if weight.grad is None else weight.grad.numpy()
        for name, weight in model.named_parameters()
    }


def close(result: Any, expected: Any) -> None:
    """Equal to 1e-9, relative where numbers are above 1."""
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=TOLERANCE, atol=TOLERANCE)
