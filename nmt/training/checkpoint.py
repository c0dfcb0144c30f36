"""The state that a run resumes from: one file with weights, optimizer, random states and progress.

It has all weights of the model, their moving average where there is one, the optimizer's state by the position of each
parameter, and one JSON object with everything that is not a tensor. No pickle is written or read.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.errors import DamagedFile
from nmt.tensor_file import read_tensors, with_prefix, write_tensors

KIND = "training state"


class State(NamedTuple):
    """What `read_state` returns: tensors by name, the JSON object, and the file that they are from."""

    tensors: dict[str, Tensor]
    numbers: dict[str, Any]
    path: Path


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
    average: Mapping[str, Tensor] | None = None,
    former: Path | None = None,
) -> None:
    """Save all that training needs to continue bit for bit, so that a crash leaves the old file or the new one.

    `random_states` has what `random_state` returns in each process. `average`: the moving average of the weights, by
    their names. `former`: what the old file is then called.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors.update({f"average.{name}": tensor for name, tensor in (average or {}).items()})
    for index, values in optimizer.state_dict()["state"].items():
        # A value that is None (SGD's momentum, when there is none) is not stored, and absent again after `restore`.
        present = {name: value for name, value in values.items() if value is not None}
        tensors.update({f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in present.items()})
    for rank, states in enumerate(random_states):
        tensors.update({f"random.{rank}.{name}": state for name, state in states.items()})
    write_tensors(path, tensors, kind=KIND, texts={"numbers": json.dumps(numbers)}, former=former)


def read_state(path: Path) -> State:
    """Read a saved state. Raises DamagedFile when it is not what was written, UserError when it is something else."""
    tensors, texts = read_tensors(path, kind=KIND)
    try:
        return State(tensors, json.loads(texts["numbers"]), path)
    except (KeyError, ValueError) as error:
        raise DamagedFile(f"{path}: damaged, training cannot resume from it ({error})") from error


def restore(
    state: State,
    *,
    model: nn.Module,
    optimizer: Optimizer,
    average: Mapping[str, Tensor] | None = None,
    rank: int = 0,
) -> None:
    """Put weights, their average, optimizer state and the random states of process `rank` back where `write_state`
    found them.

    A process that did not exist when the state was saved has no random states. Raises DamagedFile when the state is
    that of another model or optimizer.
    """
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in with_prefix(state.tensors, "optimizer.").items():
        index, _, moment = name.partition(".")
        moments.setdefault(int(index), {})[moment] = tensor
    averages = with_prefix(state.tensors, "average.")
    try:
        model.load_state_dict(with_prefix(state.tensors, "model."))
        for name, weight in (average or {}).items():
            weight.copy_(averages[name])
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    except (KeyError, ValueError, RuntimeError) as error:
        raise DamagedFile(f"{state.path}: damaged, training cannot resume from it ({str(error)[:300]})") from error
    random_states = with_prefix(state.tensors, f"random.{rank}.")
    if "cpu" in random_states:
        torch.set_rng_state(random_states["cpu"])
    on_devices = with_prefix(random_states, "cuda.")
    if torch.cuda.is_available() and len(on_devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([on_devices[str(index)] for index in range(len(on_devices))])
