"""Checks between the keys of the section `training`.

How long a run lasts is no contradiction to anything: a trial run with --set training.max_updates=20 must start with any
configuration, though its patience, warm-up or halving are then never reached.
"""

from collections.abc import Iterator

from nmt.config.problems import Problem
from nmt.config.schema import Config, PlateauSchedule, TrainingConfig
from nmt.config.yaml_text import KeyPath

_VALIDATE_EVERY: KeyPath = ("training", "validate_every")
_SCHEDULE: KeyPath = ("training", "schedule")


def training_contradictions(config: Config) -> Iterator[Problem]:
    """Training without an end, and keys that have no effect beside the others."""
    yield from _end(config.training)
    yield from _intervals(config.training)
    yield from _schedule(config.training)
    yield from _checkpoints(config.training)


def _end(training: TrainingConfig) -> Iterator[Problem]:
    if training.max_epochs is None and training.max_updates is None:
        message = "neither this nor max_updates is set, so training has no end; set one or both"
        yield Problem(("training", "max_epochs"), message, (("training", "max_updates"),))


def _intervals(training: TrainingConfig) -> Iterator[Problem]:
    save, validate = training.save_every, training.validate_every
    if save and save.unit == validate.unit and save.count % validate.count == 0:
        message = (
            f"{save} has no effect, because every validation saves the state too (validate_every: {validate}); "
            "use a shorter interval, or remove it"
        )
        yield Problem(("training", "save_every"), message, (_VALIDATE_EVERY,))


def _schedule(training: TrainingConfig) -> Iterator[Problem]:
    schedule, rate = training.schedule, training.optimizer.learning_rate
    if isinstance(schedule, PlateauSchedule) and schedule.minimum_learning_rate >= rate:
        message = (
            f"{schedule.minimum_learning_rate} is not below training.optimizer.learning_rate: {rate}, so the rate "
            "would never be cut"
        )
        yield Problem((*_SCHEDULE, "minimum_learning_rate"), message, (("training", "optimizer"),))


def _checkpoints(training: TrainingConfig) -> Iterator[Problem]:
    average, path = training.average_best, ("training", "average_best")
    if average == 1:
        yield Problem(path, "1 has no effect: one checkpoint has no average; allowed: 0 (off), or 2 to keep_best")
    elif average > training.keep_best:
        message = f"{average} checkpoints are to be averaged, but keep_best: {training.keep_best} keeps fewer"
        yield Problem(path, message, (("training", "keep_best"),))
    repeated = sorted({part for part in training.freeze if training.freeze.count(part) > 1})
    if repeated:
        yield Problem(("training", "freeze"), f"{', '.join(repeated)} is given more than once")
