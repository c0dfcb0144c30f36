"""What torchrun tells its processes in environment variables, and where they meet."""

import os
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import torch

from nmt.errors import UserError, counted

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

MOST = 1 << 16  # processes
SOON = 3.0  # seconds until a process says whom it is waiting for
PAUSE = 0.1  # seconds between two attempts to find the store


def number(variable: str, default: int) -> int:
    """The number in an environment variable of torchrun's, or `default`. Raises UserError if it is not a number."""
    text = os.environ.get(variable, str(default))
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{variable} is {text}: must be a whole number, as torchrun sets it; or unset it") from None


def processes() -> int:
    """How many processes the job has; 1 without torchrun. Raises UserError if that is not a possible number."""
    size = number("WORLD_SIZE", 1)
    if not 0 < size <= MOST:
        raise UserError(f"WORLD_SIZE is {size}: must be from 1 to {MOST:,}, as torchrun sets it; or unset it")
    return size


def job() -> str | None:
    """An identifier of the job, the same however often it is restarted; None without torchrun.

    Its name may be that of other jobs, and in a container each torchrun is process 1; but not since the same moment.
    """
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return None if name is None else f"{name} {os.getppid()}{_since(os.getppid())}"


def _since(process: int) -> str:
    """When a process began, in ticks since which start of the machine; nothing where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return f" {fields[19]} {Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}"
    except (OSError, IndexError):
        return ""


def own_gpu() -> torch.device:
    """The GPU of this process, made the current one. Raises UserError if the machine has too few."""
    if "LOCAL_RANK" not in os.environ:
        raise UserError("LOCAL_RANK is not set: start the processes with torchrun, which numbers those of a machine")
    rank, gpus = number("LOCAL_RANK", 0), torch.cuda.device_count()
    here = max(number("LOCAL_WORLD_SIZE", 1), rank + 1)
    if here > gpus:
        machine = f"{counted(here, 'process', 'processes')} on a machine with {counted(gpus, 'GPU')}"
        raise UserError(f"torchrun: {machine}; give --device cpu, or fewer")
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    return device


def meet(name: str, *, program: str, patience: timedelta) -> tuple["PrefixStore", int, int]:
    """The store in which the processes find each other, this one's rank, and how many they are.

    What is in it under `name` is of this start alone: torchrun's store also has what was told before a restart. Who is
    waited for is told on standard error, as `program`, after some seconds.

    Raises UserError when there is no such store, or not all have come to it after `patience`.
    """
    from torch.distributed.distributed_c10d import PrefixStore  # only here: a single process does not need them
    from torch.distributed.rendezvous import rendezvous

    rank, size, host, port = _place()
    makes_store = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    who = "the others" if makes_store else "torchrun" if rank == 0 else "process 0"
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
    return PrefixStore(f"{name} {number('TORCHELASTIC_RESTART_COUNT', 0)}", store), rank, size


def _place() -> tuple[int, int, str, int]:
    """This process's rank, how many there are, and host and port where all meet. Raises UserError if unknown."""
    size = processes()
    if missing := [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]:
        raise UserError(
            f"WORLD_SIZE is {size}, but the other processes cannot be found, since {missing[0]} is not set; start them "
            "with torchrun, or unset WORLD_SIZE"
        )
    rank, port = number("RANK", 0), number("MASTER_PORT", 0)
    if not 0 <= rank < size:
        raise UserError(
            f"RANK is {rank} and WORLD_SIZE is {size}: ranks go from 0 to {size - 1}, as torchrun sets them"
        )
    if not 0 < port < 1 << 16:
        raise UserError(f"MASTER_PORT is {port}: must be from 1 to 65535, as torchrun sets it")
    return rank, size, os.environ["MASTER_ADDR"], port


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
