"""One training by several processes, as torchrun starts them: how they meet, and what they tell one another.

Every process has the whole model and computes its share of each batch, the rows that `share_rows` gives it. Losses are
divided by what all shares together have of `normalise_by` before the gradients are added up (see `update`), so N
processes make the update that one would make, apart from rounding and from what is drawn in it: the masks of dropout,
the pieces of word replacement, and the words of scheduled sampling, which each process draws for itself. The order of
the data, sampled segmentations, and sampled candidates do not depend on the number of processes. Only the first process
writes.

They tell one another numbers, and texts as JSON, in tensors: nothing is ever unpickled. If a process does not answer
for `patience`, the others end.

By one or two processes a resumed run ends bit for bit like an uninterrupted one; among more, gradients are summed in
another order after the first update of each start.
"""

import gc
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from textwrap import shorten
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, distributed, nn

from nmt.errors import UserError
from nmt.jobs import torchrun

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

Value = TypeVar("Value")
PATIENCE = timedelta(minutes=30)  # with a process that does not answer, which may be scoring a long line
PREPARED = "prepared"  # what is in the store when the first process has prepared the data
PAUSE = 0.2  # seconds between two looks at the store


class LostProcess(UserError):
    """Another process is gone, perhaps without being able to say why."""


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
        """Whether this one writes files and the log."""
        return self.rank == 0

    def wait(self) -> None:
        """Return when all processes have come here."""
        if self.size > 1:
            distributed.barrier()

    def tell_prepared(self) -> None:
        """Let the other processes go on: the first one holds the run folder and has prepared the data."""
        if self._store is not None:
            self._store.set(PREPARED, "")

    def wait_until_prepared(self) -> None:
        """Return when the first process has called `tell_prepared`, however long that takes; a signal ends the wait."""
        while self._store is not None and not self._store.check([PREPARED]):
            time.sleep(PAUSE)

    def sums(self, *numbers: float) -> list[float]:
        """Each of the numbers summed over the processes."""
        if self.size == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(totals)
        return totals.tolist()

    def largest(self, number: int) -> int:
        """The largest of the processes' numbers."""
        if self.size == 1:
            return number
        largest = torch.tensor(number, device=self.device)
        distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
        return int(largest)

    def check_same(self, what: str, value: str) -> None:
        """Raise UserError unless all processes have the same value."""
        values = self.gather(value)
        if len(set(values)) > 1:
            different = next(rank for rank, of_rank in enumerate(values) if of_rank != values[0])
            raise UserError(
                f"process {different} of {self.size} has another {what} than process 0: all must see the same "
                f"configuration, corpora and run folder ({shorten(values[different], 200)}; process 0: "
                f"{shorten(values[0], 200)})"
            )

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, in the order of their ranks: what JSON can hold, such as numbers and texts."""
        if self.size == 1:
            return [value]
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        lengths = self._gathered(torch.tensor([len(content)], device=self.device))
        longest = max(int(length) for length in lengths)
        padded = self._gathered(nn.functional.pad(content, (0, longest - len(content))))
        texts = [text[: int(length)].cpu().numpy().tobytes() for text, length in zip(padded, lengths, strict=True)]
        return [json.loads(text) for text in texts]

    def gather_states(self, states: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        """The states of random generators, which are bytes, of all processes, in the order of their ranks."""
        every = self.gather({name: state.tolist() for name, state in states.items()})
        return [{name: torch.tensor(state, dtype=torch.uint8) for name, state in states.items()} for states in every]

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
        waited = f"{minutes:g} minute{'' if minutes == 1 else 's'}"
        why = "has ended" if not _timed_out(error) else f"has not answered for {waited} (--rank-timeout)"
        raise LostProcess(
            f"process {rank} of {size}: another process of this training {why}, so this one ends too; unless "
            "that one says otherwise, the run continues with --resume from what it had saved"
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
