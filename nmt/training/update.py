"""One update of the weights from the batches of one accumulation, by one process or by several together.

Of several processes each computes its share of every batch. PyTorch's DistributedDataParallel adds up their gradients,
by gloo on CPUs and by NCCL on GPUs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from nmt.config.schema import TrainingConfig
from nmt.data.batching import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import Computing, computing, native_bfloat16
from nmt.ops.loss import smoothed_cross_entropy
from nmt.ops.masks import length_mask
from nmt.ops.memory import out_of_memory
from nmt.training.distributed import ALONE, Processes


def chosen_computing(config: TrainingConfig, device: torch.device) -> Computing:
    """The kernels and the precision that the configuration asks for on this device."""
    rounds = config.precision == "bfloat16" or (config.precision == "auto" and native_bfloat16(device))
    return Computing(config.kernels != "plain", torch.bfloat16 if rounds else torch.float32)


def batch_loss(model: Seq2Seq, batch: Batch, *, smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log-likelihood of a batch, each summed over its target tokens, in nats."""
    outputs = model(batch.source, batch.source_lengths, batch.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    return smoothed_cross_entropy(
        outputs.vectors[mask], model.output_weight, batch.target_output[mask], smoothing=smoothing
    )


class UpdateResult(NamedTuple):
    """What an update measured."""

    loss: float  # nats, negative log-likelihood summed over the target tokens
    tokens: int  # target tokens
    gradient_norm: float  # before clipping
    parts: int  # how many batches, counting the parts of those that were cut because the memory did not hold them

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
    """Add up the gradients of the batches in `group`, divide them as `normalise_by` says, clip, and step at `rate`.

    With `parallel` the batches are this process's shares (None: an empty one), and the tokens, sentences and gradients
    are those of all processes. Without it, batches that the memory does not hold are halved until it does.

    If the loss or the gradient is not finite, no step is made, and weights and optimizer stay as they were.
    """
    mine = [batch for batch in group if batch is not None]
    processes = ALONE if parallel is None else parallel.processes
    tokens, sentences = processes.sums(
        sum(batch.target_tokens for batch in mine), sum(len(batch.indices) for batch in mine)
    )
    share = {"tokens": tokens, "sentences": sentences, "none": 1.0}[config.normalise_by]
    device = model.output_weight.device
    optimizer.zero_grad(set_to_none=True)
    with computing(*chosen_computing(config, device)):
        if parallel is None:
            on_device = [batch.to(device) for batch in mine]
            total, parts = _backward_in_memory(model, optimizer, on_device, share, smoothing=config.label_smoothing)
        else:
            total, parts = parallel.backward([batch and batch.to(device) for batch in group], share), len(mine)
    (loss,) = processes.sums(float(total))
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip_norm or float("inf"))
    result = UpdateResult(loss, int(tokens), float(norm), parts)
    if result.is_finite:
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate
        optimizer.step()
    return result


def _backward_in_memory(
    model: Seq2Seq, optimizer: Optimizer, batches: Sequence[Batch], share: float, *, smoothing: float
) -> tuple[Tensor, int]:
    """Leave the gradient of Σ loss / `share`; returns the negative log-likelihood, and how many parts it took.

    If an allocation fails, the partial gradient is thrown away, and everything is computed again in halves.
    """
    while True:
        nothing = torch.zeros((), device=model.output_weight.device)
        try:
            return sum((_backward(model, batch, share, smoothing) for batch in batches), start=nothing), len(batches)
        except RuntimeError as error:
            if not out_of_memory(error) or all(len(batch.indices) == 1 for batch in batches):
                raise
        batches = [half for batch in batches for half in batch.halves()]
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # where no GPU is used it does nothing


def _backward(model: Seq2Seq, batch: Batch, share: float, smoothing: float) -> Tensor:
    loss, nll = batch_loss(model, batch, smoothing=smoothing)
    (loss / share).backward()
    return nll


class Parallel:
    """A model whose gradients are summed over processes."""

    def __init__(self, model: Seq2Seq, processes: Processes, *, example: Batch, smoothing: float) -> None:
        """`example` is a batch by which to find the weights that no loss depends on; nothing is trained with it."""
        self.processes = processes
        frozen = _unread(model, example, smoothing=smoothing)
        for parameter in frozen:
            parameter.requires_grad_(False)  # DistributedDataParallel would wait for their gradients
        ids = [model.output_weight.device] if model.output_weight.device.type == "cuda" else None
        self._wrapped = DistributedDataParallel(_BatchLoss(model, smoothing), device_ids=ids)

    def backward(self, batches: Sequence[Batch | None], share: float) -> Tensor:
        """Leave in every process the gradient of Σ loss / `share` over the batches of all processes.

        Returns the negative log-likelihood of this process's batches. None stands for an empty share.
        """
        total = torch.zeros((), device=next(self._wrapped.parameters()).device)
        for batch in batches[:-1]:
            with self._wrapped.no_sync():
                total += self._backward(batch, share)
        return total + self._backward(batches[-1], share)

    def _backward(self, batch: Batch | None, share: float) -> Tensor:
        loss, nll = self._wrapped(batch)
        (loss * (self.processes.size / share)).backward()  # the processes' gradients are averaged
        return nll.detach()


class _BatchLoss(nn.Module):
    """`batch_loss` as a module; of an empty share it is 0, with gradients that are 0."""

    def __init__(self, model: Seq2Seq, smoothing: float) -> None:
        super().__init__()
        self.model, self.smoothing = model, smoothing

    def forward(self, batch: Batch | None) -> tuple[Tensor, Tensor]:
        if batch is not None:
            return batch_loss(self.model, batch, smoothing=self.smoothing)
        nothing = torch.stack([weight.sum() * 0.0 for weight in self.model.parameters() if weight.requires_grad]).sum()
        return nothing, nothing


def _unread(model: Seq2Seq, example: Batch, *, smoothing: float) -> list[nn.Parameter]:
    """The weights whose gradient is None; random states stay as they are."""
    device = model.output_weight.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        batch_loss(model, example.to(device), smoothing=smoothing)[0].backward()
    unread = [parameter for parameter in model.parameters() if parameter.requires_grad and parameter.grad is None]
    model.zero_grad(set_to_none=True)
    return unread
