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
from nmt.training.saved_numbers import checked_numbers

KIND = "training state"
_STEP = "step"
_MOMENTS: dict[type[Optimizer], set[str]] = {  # what an optimizer keeps for each parameter after its first step
    torch.optim.SGD: {"momentum_buffer"},
    torch.optim.Adam: {_STEP, "exp_avg", "exp_avg_sq"},
    torch.optim.AdamW: {_STEP, "exp_avg", "exp_avg_sq"},
    torch.optim.Adadelta: {_STEP, "square_avg", "acc_delta"},
}


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
        return State(tensors, checked_numbers(json.loads(texts["numbers"])), path)
    except (KeyError, ValueError, RecursionError) as error:
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

    A process that did not exist when the state was saved has no random states. Versions for one process saved them
    without a rank. Raises DamagedFile when the state belongs to another model or optimizer.
    """
    try:
        _restore(state, model, optimizer, average or {}, rank)
    except (KeyError, ValueError, RuntimeError) as error:
        raise DamagedFile(f"{state.path}: damaged, training cannot resume from it ({str(error)[:300]})") from error


def _restore(state: State, model: nn.Module, optimizer: Optimizer, average: Mapping[str, Tensor], rank: int) -> None:
    weights = with_prefix(state.tensors, "model.")
    for name, weight in model.state_dict().items():
        _check_like(f"model.{name}", weights[name], weight)
    model.load_state_dict(weights)
    averages = with_prefix(state.tensors, "average.")
    for name, weight in average.items():
        average_then = averages[name]
        if average_then.dtype == weights[name].dtype:  # earlier versions had no average in float64
            average_then = average_then.to(weight.dtype)
        _check_like(f"average.{name}", average_then, weight)
        weight.copy_(average_then)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    kept = next(_MOMENTS[kind] for kind in type(optimizer).__mro__ if kind in _MOMENTS)
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in with_prefix(state.tensors, "optimizer.").items():
        index, _, moment = name.partition(".")
        if not (index.isdecimal() and int(index) < len(parameters) and moment in kept):
            raise ValueError(f"optimizer.{name[:100]}: of another optimizer")
        if moment != _STEP:
            _check_like(f"optimizer.{name}", tensor, parameters[int(index)])
        elif tensor.shape or tensor.dtype != torch.float32:
            raise ValueError(f"optimizer.{name}: not one number")
        moments.setdefault(int(index), {})[moment] = tensor
    if any(len(of_parameter) < len(kept) for of_parameter in moments.values()):
        raise ValueError("the optimizer's state is not complete")
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    saved = with_prefix(state.tensors, f"random.{rank}.")
    if rank == 0 and not saved:
        saved = with_prefix(state.tensors, "random.")
    if "cpu" in saved:
        _check_like("random.cpu", saved["cpu"], torch.get_rng_state())
        torch.set_rng_state(saved["cpu"])
    on_devices = with_prefix(saved, "cuda.")
    if torch.cuda.is_available() and len(on_devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([on_devices[str(index)] for index in range(len(on_devices))])


def _check_like(name: str, tensor: Tensor, other: Tensor) -> None:
    """Raise ValueError unless both have the same shape and type."""
    if tensor.shape != other.shape or tensor.dtype != other.dtype:
        there, expected = (f"{one.dtype} {tuple(one.shape)}" for one in (tensor, other))
        raise ValueError(f"{name[:100]}: {there} instead of {expected}")
