"""One process or several, as torchrun starts them: how they meet, which is first, and what they tell one another.

They tell one another numbers, and texts as JSON, in tensors: nothing is ever unpickled. If a process ends, or does not
answer for `patience`, those that wait for it end, too. One process says what all would say.

In a training every process has the whole model and computes its share of each batch, the rows that `batches` gives it.
Losses are divided by what all shares together have of `normalize_by` before the gradients are added up (see
`update`), so N processes make the update that one would make, apart from rounding and from what is drawn in it: the
masks of dropout, the pieces of word replacement, and the words of scheduled sampling, which each process draws for
itself. The order of the data, sampled segmentations, and sampled candidates do not depend on the number of processes.
By one or two processes a resumed run ends bit for bit like an uninterrupted one; among more, gradients are summed in
another order after the first update of each start.

In a translation every process translates its share of the chunks, and waits for no other meanwhile.
"""

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from textwrap import shorten
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, distributed, nn

from nmt.errors import ToldElsewhere, UserError, collected, counted
from nmt.signals import PATIENCE

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

Value = TypeVar("Value")
MOST = 1 << 16  # processes
SOON = 3.0  # seconds until a process says whom it is waiting for
PAUSE = 0.1  # seconds between two attempts to find the store, or two looks at it
PREPARED = "prepared"  # what is in the store when the first process has prepared the data


class LostProcess(UserError):
    """Another process is gone, perhaps without being able to say why."""


class Processes:
    """The processes of a command, seen from one of them. A command by itself is one of one."""

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
        """Whether this one writes files and the log, and reports to the user."""
        return self.rank == 0

    def own_device(self, device: torch.device) -> torch.device:
        """`device`, or the GPU of this process if there are several. Raises UserError if there are too few."""
        return device if self.size == 1 or device.type != "cuda" else _own_gpu()

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
                f"process {different} of {self.size} has another {what} than process 0: all must see the same files, "
                f"with the same options ({shorten(values[different], 200)}; process 0: {shorten(values[0], 200)})"
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

    def together(self, body: Callable[[], Value]) -> Value:
        """Call `body` in every process and return its result once all of them have one.

        If it raises in any of them, the first process raises UserError with the problems of all, each once, and the
        others raise ToldElsewhere.
        """
        if self.size == 1:
            return body()
        problems: list[str] = []
        with collected(problems):
            result = body()
        if problems := list(dict.fromkeys(problem for of_rank in self.gather(problems) for problem in of_rank)):
            raise (UserError if self.is_first else ToldElsewhere)(*problems)
        return result

    def is_first_to(self, say: str) -> bool:
        """Whether this process is the first that asks about what it has to `say`; alone, it always is."""
        with suppress(RuntimeError):  # torchrun is gone
            return self._store is None or self._store.add(f"said {say}", 1) == 1
        return True

    def once(self, error: UserError) -> UserError:
        """The error to end with: `error` in the process that fails first, ToldElsewhere in the others."""
        return error if self.is_first_to("an error") else ToldElsewhere(*error.messages)

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        tensors = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(tensors, tensor)
        return tensors


ALONE = Processes()


