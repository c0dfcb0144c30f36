"""One update of the weights from the batches of one accumulation, by one process or by several together.

Of several processes each computes its share of every batch. PyTorch's DistributedDataParallel adds up their gradients,
by gloo on CPUs and by NCCL on GPUs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from nmt.config.schema import TrainingConfig
from nmt.data.batch import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import Computing, computing, native_bfloat16
from nmt.ops.memory import out_of_memory
from nmt.processes import ALONE, Processes
from nmt.training.objective import BatchLoss, training_loss
from nmt.training.recurrent_dropout import dropped_recurrent


def chosen_computing(config: TrainingConfig, device: torch.device) -> Computing:
    """The kernels and the precision that the configuration asks for on this device."""
    rounds = config.precision == "bfloat16" or (config.precision == "auto" and native_bfloat16(device))
    return Computing(config.kernels != "plain", torch.bfloat16 if rounds else torch.float32)


class UpdateResult(NamedTuple):
    """What an update measured."""

    loss: float  # nats, negative log-likelihood summed over the target tokens
    tokens: int  # target tokens
    gradient_norm: float  # before clipping
    parts: int  # how many batches, counting the parts of those that were cut because the memory did not hold them
    guided: float | None = None  # nats, guided loss summed over the target tokens, where alignments guide
    sentences: int = 0
    risk: float | None = None  # expected risk summed over the sentences, where candidates are scored

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradient are finite; otherwise the update changed no weight."""
        return math.isfinite(self.loss + self.gradient_norm)


def update(
    model: Seq2Seq,
    optimizer: Optimizer,
    group: Sequence[Batch | None],
    *,
    rate: float,
    config: TrainingConfig,
    parallel: "Parallel | None" = None,
) -> UpdateResult:
    """Add up the gradients of the batches in `group`, divide them as `normalize_by` says, clip, and step at `rate`.

    With `parallel` the batches are this process's shares (None: an empty one), and the tokens, sentences and gradients
    are those of all processes, which may have different numbers of batches. Without it, batches that the memory does
    not hold are halved until it does.

    If the loss or the gradient is not finite, no step is made, and weights and optimizer stay as they were.
    """
    mine = [batch for batch in group if batch is not None]
    processes = ALONE if parallel is None else parallel.processes
    tokens, sentences = processes.sums(
        sum(batch.target_tokens for batch in mine), sum(len(batch.indices) for batch in mine)
    )
    share = {"tokens": tokens, "sentences": sentences, "none": 1.0}[config.normalize_by]
    device = model.output_weight.device
    optimizer.zero_grad(set_to_none=True)
    dropped = dropped_recurrent(model, config.recurrent_dropout, processes=processes)
    with computing(*chosen_computing(config, device)), dropped:
        if parallel is None:
            on_device = [batch.to(device) for batch in mine]
            losses = _backward_in_memory(model, optimizer, on_device, share, config)
        else:
            losses = parallel.backward([None if batch is None else batch.to(device) for batch in group], share)
    columns = ([loss.nll for loss in losses], [loss.guided for loss in losses], [loss.risk for loss in losses])
    totals = [float(sum(number for number in column if number is not None)) for column in columns]  # 0 without any
    loss, guided, risk = processes.sums(*totals)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip_norm or float("inf"))
    result = UpdateResult(
        loss,
        int(tokens),
        float(norm),
        len(losses),
        guided=None if config.guided_alignment is None else guided,
        sentences=int(sentences),
        risk=None if config.minimum_risk is None else risk,
    )
    if result.is_finite:
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate
        optimizer.step()
    return result


def _backward_in_memory(
    model: Seq2Seq, optimizer: Optimizer, batches: Sequence[Batch], share: float, config: TrainingConfig
) -> list[BatchLoss]:
    """Leave the gradient of Σ objective / `share`; returns the losses of the batches, or of the parts that it took.

    If an allocation fails, the partial gradient is thrown away, and everything is computed again in halves.
    """
    while True:
        try:
            return [_backward(model, batch, share, config) for batch in batches]
        except RuntimeError as error:
            if not out_of_memory(error) or all(len(batch.indices) == 1 for batch in batches):
                raise
        batches = [half for batch in batches for half in batch.halves()]
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # where no GPU is used it does nothing


def _backward(model: Seq2Seq, batch: Batch, share: float, config: TrainingConfig) -> BatchLoss:
    loss = training_loss(model, batch, config)
    (loss.objective / share).backward()
    return loss._replace(objective=loss.objective.detach())


class Parallel:
    """A model whose gradients are summed over processes."""

    def __init__(self, model: Seq2Seq, processes: Processes, *, example: Batch, config: TrainingConfig) -> None:
        """`example` is a batch by which to find the weights that no loss depends on; nothing is trained with it."""
        self.processes = processes
        frozen = _unread(model, example, config)
        for parameter in frozen:
            parameter.requires_grad_(False)  # DistributedDataParallel would wait for their gradients
        ids = [model.output_weight.device] if model.output_weight.device.type == "cuda" else None
        self._wrapped = DistributedDataParallel(_TrainingLoss(model, config), device_ids=ids)

    def backward(self, batches: Sequence[Batch | None], share: float) -> list[BatchLoss]:
        """Leave in every process the gradient of Σ objective / `share` over the batches of all processes.

        Returns the losses of this process's batches. None stands for an empty share.
        """
        losses = []
        for batch in batches[:-1]:
            with self._wrapped.no_sync():
                losses.append(self._backward(batch, share))
        return [*losses, self._backward(batches[-1], share)]

    def _backward(self, batch: Batch | None, share: float) -> BatchLoss:
        loss: BatchLoss = self._wrapped(batch)
        (loss.objective * (self.processes.size / share)).backward()  # the processes' gradients are averaged
        return loss._replace(objective=loss.objective.detach(), nll=loss.nll.detach())


class _TrainingLoss(nn.Module):
    """`training_loss` as a module; of an empty share it is 0, with gradients that are 0."""

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        super().__init__()
        self.model, self.config = model, config

    def forward(self, batch: Batch | None) -> BatchLoss:
        if batch is not None:
            return training_loss(self.model, batch, self.config)
        nothing = torch.stack([weight.sum() * 0.0 for weight in self.model.parameters() if weight.requires_grad]).sum()
        return BatchLoss(nothing, nothing)


def _unread(model: Seq2Seq, example: Batch, config: TrainingConfig) -> list[nn.Parameter]:
    """The weights whose gradient is None; random states stay as they are."""
    device = model.output_weight.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        training_loss(model, example.to(device), config).objective.backward()
    unread = [parameter for parameter in model.parameters() if parameter.requires_grad and parameter.grad is None]
    model.zero_grad(set_to_none=True)
    return unread
