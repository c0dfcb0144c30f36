"""Optimizers and learning-rate schedules: literal dictionaries from the names of the configuration to what they build.

A schedule is a factor on the configured learning rate; its state is a few numbers, saved with the checkpoint.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn
from torch.optim import Optimizer

from nmt.config.schema import (
    AdadeltaConfig,
    AdamConfig,
    HalvingSchedule,
    PlateauSchedule,
    SGDConfig,
    TrainingConfig,
    WarmupSchedule,
)
from nmt.errors import counted
from nmt.evaluation.metrics import METRICS

AnyOptimizer = TypeVar("AnyOptimizer", bound=Optimizer)


def _uncompiled(kind: type[AnyOptimizer]) -> type[AnyOptimizer]:
    """The optimizer with methods that do not import PyTorch's compiler, which takes as long as importing PyTorch.

    PyTorch wraps these methods to keep them out of compiled programs, and its wrappers import the compiler when they
    are called. Nothing is compiled here, and only one thing is left to do without them: `step` computes no gradients.
    """
    wrapped = ("step", "add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = torch.no_grad()(methods["step"])
    return type(kind.__name__, (kind,), {**methods, "step": step, "__module__": __name__})


SGD = _uncompiled(torch.optim.SGD)
Adam = _uncompiled(torch.optim.Adam)
AdamW = _uncompiled(torch.optim.AdamW)
Adadelta = _uncompiled(torch.optim.Adadelta)


def _sgd(parameters: Iterable[nn.Parameter], config: SGDConfig) -> Optimizer:
    return SGD(parameters, config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay, fused=True)


def _adam(parameters: Iterable[nn.Parameter], config: AdamConfig) -> Optimizer:
    betas = (config.beta1, config.beta2)
    kind = AdamW if config.name == "adamw" else Adam
    return kind(
        parameters, config.learning_rate, betas=betas, eps=config.epsilon, weight_decay=config.weight_decay, fused=True
    )


def _adadelta(parameters: Iterable[nn.Parameter], config: AdadeltaConfig) -> Optimizer:
    return Adadelta(
        parameters, config.learning_rate, rho=config.rho, eps=config.epsilon, weight_decay=config.weight_decay
    )


OPTIMIZERS: dict[str, Callable[[Iterable[nn.Parameter], Any], Optimizer]] = {
    "sgd": _sgd,
    "adam": _adam,
    "adamw": _adam,
    "adadelta": _adadelta,
}


def build_optimizer(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> Optimizer:
    """The configured optimizer, for those of `parameters` that are not frozen."""
    trained: list[Any] = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimizer.decayed == "matrices":
        vectors = [parameter for parameter in trained if parameter.dim() < 2]
        matrices = [parameter for parameter in trained if parameter.dim() > 1]
        trained = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return OPTIMIZERS[config.optimizer.name](trained, config.optimizer)


def steering_metrics() -> list[str]:
    """The metrics that may steer a run: those of translations, and the losses, where lower is better."""
    return [*METRICS, "loss", "perplexity"]


def measured_metrics(config: TrainingConfig) -> list[str]:
    """The metrics of translations that a validation computes: BLEU, and those that steer this run."""
    steering = {"bleu", config.validation.metric, getattr(config.schedule, "metric", "bleu")}
    if config.early_stopping is not None:
        steering.add(config.early_stopping.metric)
    return [name for name in METRICS if name in steering]


def higher_is_better(metric: str) -> bool:
    """Whether a higher value of a steering metric is the better one."""
    return metric in METRICS and METRICS[metric].better == "higher"


def improves(metric: str, new: tuple[float, float], old: tuple[float | None, float]) -> bool:
    """Whether a value, and the loss with it, improve on others: of equal values, such as a BLEU of 0, by a lower loss.

    NaN improves on nothing, and everything on None; a loss that is no number is infinite.
    """
    (value, loss), (former_value, former_loss) = new, old
    if value == former_value:
        return loss == loss and not former_loss <= loss
    if former_value is None or value != value:
        return value == value
    return value > former_value if higher_is_better(metric) else value < former_value


class Schedule:
    """The factor on the learning rate at an update."""

    state_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Any, learning_rate: float) -> None:
        self.config, self.learning_rate = config, learning_rate

    def factor(self, update: int, epoch: int, done: float) -> float:
        """The factor for the `update`-th update, in the `epoch`-th epoch, when the share `done` of the run is over."""
        raise NotImplementedError

    def validated(self, metrics: Mapping[str, float]) -> str | None:
        """Take a validation into account; returns a line for the log if the rate changes."""
        return None

    def end(self) -> str | None:
        """Why the schedule ends training at this point, or None."""
        return None

    def state(self) -> dict[str, Any]:
        """The numbers that `restore` takes back."""
        return {name: getattr(self, name) for name in self.state_names}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        for name in self.state_names:
            setattr(self, name, state[name])


class Constant(Schedule):
    """factor = 1."""

    def factor(self, update: int, epoch: int, done: float) -> float:
        return 1.0


class Linear(Schedule):
    """factor = 1 - d when the share d of the run is done: 1 for the first update, and almost 0 for the last."""

    def factor(self, update: int, epoch: int, done: float) -> float:
        return 1.0 - done


class WarmupInverseSquareRoot(Schedule):
    """factor = min(u / w, sqrt(w / u)) at update u, with w warm-up updates (Vaswani et al. 2017, peak 1)."""

    config: WarmupSchedule

    def factor(self, update: int, epoch: int, done: float) -> float:
        warmup = self.config.warmup_updates
        return float(min(update / warmup, (warmup / update) ** 0.5))


_ROUNDING = 1e-9  # rates that differ by no more than this share are one: 0.03 × 0.7 is not quite 0.021


class Plateau(Schedule):
    """The factor is multiplied by `factor` once `patience` validations in a row, and one more, brought no new best.

    Of equal values, that with the lower loss is the better.
    """

    config: PlateauSchedule
    state_names = ("current", "best", "loss", "waited")
    current = 1.0
    best: float | None = None
    loss = 0.0  # with the best value
    waited = 0

    def end(self) -> str | None:
        lowest = self.config.minimum_learning_rate
        if self.config.stop_below_minimum and self.learning_rate * self.current < lowest * (1 - _ROUNDING):
            return f"the learning rate would be below {lowest:g}"
        return None

    def factor(self, update: int, epoch: int, done: float) -> float:
        return self.current

    def validated(self, metrics: Mapping[str, float]) -> str | None:
        new = metrics[self.config.metric], metrics["loss"]
        if improves(self.config.metric, new, (self.best, self.loss)):
            (self.best, self.loss), self.waited = new, 0
            return None
        self.waited += 1
        lowest = min(self.config.minimum_learning_rate / self.learning_rate, 1.0)
        if self.config.stop_below_minimum:
            lowest = 0.0  # and training ends
        if self.waited <= self.config.patience or self.current <= lowest * (1 + _ROUNDING):
            return None
        self.current, self.waited = max(self.current * self.config.factor, lowest), 0
        if self.end() is not None:
            return None
        return (
            f"no better {self.config.metric} in {counted(self.config.patience + 1, 'validation')}: "
            f"learning rate {self.learning_rate * self.current:.3g} from now on"
        )


class Halving(Schedule):
    """factor = f ** ⌈max(0, n - after) / every⌉ in the n-th epoch, or at the n-th update: whatever both are counted in.

    So the first cut is right after `after`, as in Luong's "after 5 epochs, halve the learning rate every epoch". With
    start_decay_steps: a and decay_steps: e, OpenNMT-py cuts first at update a: after is a - 1, every is e. tensorflow's
    nmt cuts first at the end of an interval: for num_train_steps N, luong5 has a = N / 2 and e = N / 10, luong10 N / 2
    and N / 20, luong234 2 N / 3 and N / 12; after is a + e.
    """

    config: HalvingSchedule

    def factor(self, update: int, epoch: int, done: float) -> float:
        after, every = self.config.after, self.config.every
        beyond = (epoch if after.unit == "epochs" else update) - after.count
        return float(self.config.factor ** -(-max(0, beyond) // every.count))


SCHEDULES: dict[str, Callable[[Any, float], Schedule]] = {
    "constant": Constant,
    "linear": Linear,
    "warmup_inverse_sqrt": WarmupInverseSquareRoot,
    "plateau": Plateau,
    "halving": Halving,
}


def build_schedule(config: TrainingConfig) -> Schedule:
    """The configured schedule, at its start."""
    return SCHEDULES[config.schedule.name](config.schedule, config.optimizer.learning_rate)
