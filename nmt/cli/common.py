"""What the commands share: how errors end a program, and the choice of a device."""

import os
import sys
from collections.abc import Callable

import torch

from nmt.errors import UserError
from nmt.ops.products import prefer_onednn_products

DEVICES = ("auto", "cpu", "cuda")


def run(program: str, body: Callable[[], int | None]) -> int:
    """Call `body` and return the exit code: its own, or 2 for a mistake of the user's, 130 for Ctrl-C.

    A UserError is printed without a traceback; any other exception is a failure of ours and keeps its traceback (code
    1).
    """
    try:
        return body() or 0
    except UserError as error:
        print(describe(program, error), file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read our output has gone; point stdout elsewhere so that the interpreter's own flush stays silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130


def describe(program: str, error: UserError) -> str:
    """The text that reports `error`: one line, or a headline and a line a problem."""
    if len(error.messages) == 1:
        return f"{program}: error: {error.messages[0]}"
    lines = "\n".join(f"  - {message}" for message in error.messages)
    return f"{program}: {len(error.messages)} problems:\n{lines}"


def choose_device(name: str) -> torch.device:
    """The device for "auto", "cpu" or "cuda", made ready for float32 products. Raises UserError where there is none."""
    if name not in DEVICES:
        raise UserError(f"--device {name}: unknown; choose one of {', '.join(DEVICES)}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device can be used on this machine; give --device cpu, or auto")
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        return torch.device("cuda")
    prefer_onednn_products()
    return torch.device("cpu")
