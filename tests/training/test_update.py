"""One update: what it divides by, what accumulation and clipping do, and that divergence is caught."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batching import Batch, make_batch
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.optim import build_optimizer
from nmt.training.update import batch_loss, update
from nmt.training.validation import corpus_loss

SIZES = {"embedding_size": 3, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 5}}


@pytest.fixture
def model() -> Seq2Seq:
    torch.manual_seed(0)
    return build_model(ModelConfig.model_validate(SIZES), source_size=11, target_size=13).double().train()


def batches() -> list[Batch]:
    first = make_batch([[4, 5], [6]], [[7, 8, 9], [10]], np.array([0, 1]))
    second = make_batch([[7]], [[12, 11]], np.array([2]))
    return [first, second]


def training(**settings: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"optimizer": {"name": "sgd", "learning_rate": 1.0}, **settings})


def gradients(model: Seq2Seq) -> dict[str, torch.Tensor]:
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize(("normalise_by", "divisor"), [("tokens", 4 + 2 + 3), ("sentences", 3)])
def test_update_is_the_gradient_of_the_mean_loss(model: Seq2Seq, normalise_by: str, divisor: int) -> None:
    """Two accumulated batches equal one step along the sum of both gradients over 9 target tokens or 3 sentences."""
    reference = copy.deepcopy(model)
    total = sum(batch_loss(reference, batch, smoothing=0.1)[0] for batch in batches()) / divisor
    total.backward()  # type: ignore[union-attr]
    config = training(normalise_by=normalise_by, label_smoothing=0.1)
    result = update(model, build_optimizer(model.parameters(), config), batches(), rate=0.5, config=config)
    for name, parameter in model.named_parameters():
        before = dict(reference.named_parameters())[name]
        torch.testing.assert_close(parameter, before - 0.5 * before.grad, rtol=0, atol=1e-12)
    assert result.tokens == 9
    assert result.gradient_norm == pytest.approx(
        torch.cat([gradient.flatten() for gradient in gradients(reference).values()]).norm().item()
    )


def test_clipping_scales_the_whole_gradient(model: Seq2Seq) -> None:
    config = training(gradient_clip_norm=1e-3)
    result = update(model, build_optimizer(model.parameters(), config), batches(), rate=0.1, config=config)
    norm = torch.cat([gradient.flatten() for gradient in gradients(model).values()]).norm().item()
    assert result.gradient_norm > 5e-3
    assert norm == pytest.approx(1e-3, rel=1e-3)


def test_a_pair_in_a_padded_batch_costs_what_it_costs_alone(model: Seq2Seq) -> None:
    model.eval()
    together = batch_loss(model, batches()[0], smoothing=0.1)
    alone = [
        batch_loss(model, make_batch([source], [target], np.array([0])), smoothing=0.1)
        for source, target in (([4, 5], [7, 8, 9]), ([6], [10]))
    ]
    for index in (0, 1):
        torch.testing.assert_close(together[index], sum(pair[index] for pair in alone), rtol=0, atol=1e-12)


def test_divergence_is_reported_and_leaves_the_weights(model: Seq2Seq) -> None:
    with torch.no_grad():
        model.output_weight[3, 0] = float("nan")
    before = copy.deepcopy(model.state_dict())
    config = training()
    with pytest.raises(UserError, match=r"diverged.*learning_rate"):
        update(model, build_optimizer(model.parameters(), config), batches(), rate=1.0, config=config)
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=0, equal_nan=True)


def test_divergence_is_reported_by_validation_too(model: Seq2Seq) -> None:
    with torch.no_grad():
        model.output_weight[3, 0] = float("inf")
    with pytest.raises(UserError, match=r"diverged: validation loss .*learning_rate"):
        corpus_loss(model, batches())


def test_corpus_loss_is_the_mean_over_tokens_and_leaves_random_states(model: Seq2Seq) -> None:
    state = torch.get_rng_state()
    metrics = corpus_loss(model, batches())
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    model.eval()
    nll = sum(batch_loss(model, batch, smoothing=0.0)[1].item() for batch in batches())
    assert metrics["loss"] == pytest.approx(nll / 9)
    assert metrics["perplexity"] == pytest.approx(np.exp(nll / 9))
