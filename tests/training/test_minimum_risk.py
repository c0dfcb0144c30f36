"""Minimum risk training of a small model: what an update minimizes, in however many parts."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batch import Batch, make_batch, make_candidates
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.objective import batch_loss, training_loss
from nmt.training.optim import build_optimizer
from nmt.training.update import update

SIZES: dict[str, Any] = {"embedding_size": 3, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 5}}
SOURCES = [[4, 5], [6], [7, 8, 9]]
TRANSLATIONS = [  # the first of each is the reference
    [[7, 8, 9], [7, 8], [12]],
    [[10], []],
    [[5, 4], [5, 4, 6, 11, 7], [5, 5], [4], [11, 12, 4]],
]
COSTS = [[0.0, 0.3, 1.0], [0.0, 0.9], [0.0, 0.6, 0.25, 0.8, 0.95]]


@pytest.fixture
def model() -> Seq2Seq:
    return built("luong")


def built(decoder: str, **settings: Any) -> Seq2Seq:
    torch.manual_seed(0)
    config = {**SIZES, "decoder": {**SIZES["decoder"], "type": decoder}, **settings}
    return build_model(ModelConfig.model_validate(config), source_size=11, target_size=13).double().train()


def batch() -> Batch:
    whole = make_batch(SOURCES, [references[0] for references in TRANSLATIONS], np.array([3, 1, 2]))
    return whole._replace(candidates=make_candidates(TRANSLATIONS, COSTS))


def training(**risk: Any) -> TrainingConfig:
    optimizer = {"name": "sgd", "learning_rate": 1.0}
    smoothing = 0.1 if risk.get("cross_entropy") else 0.0
    settings = {"optimizer": optimizer, "normalize_by": "sentences", "label_smoothing": smoothing}
    return TrainingConfig.model_validate({**settings, "minimum_risk": {"alpha": 0.4, **risk}})


def plainly(model: Seq2Seq, *, include_reference: bool = True, cross_entropy: float = 0.0) -> torch.Tensor:
    """The objective sentence by sentence and candidate by candidate, each with its source in a batch of its own."""
    total = torch.zeros((), dtype=torch.float64)
    for source, translations, costs in zip(SOURCES, TRANSLATIONS, COSTS, strict=True):
        alone = [make_batch([source], [translation], np.zeros(1, dtype=np.int64)) for translation in translations]
        log_p = torch.stack([-batch_loss(model, one, smoothing=0.0).objective for one in alone])
        powers = (0.4 * log_p).exp()[0 if include_reference else 1 :]
        total = total + (powers * torch.tensor(costs[len(costs) - len(powers) :])).sum() / powers.sum()
        if cross_entropy:
            total = total + cross_entropy * batch_loss(model, alone[0], smoothing=0.1).objective
    return total


@pytest.mark.parametrize(
    ("decoder", "attention", "settings"),
    [
        ("luong", {}, {}),
        ("luong", {}, {"include_reference": False}),
        ("luong", {}, {"cross_entropy": 0.7}),
        ("luong", {"scope": "local-p", "half_width": 1}, {}),
        ("bahdanau", {"coverage": True}, {"include_reference": False}),
        ("conditional_gru", {"score": "location_sensitive"}, {"cross_entropy": 0.7}),
    ],
)
def test_the_objective_and_its_gradient_are_those_of_single_candidates(
    decoder: str, attention: dict[str, Any], settings: dict[str, Any]
) -> None:
    model = built(decoder, attention=attention)
    reference = copy.deepcopy(model)
    expected = plainly(reference, **settings)
    expected.backward()
    loss = training_loss(model, batch(), training(**settings))
    loss.objective.backward()
    torch.testing.assert_close(loss.objective.detach(), expected.detach(), rtol=0, atol=1e-7)  # costs are float32
    for (name, weight), other in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=0, atol=1e-7, msg=name)
    without = {name: value for name, value in settings.items() if name != "cross_entropy"}
    assert loss.risk is not None
    assert float(loss.risk) == pytest.approx(float(plainly(reference, **without).detach()), abs=1e-7)
    assert float(loss.nll) == pytest.approx(float(batch_loss(reference, batch(), smoothing=0.0).nll), abs=1e-9)


@pytest.mark.parametrize(
    ("positions", "parts", "normalize_by"), [(10**6, 1, "tokens"), (60, 2, "sentences"), (1, 3, "tokens")]
)
def test_parts_make_the_update_of_the_whole(model: Seq2Seq, positions: int, parts: int, normalize_by: str) -> None:
    """One step along the gradient of the mean risk, in one part, two or three."""
    reference = copy.deepcopy(model)
    (plainly(reference) / {"tokens": 4 + 2 + 3, "sentences": 3}[normalize_by]).backward()
    group = batch().with_candidates_within(positions)
    config = training().model_copy(update={"normalize_by": normalize_by})
    result = update(model, build_optimizer(model.parameters(), config), group, rate=0.5, config=config)
    for computed, before in zip(model.parameters(), reference.parameters(), strict=True):
        assert before.grad is not None
        torch.testing.assert_close(computed, before - 0.5 * before.grad, rtol=0, atol=1e-7)
    assert (result.parts, result.tokens, result.sentences) == (parts, 9, 3)
    assert result.risk == pytest.approx(float(plainly(reference).detach()), abs=1e-6)


def test_halves_have_the_candidates_of_their_sources() -> None:
    first, second = batch().halves()
    assert first.candidates is not None
    assert second.candidates is not None
    assert first.candidates.target.tolist() == [[2, 7, 8, 9, 3], [2, 7, 8, 3, 0], [2, 12, 3, 0, 0]]
    assert second.candidates.target_lengths.tolist() == [2, 1, 3, 6, 3, 2, 4]
    assert second.candidates.sources.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert second.candidates.costs.tolist() == torch.tensor([[0.0, 0.9, 0, 0, 0], COSTS[2]]).tolist()
    (alone, _) = second.halves()
    assert alone.candidates is not None
    assert alone.candidates.mask.tolist() == [[True, True]]
    assert alone.candidates.target.tolist() == [[2, 10, 3], [2, 3, 0]]
