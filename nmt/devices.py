"""The choice of a device by its name. PyTorch, which takes a second, is imported late, and only to look for a GPU."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import UserError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")
PRECISIONS = ("float32", "bfloat16", "int8")  # of the products of a translation
GPU_FILES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/dxg", "/dev/kfd")
"""Of the drivers of Linux for GPUs that PyTorch may call cuda: NVIDIA's, on boards and under Windows too, and AMD's."""


def choose_device(name: str) -> "torch.device":
    """The device of this name, one of DEVICES. Raises UserError if there is none."""
    import torch

    return torch.device(device_name(name))


def device_name(name: str) -> str:
    """The name of that device; "auto" is "cuda", or "cpu" where there is none. Raises UserError as `choose_device`."""
    if name not in DEVICES:
        raise UserError(f"--device {name}: unknown; choose one of {', '.join(DEVICES)}")
    drives_gpus = sys.platform == "win32" or any(map(Path.exists, map(Path, GPU_FILES)))
    if name == "cpu" or (name == "auto" and not drives_gpus):
        return "cpu"
    import torch

    kinds = {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": torch.xpu}
    usable = ["cpu", *(kind for kind, module in kinds.items() if module.is_available())]
    if name == "auto":
        return "cuda" if "cuda" in usable else "cpu"
    if name not in usable:
        raise UserError(
            f"--device {name}: is not available to PyTorch on this machine; choose one of auto, {', '.join(usable)}"
        )
    return name
