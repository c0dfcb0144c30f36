"""One update: what it divides by, what accumulation and clipping do, and what numbers that are none do."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batch import Batch, PieceLinks, make_batch
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.ops.computing import computing
from nmt.training.corpus_loss import corpus_loss
from nmt.training.objective import BatchLoss, batch_loss, training_loss
from nmt.training.optim import build_optimizer
from nmt.training.update import update

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


def norm_of_gradient(model: Seq2Seq) -> float:
    return torch.cat([gradient.flatten() for gradient in gradients(model).values()]).norm().item()


def test_clipping_scales_the_whole_gradient(model: Seq2Seq) -> None:
    config = training(gradient_clip_norm=1e-3)
    result = update(model, build_optimizer(model.parameters(), config), batches(), rate=0.1, config=config)
    assert result.gradient_norm > 5e-3
    assert norm_of_gradient(model) == pytest.approx(1e-3, rel=1e-3)


def test_clipping_compares_the_gradient_of_the_sum(model: Seq2Seq) -> None:
    """A bound between the norms of the mean and of the sum over 9 tokens clips only the latter; losses are the same."""
    results = {}
    for normalize_by in ("tokens", "none"):
        copied, config = copy.deepcopy(model), training(normalize_by=normalize_by)
        results[normalize_by] = update(
            copied, build_optimizer(copied.parameters(), config), batches(), rate=0.1, config=config
        )
    mean, summed = results["tokens"], results["none"]
    assert summed.gradient_norm == pytest.approx(9 * mean.gradient_norm, rel=1e-9)
    assert (summed.loss, summed.tokens) == (mean.loss, mean.tokens)
    bound = 3 * mean.gradient_norm
    for normalize_by, expected in (("tokens", mean.gradient_norm), ("none", bound)):
        copied, config = copy.deepcopy(model), training(normalize_by=normalize_by, gradient_clip_norm=bound)
        update(copied, build_optimizer(copied.parameters(), config), batches(), rate=0.1, config=config)
        assert norm_of_gradient(copied) == pytest.approx(expected, rel=1e-4)


def test_an_update_without_a_number_leaves_weights_and_optimizer(model: Seq2Seq) -> None:
    config = training(optimizer={"name": "adam"})
    optimizer = build_optimizer(model.parameters(), config)
    assert update(model, optimizer, batches(), rate=1.0, config=config).is_finite
    with torch.no_grad():
        model.output_weight[3, 0] = float("nan")
    before = copy.deepcopy([model.state_dict(), optimizer.state_dict()["state"]])
    result = update(model, optimizer, batches(), rate=1.0, config=config)
    assert not result.is_finite
    assert np.isnan(result.loss)
    after = [model.state_dict(), optimizer.state_dict()["state"]]
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)


def test_corpus_loss_is_the_mean_over_tokens_and_leaves_random_states(model: Seq2Seq) -> None:
    state = torch.get_rng_state()
    metrics = corpus_loss(model, batches())
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    model.eval()
    nll = sum(batch_loss(model, batch, smoothing=0.0).nll.item() for batch in batches())
    assert metrics["loss"] == pytest.approx(nll / 9)
    assert metrics["perplexity"] == pytest.approx(np.exp(nll / 9))


@pytest.mark.parametrize(
    ("fits", "sizes", "settings"),
    [
        (8, [5, 1], {}),
        (3, [2, 3, 1], {"normalize_by": "none"}),
        (3, [2, 3, 1], {"guided_alignment": {"weight": 3.0}}),
        (1, [1, 1, 1, 1, 1, 1], {"r_drop": {"weight": 5.0}}),
    ],
)
def test_batches_that_memory_does_not_hold_are_halved(
    model: Seq2Seq, monkeypatch: pytest.MonkeyPatch, fits: int, sizes: list[int], settings: dict[str, Any]
) -> None:
    """Five sentences and one: the gradient and the losses are those of the whole batches, in however many parts."""
    links = PieceLinks(*(torch.tensor(part) for part in ([0, 0, 2, 4], [0, 1, 0, 0], [1, 0, 2, 0], [1.0] * 4)))
    five = make_batch([[4, 5], [6], [7, 8, 9], [4], [5]], [[7, 8, 9], [10], [5], [6, 7], [8]], np.arange(5))
    group = [five._replace(links=links), make_batch([[7]], [[12, 11]], np.array([5]))]
    reference, config = copy.deepcopy(model), training(label_smoothing=0.1, **settings)
    whole = update(reference, build_optimizer(reference.parameters(), config), group, rate=0.5, config=config)
    computed = []

    def short_of_memory(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
        if len(batch.indices) > fits:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12345 bytes.")
        computed.append(len(batch.indices))
        return training_loss(model, batch, config)

    monkeypatch.setattr("nmt.training.update.training_loss", short_of_memory)
    result = update(model, build_optimizer(model.parameters(), config), group, rate=0.5, config=config)
    assert (whole.parts, result.parts) == (2, len(sizes))
    assert computed[-len(sizes) :] == sizes
    assert result.loss == pytest.approx(whole.loss, rel=1e-12)
    assert result.guided == (None if whole.guided is None else pytest.approx(whole.guided, rel=1e-12))
    for weight, expected in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=0, atol=1e-12)


def test_one_sentence_that_memory_does_not_hold_is_an_error(model: Seq2Seq, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("nmt.training.objective.batch_loss", never)
    config = training()
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        update(model, build_optimizer(model.parameters(), config), batches(), rate=1.0, config=config)


def test_plain_kernels_and_bfloat16_are_what_the_configuration_says(model: Seq2Seq) -> None:
    """Plain kernels give the same update; bfloat16 gives a near one, of float32 weights only."""
    weights = {}
    for name, settings in {
        "fused": {},
        "plain": {"kernels": "plain"},
        "bfloat16": {"precision": "bfloat16"},
    }.items():
        copied, config = copy.deepcopy(model).float(), training(**settings)
        update(copied, build_optimizer(copied.parameters(), config), batches(), rate=1.0, config=config)
        weights[name] = torch.cat([parameter.detach().flatten() for parameter in copied.parameters()])
    torch.testing.assert_close(weights["fused"], weights["plain"], rtol=0, atol=1e-5)
    assert not torch.equal(weights["fused"], weights["plain"])
    error = float((weights["fused"] - weights["bfloat16"]).norm() / weights["fused"].norm())
    assert 1e-5 < error < 1e-2


# ----------------------------------------------------------------------------------------------------- guided alignment

GUIDED = {"label_smoothing": 0.1, "guided_alignment": {"weight": 0.7}}


def aligned_batches() -> list[Batch]:
    """Of 9 target tokens 5 have a link; the last batch of 3 has none at all."""
    first, second = batches()
    links = [(0, 0, 1, 1.0), (0, 2, 0, 0.5), (0, 2, 1, 0.5), (1, 0, 0, 1.0)], [(0, 0, 0, 1.0), (0, 1, 0, 1.0)]
    third = make_batch([[5, 6, 8]], [[9, 9]], np.array([3]))
    return [
        batch._replace(links=PieceLinks(*(torch.tensor(part) for part in zip(*rows, strict=True))))
        for batch, rows in zip((first, second), links, strict=True)
    ] + [third._replace(links=PieceLinks(*(torch.empty(0, dtype=torch.int64) for _ in range(3)), torch.empty(0)))]


def dense_guided(model: Seq2Seq, batch: Batch) -> torch.Tensor:
    """The formula over a whole matrix."""
    weights = model(batch.source, batch.source_lengths, batch.target_input).weights
    alignment = torch.zeros_like(weights)
    assert batch.links is not None
    alignment[batch.links.rows, batch.links.targets, batch.links.sources] = batch.links.shares.double()
    return -(alignment * weights.clamp(min=1e-300).log()).sum()


def test_guided_loss_of_a_corpus(model: Seq2Seq) -> None:
    """For each target token, as the loss; without alignments there is none."""
    assert "guided_loss" not in corpus_loss(model, batches())
    metrics = corpus_loss(model, aligned_batches())
    model.eval()
    guided = sum(dense_guided(model, batch).item() for batch in aligned_batches())
    assert metrics["guided_loss"] == pytest.approx(guided / 12, rel=1e-12)
    assert metrics["loss"] == corpus_loss(model, [batch._replace(links=None) for batch in aligned_batches()])["loss"]


def test_guided_updates_in_bfloat16(model: Seq2Seq) -> None:
    """The products are rounded, attention and its logarithm are not."""
    results = []
    for precision in ("float32", "bfloat16"):
        config = training(**GUIDED, precision=precision)
        copied = copy.deepcopy(model).float()
        optimizer = build_optimizer(copied.parameters(), config)
        results.append(update(copied, optimizer, aligned_batches(), rate=0.5, config=config))
    assert results[0].gradient_norm != results[1].gradient_norm
    assert results[1].gradient_norm == pytest.approx(results[0].gradient_norm, rel=0.02)
    assert results[1].guided == pytest.approx(results[0].guided, rel=0.02)


# --------------------------------------------------------------------------------------------------------------- R-Drop

R_DROP = {"label_smoothing": 0.1, "r_drop": {"weight": 5.0}}


def dropping() -> Seq2Seq:
    """The usual model, with dropout of every kind, and with weights large enough that dropout makes a difference."""
    torch.manual_seed(0)
    rates = {"dropout": 0.3, "output_dropout": 0.2, "word_dropout": 0.1}
    sizes = {key: {**value, **rates} if isinstance(value, dict) else value for key, value in SIZES.items()}
    model = build_model(ModelConfig.model_validate(sizes), source_size=11, target_size=13).double().train()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("kernels", ["fused", "plain"])
def test_r_drop_objective(kernels: str) -> None:
    """(mean of the smoothed losses + 5/4 × both divergences) / 9 tokens, sentence by sentence."""
    model = dropping()
    reference, config = copy.deepcopy(model), training(**R_DROP, kernels=kernels)
    torch.manual_seed(5)
    total, nll, apart = torch.zeros((), dtype=torch.float64), 0.0, 0.0
    for batch in batches():
        rows = len(batch.indices)
        twice = (torch.cat((part, part)) for part in (batch.source, batch.source_lengths, batch.target_input))
        with computing(fused=kernels == "fused"):
            said = torch.log_softmax(reference(*twice).vectors @ reference.output_weight.T, dim=-1)
        for row, (length, target) in enumerate(zip(batch.target_lengths.tolist(), batch.target_output, strict=True)):
            p, q = said[row, :length], said[row + rows, :length]
            right = torch.stack(
                [distribution.gather(1, target[:length].unsqueeze(1)).sum() for distribution in (p, q)]
            ).sum()
            every = (p.sum() + q.sum()) / 13
            divergences = (p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()
            total = total - (0.9 * right + 0.1 * every) / 2 + 5.0 / 4 * divergences
            nll, apart = nll - right.item() / 2, apart + divergences.item()
    (total / 9).backward()
    torch.manual_seed(5)
    result = update(model, build_optimizer(model.parameters(), config), batches(), rate=0.5, config=config)
    assert apart > 1e-3
    assert result.loss == pytest.approx(nll, rel=1e-12)
    assert result.tokens == 9
    for name, parameter in model.named_parameters():
        before = dict(reference.named_parameters())[name]
        torch.testing.assert_close(parameter, before - 0.5 * before.grad, rtol=0, atol=1e-12)
