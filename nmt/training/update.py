"""One update of the weights from the batches of one accumulation."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.config.schema import TrainingConfig
from nmt.data.batching import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import Computing, computing, native_bfloat16
from nmt.ops.memory import out_of_memory
from nmt.training.distributed import ALONE, Parallel
from nmt.training.objective import batch_loss


def chosen_computing(config: TrainingConfig, device: torch.device) -> Computing:
    """The kernels and the precision that the configuration asks for on this device."""
    rounds = config.precision == "bfloat16" or (config.precision == "auto" and native_bfloat16(device))
    return Computing(config.kernels != "plain", torch.bfloat16 if rounds else torch.float32)


class UpdateResult(NamedTuple):
    """What an update measured."""

    loss: float  # nats, negative log-likelihood summed over the target tokens
    tokens: int  # target tokens
    gradient_norm: float  # before clipping
    parts: int  # the batches, and what those that the memory does not hold were cut into

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradient are; otherwise the weights are as before the update."""
        return math.isfinite(self.loss + self.gradient_norm)


def update(
    model: Seq2Seq,
    optimizer: Optimizer,
    group: Sequence[Batch | None],
    *,
    rate: float,
    config: TrainingConfig,
    parallel: Parallel | None = None,
) -> UpdateResult:
    """Add up the gradients of the batches in `group`, divide by their tokens or sentences, clip, and step at `rate`.

    With `parallel` the batches are this process's shares (None: an empty one), and the tokens, sentences and gradients
    are those of all processes. Without it, batches that the memory does not hold are halved until it does.

    When the loss or the gradient is no finite number no step is made: weights and optimizer are then as before.
    """
    mine = [batch for batch in group if batch is not None]
    processes = ALONE if parallel is None else parallel.processes
    token_sum, sentences = processes.sums(
        sum(batch.target_tokens for batch in mine), sum(len(batch.indices) for batch in mine)
    )
    tokens = int(token_sum)
    share = token_sum if config.normalise_by == "tokens" else sentences
    device = model.output_weight.device
    on_device = [None if batch is None else batch.to(device) for batch in group]
    parts = len(mine)
    with computing(*chosen_computing(config, device)):
        if parallel is not None:
            optimizer.zero_grad(set_to_none=True)
            total = parallel.backward(on_device, share)
        else:
            total, parts = _backward_in_memory(model, optimizer, [each for each in on_device if each], share, config)
    (loss,) = processes.sums(float(total))
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip_norm or float("inf"))
    result = UpdateResult(loss, tokens, float(norm), parts)
    if result.is_finite:
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate
        optimizer.step()
    return result


def _backward_in_memory(
    model: Seq2Seq, optimizer: Optimizer, batches: Sequence[Batch], share: float, config: TrainingConfig
) -> tuple[Tensor, int]:
    """Leave the gradient of Σ loss / `share`; returns the negative log-likelihood, and how many parts it took.

    What an allocation that failed has left of the gradient is thrown away, and all is computed again in halves.
    """
    while True:
        optimizer.zero_grad(set_to_none=True)
        try:
            return sum((_backward(model, batch, share, config) for batch in batches), start=_zero(model)), len(batches)
        except RuntimeError as error:
            if not out_of_memory(error) or all(len(batch.indices) == 1 for batch in batches):
                raise
        batches = [half for batch in batches for half in batch.halves()]
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _backward(model: Seq2Seq, batch: Batch, share: float, config: TrainingConfig) -> Tensor:
    loss, nll = batch_loss(model, batch, smoothing=config.label_smoothing)
    (loss / share).backward()
    return nll


def _zero(model: Seq2Seq) -> Tensor:
    return torch.zeros((), device=model.output_weight.device)
