"""Checks between the keys of the section `training`, and of it with others."""

from collections.abc import Iterator

from nmt.config.allowed import dotted
from nmt.config.problems import Problem
from nmt.config.schema import Config, HalvingSchedule, Interval, PlateauSchedule, TrainingConfig, WarmupSchedule
from nmt.config.yaml_text import KeyPath

_LIMITS: dict[str, KeyPath] = {"epochs": ("training", "max_epochs"), "updates": ("training", "max_updates")}
_VALIDATE_EVERY: KeyPath = ("training", "validate_every")
_SCHEDULE: KeyPath = ("training", "schedule")


def training_contradictions(config: Config) -> Iterator[Problem]:
    """Training without an end, and intervals, schedules and patience that the training is too short for."""
    yield from _end(config.training)
    yield from _intervals(config.training)
    yield from _schedule(config.training)
    yield from _patience(config.training)
    yield from _checkpoints(config.training)
    yield from _batch_of_tokens(config)


def _limit(training: TrainingConfig, unit: str) -> int | None:
    return training.max_epochs if unit == "epochs" else training.max_updates


def _end(training: TrainingConfig) -> Iterator[Problem]:
    if training.max_epochs is None and training.max_updates is None:
        message = "neither this nor max_updates is set, so training has no end; set one or both"
        yield Problem(_LIMITS["epochs"], message, (_LIMITS["updates"],))


def _intervals(training: TrainingConfig) -> Iterator[Problem]:
    save, validate = training.save_every, training.validate_every
    yield from _reached(training, "validate_every", validate)
    if save and save.unit == validate.unit and save.count % validate.count == 0:
        message = (
            f"{save} has no effect, because every validation saves the state too (validate_every: {validate}); "
            "use a shorter interval, or remove it"
        )
        yield Problem(("training", "save_every"), message, (_VALIDATE_EVERY,))
    elif save:
        yield from _reached(training, "save_every", save)


def _reached(training: TrainingConfig, key: str, every: Interval) -> Iterator[Problem]:
    limit = _limit(training, every.unit)
    if limit and every.count > limit:
        message = f"{every} is never reached, because training ends after max_{every.unit}: {limit}"
        yield Problem(("training", key), message, (_LIMITS[every.unit],))


def _schedule(training: TrainingConfig) -> Iterator[Problem]:
    schedule, updates, epochs = training.schedule, training.max_updates, training.max_epochs
    if isinstance(schedule, WarmupSchedule) and updates and schedule.warmup_updates > updates:
        message = f"{schedule.warmup_updates} updates of warm-up do not fit into max_updates: {updates}"
        yield Problem((*_SCHEDULE, "warmup_updates"), message, (_LIMITS["updates"],))
    if isinstance(schedule, HalvingSchedule) and epochs and schedule.after_epoch >= epochs:
        message = (
            f"{schedule.after_epoch} has no effect, because training ends after max_epochs: {epochs}; use a smaller "
            "number, or schedule: {name: constant}"
        )
        yield Problem((*_SCHEDULE, "after_epoch"), message, (_LIMITS["epochs"],))
    rate = training.optimizer.learning_rate
    if isinstance(schedule, PlateauSchedule) and schedule.minimum_learning_rate >= rate:
        message = (
            f"{schedule.minimum_learning_rate} is not below training.optimizer.learning_rate: {rate}, so the rate "
            "would never be cut"
        )
        yield Problem((*_SCHEDULE, "minimum_learning_rate"), message, (("training", "optimizer"),))


def _patience(training: TrainingConfig) -> Iterator[Problem]:
    """The first validation is always a new best, and a reaction to the last one, at the end, changes nothing."""
    needed: list[tuple[KeyPath, int]] = []
    if training.early_stopping:
        needed.append((("training", "early_stopping", "patience"), 1 + training.early_stopping.patience))
    if isinstance(training.schedule, PlateauSchedule):
        needed.append(((*_SCHEDULE, "patience"), 2 + training.schedule.patience))
    every = training.validate_every
    limit = _limit(training, every.unit)
    if limit is None or every.count > limit:
        return
    before_the_end = (limit - 1) // every.count
    for path, validations in needed:
        if before_the_end < validations:
            message = (
                f"has no effect, because it needs {validations} validations before the end of training, and there are "
                f"{before_the_end} (validate_every: {every}, max_{every.unit}: {limit}); use a smaller number, "
                f"or remove {dotted(path[:-1])}"
            )
            yield Problem(path, message, (_VALIDATE_EVERY, _LIMITS[every.unit]))


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


def _batch_of_tokens(config: Config) -> Iterator[Problem]:
    training, longest = config.training, config.data.max_length + 1
    if training.batch_by == "tokens" and training.batch_size < longest:
        message = (
            f"{training.batch_size} tokens are less than the longest sentence, which has {longest} with the end symbol "
            f"(data.max_length: {config.data.max_length}); use a larger batch, or a smaller max_length"
        )
        yield Problem(("training", "batch_size"), message, (("training", "batch_by"), ("data", "max_length")))
