"""The state that a run resumes from: one file with weights, optimiser, random states and progress.

Weights are all of the model's; the optimiser's state is stored by the position of its parameter; everything that is no
tensor is one JSON object. No pickle is written or read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.errors import UserError
from nmt.tensor_file import below, read_tensors, write_tensors

KIND = "training state"


class State(NamedTuple):
    """What `read_state` returns: tensors by name, and the JSON object."""

    tensors: dict[str, Tensor]
    numbers: dict[str, Any]


def random_state() -> dict[str, Tensor]:
    """The states of this process's random generators, by their device."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def seed_process(seed: int, rank: int, update: int) -> None:
    """Seed the generators of a process that has no saved state, so that no two processes draw the same masks."""
    torch.manual_seed(int(np.random.SeedSequence([seed, rank, update]).generate_state(1)[0]))


def write_state(
    path: Path,
    *,
    model: nn.Module,
    optimizer: Optimizer,
    numbers: dict[str, Any],
    random_states: Sequence[dict[str, Tensor]],
) -> None:
    """Save all that training needs to continue bit for bit, so that a crash leaves the old file or the new one.

    `random_states` has what `random_state` returns in each process.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, values in optimizer.state_dict()["state"].items():
        # A value that is None (SGD's momentum, when there is none) is not stored, and absent again after `restore`.
        present = {name: value for name, value in values.items() if value is not None}
        tensors.update({f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in present.items()})
    for rank, states in enumerate(random_states):
        tensors.update({f"random.{rank}.{name}": state for name, state in states.items()})
    write_tensors(path, tensors, kind=KIND, texts={"numbers": json.dumps(numbers)})


def read_state(path: Path) -> State:
    """Read a saved state. Raises UserError when the file is damaged or something else."""
    tensors, texts = read_tensors(path, kind=KIND)
    try:
        return State(tensors, json.loads(texts["numbers"]))
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: damaged, training cannot resume from it ({error})") from error


def restore(state: State, *, model: nn.Module, optimizer: Optimizer, rank: int = 0) -> None:
    """Put weights, optimiser state and the random states of process `rank` back where `write_state` found them.

    A process that was not there when the state was saved has no random states. Versions of before there were several
    processes have them without a rank.
    """
    model.load_state_dict(below(state.tensors, "model."))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in below(state.tensors, "optimizer.").items():
        index, _, moment = name.partition(".")
        moments.setdefault(int(index), {})[moment] = tensor
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    saved = below(state.tensors, f"random.{rank}.")
    if rank == 0 and not saved:
        saved = below(state.tensors, "random.")
    if "cpu" in saved:
        torch.set_rng_state(saved["cpu"])
    on_devices = below(saved, "cuda.")
    if torch.cuda.is_available() and len(on_devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([on_devices[str(index)] for index in range(len(on_devices))])
