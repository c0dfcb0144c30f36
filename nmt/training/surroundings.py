"""What the last bits of a training's numbers depend on besides its state: threads, library, processor, device."""

from collections.abc import Iterator
from typing import Any

import torch

from nmt.ops.products import onednn_is_exact


def surroundings(device: torch.device) -> dict[str, Any]:
    """The present ones, to be saved with the state."""
    return {
        "threads": torch.get_num_threads(),
        "PyTorch": str(torch.__version__),
        "device": device.type,
        "oneDNN": onednn_is_exact(),
    }


def take_over(saved: dict[str, Any], device: torch.device) -> Iterator[str]:
    """Set the saved number of threads; a warning for each of the other surroundings that has changed."""
    torch.set_num_threads(saved["threads"])
    for name, now in surroundings(device).items():
        if saved[name] != now:
            yield f"warning: {name} was {saved[name]} and is {now}: the run continues, but not bit for bit"