@contextmanager
def joined(
    device: torch.device | None = None, *, program: str, patience: timedelta = timedelta(minutes=PATIENCE)
) -> Iterator[tuple[Processes, torch.device]]:
    """The processes that torchrun started this one among, and the device of this one; by itself without torchrun.

    On a CPU they tell one another numbers by gloo, on GPUs by NCCL. When another process dies, or does not answer for
    `patience`, what waits for it ends with a UserError.
    """
    device = device or torch.device("cpu")
    if _started() == 1:
        yield ALONE, device
        return
    device = _own_gpu() if device.type == "cuda" else device
    store, rank, size = _meet(program, patience)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    try:
        yield Processes(rank, size, device, store), device
    except RuntimeError as error:
        if not _lost(error):
            raise
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends us now, but this is to be told first
        minutes = f"{patience.total_seconds() / 60:g}"
        waited = f"{minutes} minute" if minutes == "1" else f"{minutes} minutes"
        why = f"has not answered for {waited}" if _timed_out(error) else "has ended"
        raise LostProcess(
            f"process {rank} of {size}: another process {why}, so this one ends too; unless that one says otherwise, "
            "what was saved is intact: continue with --resume"
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


def _started() -> int:
    """How many processes the command has; 1 without torchrun."""
    return _number("WORLD_SIZE", 1, range(1, MOST + 1))


def _number(variable: str, default: int, allowed: Sequence[int]) -> int:
    """The number in an environment variable of torchrun's, or `default`. Raises UserError for one not `allowed`."""
    text = os.environ.get(variable) or str(default)
    with suppress(ValueError):
        if (number := int(text)) in allowed:
            return number
    raise UserError(
        f"{variable} is {shorten(text, 40)}: must be a whole number from {allowed[0]} to {allowed[-1]}, as torchrun "
        "sets it; or unset it"
    )


def is_restarted() -> bool:
    """Whether torchrun starts the processes again, after one of them failed."""
    return (os.environ.get("TORCHELASTIC_RESTART_COUNT") or "0") != "0"


def _own_gpu() -> torch.device:
    """The GPU of this process, made the current one. Raises UserError if the machine has too few."""
    if "LOCAL_RANK" not in os.environ:
        raise UserError("LOCAL_RANK is not set: start the processes with torchrun, which numbers those of a machine")
    rank, gpus = _number("LOCAL_RANK", 0, range(MOST)), torch.cuda.device_count()
    here = max(_number("LOCAL_WORLD_SIZE", 1, range(1, MOST + 1)), rank + 1)
    if here > gpus:
        machine = f"{counted(here, 'process', 'processes')} on a machine with {counted(gpus, 'GPU')}"
        raise UserError(f"torchrun: {machine}; give --device cpu, or fewer")
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    return device


def _meet(program: str, patience: timedelta) -> tuple["PrefixStore", int, int]:
    """The store in which the processes find each other, this one's rank, and how many they are.

    What is in it is of this start alone: torchrun's store also has what was told before a restart. Who is waited for is
    told on standard error, as `program`, after some seconds.

    Raises UserError when there is no such store, or not all have come to it after `patience`.
    """
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    size = _started()
    if missing := [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]:
        raise UserError(
            f"WORLD_SIZE is {size}, but the other processes cannot be found, since {missing[0]} is not set; start them "
            "with torchrun, or unset WORLD_SIZE"
        )
    rank, host = _number("RANK", 0, range(size)), os.environ["MASTER_ADDR"]
    port = _number("MASTER_PORT", 0, range(1, 1 << 16))
    makes_store = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    first = "torchrun" if rank == 0 else "process 0"
    who = "the others" if makes_store else first
    waiting = f"{program}: process {rank} of {size}: waiting for {who} at {host}:{port} (WORLD_SIZE={size})"
    said = Timer(SOON, lambda: print(waiting, file=sys.stderr, flush=True))
    said.daemon = True
    said.start()
    try:
        if not makes_store:
            _await(host, port, patience)
        store, rank, size = next(rendezvous("env://", timeout=patience))
    except (ValueError, RuntimeError, OSError) as error:
        if "EADDRINUSE" in str(error):
            raise UserError(
                f"MASTER_PORT {port} is in use on {host}; choose another, as with torchrun --master-port N, or with "
                "torchrun --standalone, which finds a free one"
            ) from error
        raise UserError(
            f"WORLD_SIZE is {size}, but the other processes cannot be found at {host}:{port} "
            f"({str(error).splitlines()[0]}); start them with torchrun, or unset WORLD_SIZE"
        ) from error
    finally:
        said.cancel()
    return PrefixStore(f"nmt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store), rank, size


def _await(host: str, port: int, patience: timedelta) -> None:
    """Wait until something answers at that port; in Python, so that a signal ends the wait."""
    deadline = time.monotonic() + patience.total_seconds()
    while True:
        try:
            socket.create_connection((host, port), timeout=max(1.0, deadline - time.monotonic())).close()
            return
        except OSError as error:
            if time.monotonic() + PAUSE >= deadline:
                raise TimeoutError(f"nothing answers there after {patience}: {error.strerror or error}") from error
        time.sleep(PAUSE)
