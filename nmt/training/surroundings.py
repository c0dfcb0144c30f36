"""What the last bits of a training's numbers depend on besides its state: threads, library, processor, device."""

from collections.abc import Iterator
from typing import Any

import torch

from nmt.ops.computing import Computing
from nmt.ops.products import onednn_is_exact


def surroundings(device: torch.device, computing: Computing, processes: int) -> dict[str, Any]:
    """The present ones, to be saved with the state."""
    return {
        "processes": processes,
        "threads": torch.get_num_threads(),
        "PyTorch": str(torch.__version__),
        "device": device.type,
        "oneDNN": onednn_is_exact(),
        "fused kernels": computing.fused,
        "precision": str(computing.precision).removeprefix("torch."),
    }


def take_over(saved: dict[str, Any], present: dict[str, Any]) -> Iterator[str]:
    """Set the saved number of threads; a warning for each of the other surroundings that has changed.

    Threads are taken over for the sake of the last bits, which another number of processes changes anyway.
    """
    if saved.get("processes", 1) == present["processes"]:
        torch.set_num_threads(saved["threads"])
    if saved.keys() < present.keys():
        yield "warning: the state was saved by an older version: the run continues, but not bit for bit"
    for name, now in present.items():
        if name != "threads" and saved.get(name, now) != now:
            yield f"warning: {name} was {saved[name]} and is {now}: the run continues, but not bit for bit"
