"""The choice of a device by its name. PyTorch, which takes a second, is imported late: a parser needs names alone."""

from typing import TYPE_CHECKING

from nmt.errors import UserError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str) -> "torch.device":
    """The device for "auto", "cpu" or "cuda". Raises UserError if there is none."""
    if name not in DEVICES:
        raise UserError(f"--device {name}: unknown; choose one of {', '.join(DEVICES)}")
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device can be used on this machine; give --device cpu, or auto")
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        return torch.device("cuda")
    return torch.device("cpu")
