"""What torchrun tells the processes that it starts, in environment variables, and where they meet."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch

from nmt.errors import UserError

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore


def number(variable: str, default: int) -> int:
    """What torchrun has set a variable to, or `default`. Raises UserError when it is no number."""
    text = os.environ.get(variable, str(default))
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{variable} is {text}: must be a whole number, as torchrun sets it; or unset it") from None


def processes() -> int:
    """How many processes the job has; 1 without torchrun."""
    return number("WORLD_SIZE", 1)


def job() -> str | None:
    """What names the job that this process belongs to, however often it is restarted; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return None if name is None else f"{name} {os.getppid()}"


def is_silent() -> bool:
    """Whether another process on this machine says what is wrong with what both were given."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    return not alone and os.environ.get("LOCAL_RANK", "0") != "0"


def own_gpu() -> torch.device:
    """This process's own among the machine's GPUs, made the current one. Raises UserError when there are too few."""
    if "LOCAL_RANK" not in os.environ:
        raise UserError("LOCAL_RANK is not set: start the processes with torchrun, which numbers those of a machine")
    own, gpus = number("LOCAL_RANK", 0), torch.cuda.device_count()
    here = max(number("LOCAL_WORLD_SIZE", 1), own + 1)
    if here > gpus:
        raise UserError(f"torchrun: {here} processes on a machine with {gpus} GPUs; give --device cpu, or fewer")
    device = torch.device("cuda", own)
    torch.cuda.set_device(device)
    return device


def meet(name: str, patience: timedelta) -> tuple["PrefixStore", int, int]:
    """The store in which the processes find each other, this one's rank, and how many they are.

    What is in it under `name` is of this start alone: torchrun's store also has what was told before a restart.

    Raises UserError when there is no such store.
    """
    from torch.distributed.distributed_c10d import PrefixStore  # only here: a process by itself has no use for them
    from torch.distributed.rendezvous import rendezvous

    try:
        store, rank, size = next(rendezvous("env://", timeout=patience))
    except (ValueError, RuntimeError) as error:
        raise UserError(
            f"WORLD_SIZE is {processes()}, but the other processes cannot be found ({error}); start them with "
            "torchrun, or unset WORLD_SIZE"
        ) from error
    return PrefixStore(f"{name} {number('TORCHELASTIC_RESTART_COUNT', 0)}", store), rank, size
