"""One update of the weights from the batches of one accumulation."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.config.schema import TrainingConfig
from nmt.data.batching import Batch
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import Computing, computing, native_bfloat16
from nmt.ops.loss import smoothed_cross_entropy
from nmt.ops.masks import length_mask


def chosen_computing(config: TrainingConfig, device: torch.device) -> Computing:
    """The kernels and the precision that the configuration asks for on this device."""
    rounds = config.precision == "bfloat16" or (config.precision == "auto" and native_bfloat16(device))
    return Computing(config.kernels != "plain", torch.bfloat16 if rounds else torch.float32)


class UpdateResult(NamedTuple):
    """What an update measured."""

    loss: float  # nats, negative log-likelihood summed over the target tokens
    tokens: int  # target tokens
    gradient_norm: float  # before clipping


def diverged(numbers: str) -> UserError:
    """What is raised when the loss is no finite number any more."""
    return UserError(
        f"training diverged: {numbers}; lower training.optimizer.learning_rate, or set training.gradient_clip_norm"
    )


def batch_loss(model: Seq2Seq, batch: Batch, *, smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log-likelihood of a batch, each summed over its target tokens, in nats."""
    outputs = model(batch.source, batch.source_lengths, batch.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    return smoothed_cross_entropy(
        outputs.vectors[mask], model.output_weight, batch.target_output[mask], smoothing=smoothing
    )


def update(
    model: Seq2Seq, optimizer: Optimizer, group: Sequence[Batch], *, rate: float, config: TrainingConfig
) -> UpdateResult:
    """Add up the gradients of the batches in `group`, divide by their tokens or sentences, clip, and step at `rate`.

    Raises UserError when the loss or the gradient is no finite number; the weights are then as before.
    """
    tokens = sum(batch.target_tokens for batch in group)
    share = tokens if config.normalise_by == "tokens" else sum(len(batch.indices) for batch in group)
    device = model.output_weight.device
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    for batch in group:
        with computing(*chosen_computing(config, device)):
            loss, nll = batch_loss(model, batch.to(device), smoothing=config.label_smoothing)
            (loss / share).backward()
        total += nll
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip_norm or float("inf"))
    result = UpdateResult(float(total), tokens, float(norm))
    if not torch.isfinite(total + norm):
        raise diverged(f"loss {result.loss / tokens:.4g}, gradient norm {result.gradient_norm:.4g}")
    for parameters in optimizer.param_groups:
        parameters["lr"] = rate
    optimizer.step()
    return result
