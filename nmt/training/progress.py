"""How far a run has come: the numbers of the trainer that must survive an interruption, and nothing else.

All fields are plain numbers, texts and lists, so that the whole is one JSON object in the saved state.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nmt.config.schema import EarlyStopping, Interval, TrainingConfig
from nmt.errors import counted
from nmt.evaluation.measurements import perplexity
from nmt.training.optim import higher_is_better, improves
from nmt.training.update import UpdateResult

MEANS = ("loss", "perplexity", "gradient_norm", "target_tokens_per_second")


@dataclass
class Window:
    """Sums since the last line of the log."""

    updates: int = 0
    loss: float = 0.0  # nats, plain negative log-likelihood
    tokens: int = 0  # target tokens
    gradient_norm: float = 0.0
    seconds: float = 0.0
    guided: float | None = None  # nats, guided loss; None: there was none
    risk: float | None = None  # expected risk, summed over sentences; None: there was none
    sentences: int = 0  # of all processes

    def add(self, result: UpdateResult, seconds: float) -> None:
        """Count an update."""
        self.updates += 1
        self.loss += result.loss
        self.tokens += result.tokens
        self.gradient_norm += result.gradient_norm
        self.sentences += result.sentences
        if result.guided is not None:
            self.guided = (self.guided or 0.0) + result.guided
        if result.risk is not None:
            self.risk = (self.risk or 0.0) + result.risk
        self.seconds += seconds

    def means(self) -> dict[str, float]:
        """What the log says of these updates, which may be none."""
        if not self.updates:
            return dict.fromkeys(MEANS, math.nan)
        loss, norm, speed = self.loss / self.tokens, self.gradient_norm / self.updates, self.tokens / self.seconds
        means = dict(zip(MEANS, (loss, perplexity(loss), norm, speed), strict=True))
        if self.guided is not None:
            means["guided_loss"] = self.guided / self.tokens
        if self.risk is not None:
            means["expected_risk"] = self.risk / self.sentences
        return means


class Scored(NamedTuple):
    """A validation."""

    value: float  # of the metric that chooses
    update: int
    loss: float = 0.0  # nats; of equal values, such as a BLEU of 0, the one with the lower loss is the better


@dataclass
class Progress:
    """The position in the data, the counters, and what validation has found so far."""

    epoch: int = 0  # epochs completed
    position: int = 0  # batches of the current epoch that have been used
    update: int = 0
    rate: float = 0.0  # the learning rate of the last update
    seconds: float = 0.0  # of training and validation, over all sittings
    validated: int = -1  # the update of the last validation
    validations: int = 0
    best: list[Scored] = field(default_factory=list)  # best first
    last: list[int] = field(default_factory=list)  # updates of the newest checkpoints, newest first
    stopping_best: float | None = None  # early stopping: the best value, the loss with it, and validations since
    stopping_loss: float = 0.0
    stopping_waited: int = 0
    skipped: int = 0  # updates left out because their loss or gradient was no finite number
    validation_loss: float = 0.0  # of the last validation
    beyond: int = 0  # the last validations in a row whose loss was beyond that of an untrained model
    finished: str | None = None  # why training ended
    window: Window = field(default_factory=Window)

    def is_due(self, interval: Interval | None) -> bool:
        """Whether the current update ends an interval."""
        if interval is None or self.update == 0:
            return False
        if interval.unit == "updates":
            return self.update % interval.count == 0
        return self.position == 0 and self.epoch % interval.count == 0

    def record(self, metrics: dict[str, float], config: TrainingConfig) -> bool:
        """Record a validation at the current update; returns whether it is the best so far.

        Among equal values the one with the lowest loss is the best, and then the earliest.
        """
        self.validated = self.update
        self.validations += 1
        is_best = self._rank(_found(metrics, config.validation.metric), config)
        self.last.insert(0, self.update)
        del self.last[config.keep_last :]
        if (stopping := config.early_stopping) is not None:
            self._wait(_found(metrics, stopping.metric), stopping)
        return is_best

    def _rank(self, found: tuple[float, float], config: TrainingConfig) -> bool:
        """Put the current update in its place among the best; returns whether that is the first."""
        (value, loss), metric = found, config.validation.metric
        is_best = improves(metric, found, (self.best[0].value, self.best[0].loss) if self.best else (None, math.inf))
        if value == value:
            self.best.append(Scored(value, self.update, loss))
        sign = -1 if higher_is_better(metric) else 1
        self.best.sort(key=lambda entry: (sign * entry.value, entry.loss, entry.update))
        del self.best[max(config.keep_best, 1) :]
        return is_best

    def _wait(self, found: tuple[float, float], stopping: EarlyStopping) -> None:
        """Count the validations without a better value, for early stopping."""
        if improves(stopping.metric, found, (self.stopping_best, self.stopping_loss)):
            (self.stopping_best, self.stopping_loss), self.stopping_waited = found, 0
        else:
            self.stopping_waited += 1

    def is_after(self, step: int, split: str) -> bool:
        """Whether the run had already written the record of that step and split when it had come this far."""
        if step != self.update:
            return step < self.update
        written = {"train": not self.window.updates, "valid": self.validated == step, "average": bool(self.finished)}
        return written[split]

    def note_loss(self, loss: float, bound: float) -> None:
        """Record the loss of a validation; above `bound` it is worse than at the start."""
        self.validation_loss = loss
        self.beyond = self.beyond + 1 if loss > bound else 0

    def kept(self, config: TrainingConfig) -> set[int]:
        """The updates whose checkpoints are kept now."""
        return {one.update for one in self.best[: config.keep_best]} | set(self.last)

    def end(self, config: TrainingConfig) -> str | None:
        """Why training is over at this point, or None."""
        stopping = config.early_stopping
        if stopping is not None and self.stopping_waited >= max(stopping.patience, stopping.share * self.validations):
            return f"no better {stopping.metric} in {counted(self.stopping_waited, 'validation')}"
        if config.max_updates is not None and self.update >= config.max_updates:
            return counted(self.update, "update")
        if config.max_epochs is not None and self.epoch >= config.max_epochs:
            return counted(self.epoch, "epoch")
        return None

    def epochs(self, batches: int) -> float:
        """The epochs that are over, and the share of the one that is not; it has so many batches."""
        return self.epoch + self.position / batches

    def done(self, config: TrainingConfig, batches: int) -> float:
        """The share of the run that is over, from 0 to 1, by the limit that comes first; an epoch has so many batches.

        Where early stopping or a schedule ends it before that, the share is never 1.
        """
        shares = [0.0]
        if config.max_updates is not None:
            shares.append(self.update / config.max_updates)
        if config.max_epochs is not None:
            shares.append(self.epochs(batches) / config.max_epochs)
        return min(max(shares), 1.0)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Progress":
        """What a state has of `asdict`."""
        best = [Scored(*entry) for entry in saved["best"]]
        return cls(**{**saved, "window": Window(**saved["window"]), "best": best})


def _found(metrics: Mapping[str, float], metric: str) -> tuple[float, float]:
    """The metric and the loss of a validation; NaN is infinite."""
    loss = metrics["loss"]
    return metrics[metric], math.inf if math.isnan(loss) else loss
