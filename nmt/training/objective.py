"""What training minimizes: the loss of one batch.

It knows a model, a batch and the configuration; it knows no optimizer and no other process. A new objective is a
function that gives a `BatchLoss`, with its name in `OBJECTIVES`, which is a key of the configuration's `training`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import TrainingConfig
from nmt.data.batch import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.guidance import guided_loss
from nmt.ops.log_probabilities import log_probabilities
from nmt.ops.loss import r_drop_cross_entropy, smoothed_cross_entropy
from nmt.ops.masks import length_mask
from nmt.ops.risk import expected_risk
from nmt.training.word_replacement import with_replaced_words


class BatchLoss(NamedTuple):
    """The losses of a batch, each summed over its target tokens, in nats."""

    objective: Tensor  # to be minimized
    nll: Tensor  # the negative log-likelihood, without gradient
    guided: Tensor | None = None  # the guided loss, without gradient; None: the batch has no alignments
    risk: Tensor | None = None  # the expected risk summed over the sentences, without gradient; None: no candidates


def batch_loss(model: Seq2Seq, batch: Batch, *, smoothing: float, guidance: float = 0.0) -> BatchLoss:
    """The losses of a batch; the objective is the smoothed one plus `guidance` times the guided one."""
    outputs = model(batch.source, batch.source_lengths, batch.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    loss, nll = smoothed_cross_entropy(
        outputs.vectors[mask], model.output_weight, batch.target_output[mask], smoothing=smoothing
    )
    if batch.links is None:
        return BatchLoss(loss, nll)
    guided = guided_loss(outputs.weights, *batch.links)
    return BatchLoss(loss + guidance * guided, nll, guided.detach())


def cross_entropy(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
    """The losses of a batch with the smoothing and the guidance of the configuration: what is minimized by default."""
    guided = config.guided_alignment
    guidance = {} if guided is None else {"guidance": guided.weight}
    return batch_loss(model, batch, smoothing=config.label_smoothing, **guidance)


def r_drop_loss(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
    """The losses of a batch whose pairs are computed twice, with different dropout masks (Liang et al. 2021).

    The objective is the mean of both smoothed losses, plus α/4 of the divergences KL(p ‖ q) + KL(q ‖ p) of both
    distributions of each target token (see `nmt.ops.loss`), plus the guidance's weight times the mean of both guided
    losses; `nll` and `guided` are means, too. Both passes are one, of a batch twice as large.
    """
    assert config.r_drop is not None
    twice = batch.doubled()
    outputs = model(twice.source, twice.source_lengths, twice.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    vectors = outputs.vectors.unflatten(0, (2, -1)).permute(1, 2, 0, 3)[mask]  # (tokens, 2, output_size)
    loss, nll = r_drop_cross_entropy(
        vectors,
        model.output_weight,
        batch.target_output[mask],
        smoothing=config.label_smoothing,
        alpha=config.r_drop.weight,
    )
    if twice.links is None:
        return BatchLoss(loss, nll)
    guided = guided_loss(outputs.weights, *twice.links) / 2
    guidance = 0.0 if config.guided_alignment is None else config.guided_alignment.weight
    return BatchLoss(loss + guidance * guided, nll, guided.detach())


def risk_loss(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
    """The losses of a batch with candidates (Shen et al. 2016; see `nmt.ops.risk`); without any, the cross-entropy.

    The objective is Σ_s (R_s + λ · the smoothed loss of the reference of s, summed over its tokens). All candidates of
    a source see the same dropout in the encoder, and each its own in the decoder.
    """
    settings, candidates = config.minimum_risk, batch.candidates
    assert settings is not None
    if candidates is None:  # an example by itself
        return cross_entropy(model, batch, config)
    outputs = model(batch.source, batch.source_lengths, candidates.target[:, :-1], candidates.sources)
    words, mask = candidates.target[:, 1:], candidates.mask
    real = length_mask(candidates.target_lengths, words.size(1))
    of_tokens = log_probabilities(outputs.vectors[real], model.output_weight, words[real])
    of_targets = of_tokens.new_zeros(real.shape).masked_scatter(real, of_tokens).sum(dim=1)
    table = of_tokens.new_zeros(mask.shape).masked_scatter(mask, of_targets)
    is_reference = torch.zeros_like(mask)
    is_reference[:, 0] = True
    in_set = mask if settings.include_reference else mask & ~is_reference
    risk = expected_risk(table, candidates.costs.to(table.dtype), in_set, sharpness=settings.alpha).sum()
    objective, nll = risk, -table[:, 0].detach().sum()
    if settings.cross_entropy:
        first = real & is_reference[mask].unsqueeze(1)
        loss, _ = smoothed_cross_entropy(
            outputs.vectors[first], model.output_weight, words[first], smoothing=config.label_smoothing
        )
        objective = risk + settings.cross_entropy * loss
    return BatchLoss(objective, nll, risk=risk.detach())


OBJECTIVES: dict[str, Callable[[Seq2Seq, Batch, TrainingConfig], BatchLoss]] = {
    "r_drop": r_drop_loss,
    "minimum_risk": risk_loss,
}
"""By the keys of `training` that ask for them; without any of these, it is the cross-entropy."""


def training_loss(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
    """The losses of a batch whose objective is what `config` asks for."""
    if config.word_replacement is not None:
        sizes = (model.source_embedding.num_embeddings, model.target_embedding.num_embeddings)
        batch = with_replaced_words(batch, config.word_replacement, sizes=sizes)
    for key, objective in OBJECTIVES.items():
        if getattr(config, key) is not None:
            return objective(model, batch, config)
    return cross_entropy(model, batch, config)
