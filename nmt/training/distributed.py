"""One training by several processes, as torchrun starts them: what they tell one another, and their common gradient.

Every process has the whole model and computes its share of each batch, the rows that `share_rows` gives it. Losses are
divided by the tokens (or sentences) of all shares before the gradients are added up, so N processes make the update
that one would make. Only the first process writes. PyTorch's DistributedDataParallel adds up the gradients, by gloo on
CPUs and by NCCL on GPUs.

They tell one another numbers, and texts as JSON, in tensors: nothing is ever unpickled. A process that does not answer
for `patience` ends the others.

By one or two processes a resumed run ends bit for bit like an uninterrupted one; among more, gradients are summed in
another order after the first update of each start.
"""

import gc
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from textwrap import shorten
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.data.batching import Batch
from nmt.errors import UserError
from nmt.jobs import torchrun
from nmt.models.seq2seq import Seq2Seq
from nmt.training.objective import batch_loss

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

Value = TypeVar("Value")
PATIENCE = timedelta(minutes=30)  # with a process that does not answer, which may be scoring a long line
PREPARED = "prepared"  # what is in the store when the first process has prepared the data
PAUSE = 0.2  # seconds between two looks at the store


class LostProcess(UserError):
    """Another process is gone; it may not have been able to say why."""


class Processes:
    """The processes of a training, seen from one of them. A training by itself is one of one."""

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        device: torch.device | None = None,
        store: "PrefixStore | None" = None,
    ) -> None:
        self.rank, self.size, self.device = rank, size, device
        self._store = store

    @property
    def is_first(self) -> bool:
        """Whether this one writes and tells."""
        return self.rank == 0

    def wait(self) -> None:
        """Return when all processes have come here."""
        if self.size > 1:
            distributed.barrier()

    def tell_prepared(self) -> None:
        """Let the others go on, as the first process, which has the run folder and has prepared the data."""
        if self._store is not None:
            self._store.set(PREPARED, "")

    def wait_until_prepared(self) -> None:
        """Return when the first process has told so, however long that takes; a signal ends it."""
        while self._store is not None and not self._store.check([PREPARED]):
            time.sleep(PAUSE)

    def sums(self, *numbers: float) -> list[float]:
        """Each of the numbers summed over the processes."""
        if self.size == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(totals)
        return totals.tolist()

    def check_same(self, what: str, value: str) -> None:
        """Raise UserError unless all processes have the same value."""
        values = self.gather(value)
        if len(set(values)) > 1:
            different = next(rank for rank, each in enumerate(values) if each != values[0])
            raise UserError(
                f"process {different} of {self.size} has another {what} than process 0: all must see the same "
                f"configuration, corpora and run folder ({shorten(values[different], 200)}; process 0: "
                f"{shorten(values[0], 200)})"
            )

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, in the order of their ranks: what JSON can hold, such as numbers and texts."""
        if self.size == 1:
            return [value]
        own = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        lengths = self._gathered(torch.tensor([len(own)], device=self.device))
        longest = max(int(length) for length in lengths)
        padded = self._gathered(nn.functional.pad(own, (0, longest - len(own))))
        texts = [each[: int(length)].cpu().numpy().tobytes() for each, length in zip(padded, lengths, strict=True)]
        return [json.loads(text) for text in texts]

    def gather_states(self, states: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        """The states of random generators, which are bytes, of all processes, in the order of their ranks."""
        every = self.gather({name: state.tolist() for name, state in states.items()})
        return [{name: torch.tensor(state, dtype=torch.uint8) for name, state in each.items()} for each in every]

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        tensors = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(tensors, tensor)
        return tensors


ALONE = Processes()


@contextmanager
def joined(
    device: torch.device, *, program: str, patience: timedelta = PATIENCE
) -> Iterator[tuple[Processes, torch.device]]:
    """The processes that torchrun started this one among, and the device of this one; by itself without torchrun.

    When another process dies, or does not answer for `patience`, what waits for it ends with a UserError.
    """
    if torchrun.processes() == 1:
        yield ALONE, device
        return
    if device.type == "cuda":
        device = torchrun.own_gpu()
    store, rank, size = torchrun.meet("training", program=program, patience=patience)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    try:
        processes = Processes(rank, size, device, store)
        yield processes, device
        processes.wait()  # a process that leaves early takes its connections with it
    except RuntimeError as error:
        if not _lost(error):
            raise
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends us now, but this is to be told first
        minutes = patience.total_seconds() / 60
        why = "has ended" if not _timed_out(error) else f"has not answered for {minutes:g} minutes (--rank-timeout)"
        raise LostProcess(
            f"process {rank} of {size}: another process of this training {why}, and so this one does; unless that "
            "one says otherwise, it continues with --resume from what the run had saved"
        ) from error
    finally:
        gc.collect()  # DistributedDataParallel is part of cycles, and aborts when it outlives its group
        distributed.destroy_process_group()


def _lost(error: RuntimeError) -> bool:
    """Whether a process that was waited for is gone."""
    texts = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
    return isinstance(error, distributed.DistError) or _timed_out(error) or any(text in str(error) for text in texts)


def _timed_out(error: RuntimeError) -> bool:
    return "Timed out" in str(error) or "timeout" in str(error)


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
        nothing = torch.stack([each.sum() * 0.0 for each in self.model.parameters() if each.requires_grad]).sum()
        return nothing, nothing


def _unread(model: Seq2Seq, example: Batch, *, smoothing: float) -> list[nn.Parameter]:
    """The weights whose gradient is None; random states stay as they are."""
    device = model.output_weight.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        batch_loss(model, example.to(device), smoothing=smoothing)[0].backward()
    unread = [each for each in model.parameters() if each.requires_grad and each.grad is None]
    model.zero_grad(set_to_none=True)
    return unread
