"""What validations do to the lists of checkpoints and to the end of training."""

import json
import math
from typing import Any

from nmt.config.schema import TrainingConfig
from nmt.training.distributed import Processes
from nmt.training.progress import Progress, Window


def validated(progress: Progress, config: TrainingConfig, *values: float, metric: str = "bleu") -> list[bool]:
    results = []
    for value in values:
        progress.update += 10
        results.append(progress.record({metric: value, "bleu": value, "loss": value}, config))
    return results


def training(**settings: Any) -> TrainingConfig:
    return TrainingConfig.model_validate(settings)


def test_best_and_last_checkpoints() -> None:
    config = training(keep_best=2, keep_last=1)
    progress = Progress()
    assert validated(progress, config, 5.0, 7.0, 6.0, 7.0, 1.0) == [True, True, False, False, False]
    assert progress.best == [(7.0, 20), (7.0, 40)]  # the earlier of two equal values is better
    assert progress.last == [50]
    assert progress.kept(config) == {20, 40, 50}


def test_low_loss_is_best_and_no_number_never_is() -> None:
    config = training(validation={"metric": "loss"}, keep_best=2)
    progress = Progress()
    assert validated(progress, config, 3.0, math.nan, 2.0, 4.0, metric="loss") == [True, False, True, False]
    assert progress.best == [(2.0, 30), (3.0, 10)]


def test_early_stopping() -> None:
    config = training(early_stopping={"metric": "bleu", "patience": 2})
    progress = Progress()
    validated(progress, config, 5.0, 4.0)
    assert progress.end(config) is None
    validated(progress, config, 6.0, 6.0)
    assert progress.end(config) is None
    validated(progress, config, 5.9)
    assert progress.end(config) == "no better bleu in 2 validations"


def test_limits() -> None:
    config = training(max_epochs=3, max_updates=100)
    assert Progress(epoch=2, update=99).end(config) is None
    assert Progress(epoch=3, update=99).end(config) == "3 epochs"
    assert Progress(epoch=2, update=100).end(config) == "100 updates"


def test_json_round_trip() -> None:
    progress = Progress(epoch=2, position=3, update=7, window=Window(updates=1, loss=2.5))
    validated(progress, training(keep_best=2), 3.0, 5.0)
    assert Progress.from_json(json.loads(json.dumps(progress.as_json(Processes())))) == progress


class Two(Processes):
    """One of two processes; the other one has 3 padded positions of 70."""

    def sums(self, *numbers: float) -> list[float]:
        return [number + other for number, other in zip(numbers, (3, 70), strict=True)]


def test_the_padding_that_is_saved_is_of_all_processes() -> None:
    """The others then resume with none, so that nothing counts twice."""
    progress = Progress(window=Window(updates=2, loss=2.5, padding=2, positions=50))
    saved = json.loads(json.dumps(progress.as_json(Two(size=2))))
    assert Progress.from_json(saved).window == Window(updates=2, loss=2.5, padding=5, positions=120)
    assert Progress.from_json(saved, rank=1).window == Window(updates=2, loss=2.5)
