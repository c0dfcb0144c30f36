"""The average of several models, weight by weight; of checkpoints of one run even if some files are damaged or gone."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.models.model_file import load_model
from nmt.processes import Processes


class WeightedMean:
    """w = Σ_k a_k w_k / Σ_k a_k over the weights w_k of models that are added one by one, summed in float64."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._shares = 0.0

    def add(self, weights: Mapping[str, Tensor], share: float = 1.0) -> None:
        """Add the weights of a model with its share a_k."""
        for name, weight in weights.items():
            self._sums[name] = self._sums.get(name, torch.zeros(())) + share * weight.double()
        self._shares += share

    def agreement(self, weights: Mapping[str, Tensor]) -> float:
        """The cosine of the angle between the mean and other weights, all matrices as one vector; about 0 by chance.

        Vectors, such as biases, may start at the same numbers in every model.
        """
        products = torch.zeros(3, dtype=torch.float64)
        for name, total in self._sums.items():
            if total.dim() > 1:
                mean, other = total.flatten(), weights[name].double().flatten()
                products += torch.stack([mean @ other, mean @ mean, other @ other])
        together, mine, others = products.tolist()
        return together / math.sqrt(mine * others) if mine * others > 0 else 1.0

    def weights(self) -> dict[str, Tensor]:
        """The mean, in float32."""
        return {name: (total / self._shares).float() for name, total in self._sums.items()}


def average_weights(paths: Iterable[Path]) -> dict[str, Tensor]:
    """The mean of the weights in model files, of which memory holds one at a time."""
    mean = WeightedMean()
    for path in paths:
        mean.add(load_model(path).weights)
    return mean.weights()


def whole_checkpoints(
    paths: Mapping[int, Path], *, processes: Processes, log: Callable[[str], None]
) -> dict[int, Path]:
    """Those of the checkpoints `paths`, by update, that every process can read; the log says why another cannot be.

    To be called in all processes.
    """
    processes.wait()  # the first one has written them all
    whole = []
    for number, path in paths.items():
        try:
            if load_model(path).training.get("updates") != number:
                raise UserError(f"{path}: not the checkpoint that this run wrote there")
            whole.append(number)
        except UserError as error:
            log(f"warning: left out of the average: {error}")
    usable = processes.gather(whole)
    return {number: path for number, path in paths.items() if all(number in of_process for of_process in usable)}


@contextmanager
def with_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Run the block with these weights in `model`; then it has its last weights again, bit for bit."""
    with put_back(model.state_dict().values()):
        model.load_state_dict(weights)
        yield


@contextmanager
def put_back(weights: Iterable[Tensor]) -> Iterator[None]:
    """Run the block, which may change the values of these weights; then they have their last ones again, bit for
    bit."""
    last = [(weight, weight.clone()) for weight in weights]
    try:
        yield
    finally:
        for weight, values in last:
            weight.copy_(values)
