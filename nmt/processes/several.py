"""Several processes, as torchrun starts them; see `nmt.processes`."""

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Timer
from typing import TYPE_CHECKING

import torch
from torch import Tensor, distributed, nn

from nmt.errors import ToldElsewhere, UserError, counted, environment_number
from nmt.processes import LostProcess, Processes, Value, processes_started

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

SOON = 3.0  # seconds until a process says whom it is waiting for
PAUSE = 0.1  # seconds between two attempts to find the store, or two looks at it
PREPARED = "prepared"  # what is in the store when the first process has prepared the data


class Several(Processes):
    """The processes of a command, seen from one of them."""

    def __init__(
        self, rank: int, size: int, device: torch.device | None = None, store: "PrefixStore | None" = None
    ) -> None:
        self.rank, self.size, self.device = rank, size, device
        self._store = store

    def own_device(self, device: str) -> str:
        return str(_own_gpu()) if device.startswith("cuda") else device

    def wait(self) -> None:
        distributed.barrier()

    def tell_prepared(self) -> None:
        if self._store is not None:
            self._store.set(PREPARED, "")

    def wait_until_prepared(self) -> None:
        while self._store is not None and not self._store.check([PREPARED]):
            time.sleep(PAUSE)

    def sums(self, *numbers: float) -> list[float]:
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(totals)
        return totals.tolist()

    def largest(self, number: int) -> int:
        largest = torch.tensor(number, device=self.device)
        distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
        return int(largest)

    def gather(self, value: Value) -> list[Value]:
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        lengths = self._gathered(torch.tensor([len(content)], device=self.device))
        longest = max(int(length) for length in lengths)
        padded = self._gathered(nn.functional.pad(content, (0, longest - len(content))))
        texts = [text[: int(length)].cpu().numpy().tobytes() for text, length in zip(padded, lengths, strict=True)]
        return [json.loads(text) for text in texts]

    def once(self, error: UserError) -> UserError:
        with suppress(RuntimeError):  # torchrun is gone
            if self._store is not None and self._store.add("errors", 1) > 1:
                return ToldElsewhere(*error.messages)
        return error

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        tensors = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(tensors, tensor)
        return tensors


@contextmanager
def meeting(name: str, program: str, patience: timedelta) -> Iterator[tuple[Processes, str]]:
    """What `joined` gives each of several processes, for a device of this name."""
    if not name.startswith(("cpu", "cuda")):
        raise UserError(f"torchrun: --device {name} is for a process by itself; several compute with cpu or cuda")
    device = _own_gpu() if name.startswith("cuda") else torch.device(name)
    store, rank, size = _meet(program, patience)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    try:
        yield Several(rank, size, device, store), str(device)
    except RuntimeError as error:
        gone = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
        is_gone = isinstance(error, distributed.DistError) or any(text in str(error) for text in gone)
        if not (is_gone or _timed_out(error)):
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


def _timed_out(error: RuntimeError) -> bool:
    return "Timed out" in str(error) or "timeout" in str(error)


def _own_gpu() -> torch.device:
    """The GPU of this process, made the current one. Raises UserError if the machine has too few."""
    if "LOCAL_RANK" not in os.environ:
        raise UserError("LOCAL_RANK is not set: start the processes with torchrun, which numbers those of a machine")
    rank, gpus = environment_number("LOCAL_RANK"), torch.cuda.device_count()
    here = max(environment_number("LOCAL_WORLD_SIZE", "1"), rank + 1)
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

    size = processes_started()
    if missing := [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]:
        raise UserError(
            f"WORLD_SIZE is {size}, but the other processes cannot be found, since {missing[0]} is not set; start them "
            "with torchrun, or unset WORLD_SIZE"
        )
    rank, host, port = environment_number("RANK"), os.environ["MASTER_ADDR"], environment_number("MASTER_PORT")
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
