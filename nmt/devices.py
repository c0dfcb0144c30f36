"""The choice of a device by its name. PyTorch, which takes a second, is imported late, and only to look for a GPU."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import UserError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("float32", "bfloat16", "int8")  # of the products of a translation
GPU_FILES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/dxg", "/dev/kfd")
"""Of the drivers of Linux for GPUs that PyTorch may call cuda: NVIDIA's, on boards and under Windows too, and AMD's."""


def choose_device(name: str) -> "torch.device":
    """The device for "auto", "cpu" or "cuda". Raises UserError if there is none."""
    import torch

    return torch.device(device_name(name))


def device_name(name: str) -> str:
    """The name of that device, "cpu" or "cuda". Raises UserError if there is none."""
    if name not in DEVICES:
        raise UserError(f"--device {name}: unknown; choose one of {', '.join(DEVICES)}")
    drives_gpus = sys.platform == "win32" or any(map(Path.exists, map(Path, GPU_FILES)))
    if name == "cpu" or (name == "auto" and not drives_gpus):
        return "cpu"
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device can be used on this machine; give --device cpu, or auto")
    return "cuda" if torch.cuda.is_available() else "cpu"
