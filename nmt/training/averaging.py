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


def averaged_checkpoints(
    paths: Mapping[int, Path], *, processes: Processes, log: Callable[[str], None]
) -> tuple[list[int], dict[str, Tensor]]:
    """Those of the checkpoints `paths`, by update, that can be read, and the mean of their weights, of which memory
    holds one at a time; the log says why another cannot be.

    To be called in all processes.
    """
    processes.wait()  # the first one has written them all
    mean, whole = WeightedMean(), []
    for number, path in paths.items():
        try:
            model = load_model(path)
            if model.training.get("updates") != number:
                raise UserError(f"{path}: not the checkpoint that this run wrote there")
            mean.add(model.weights)
            whole.append(number)
        except UserError as error:
            log(f"warning: left out of the average: {error}")
    processes.check_same("average", f"of the checkpoints {whole}")
    return whole, mean.weights()


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
