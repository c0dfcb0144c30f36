"""What validations do to the lists of checkpoints and to the end of training."""

import json
import math
from dataclasses import asdict
from typing import Any

import pytest

from nmt.config.schema import TrainingConfig
from nmt.training.optim import build_schedule
from nmt.training.progress import Progress, Scored, Window
from nmt.training.update import UpdateResult


def validated(progress: Progress, config: TrainingConfig, *values: float, metric: str = "bleu") -> list[bool]:
    results = []
    for value in values:
        progress.update += 10
        results.append(progress.record({"loss": 1.0, "bleu": value, metric: value}, config))
    return results


def training(**settings: Any) -> TrainingConfig:
    return TrainingConfig.model_validate(settings)


def test_best_and_last_checkpoints() -> None:
    config = training(keep_best=2, keep_last=1)
    progress = Progress()
    assert validated(progress, config, 5.0, 7.0, 6.0, 7.0, 1.0) == [True, True, False, False, False]
    assert progress.best == [(7.0, 20, 1.0), (7.0, 40, 1.0)]  # the earlier of two equal ones is better
    assert progress.last == [50]
    assert progress.kept(config) == {20, 40, 50}


def test_low_loss_is_best_and_no_number_never_is() -> None:
    config = training(validation={"metric": "loss"}, keep_best=2)
    progress = Progress()
    assert validated(progress, config, math.nan, 3.0, math.nan, 2.0, 4.0, metric="loss") == [
        *(False, True, False, True, False)
    ]
    assert progress.best == [(2.0, 40, 2.0), (3.0, 20, 3.0)]


def test_of_equal_values_the_lower_loss_is_the_better() -> None:
    """As where BLEU is 0 for a long time. A loss that is no number is the worst; another BLEU is not outdone by it."""
    config = training(keep_best=9, early_stopping={"metric": "bleu", "patience": 2})
    progress = Progress()
    results = []
    for bleu, loss in ((0.0, 5.0), (0.0, math.nan), (0.0, 4.0), (0.0, 4.5), (0.0, 3.0)):
        progress.update += 10
        results.append(progress.record({"bleu": bleu, "loss": loss}, config))
    assert results == [True, False, True, False, True]
    assert [one.update for one in progress.best] == [50, 30, 40, 10, 20]
    assert progress.stopping_waited == 0
    assert progress.record({"bleu": 1.0, "loss": 9.0}, config)
    assert not progress.record({"bleu": 0.9, "loss": 1.0}, config)
    assert progress.end(config) is None
    assert not progress.record({"bleu": 1.0, "loss": 9.0}, config)
    assert progress.end(config) == "no better bleu in 2 validations"


def test_the_share_of_the_run_that_is_done() -> None:
    """By the limit that comes first, and within an epoch by its batches."""
    late = Progress(update=30, epoch=3, position=4)
    assert late.done(training(max_epochs=5), 8) == 0.7
    assert late.done(training(max_updates=120), 8) == 0.25
    assert late.done(training(max_epochs=5, max_updates=120), 8) == 0.7
    assert late.done(training(max_epochs=14, max_updates=60), 8) == 0.5
    assert late.done(training(max_updates=20), 8) == 1.0
    assert Progress().done(training(max_epochs=5, max_updates=120), 8) == 0.0


def test_early_stopping() -> None:
    config = training(early_stopping={"metric": "bleu", "patience": 2})
    progress = Progress()
    validated(progress, config, 5.0, 4.0)
    assert progress.end(config) is None
    validated(progress, config, 6.0, 6.0)
    assert progress.end(config) is None
    validated(progress, config, 5.9)
    assert progress.end(config) == "no better bleu in 2 validations"


def test_a_longer_training_waits_longer() -> None:
    """Without any key of its length: for a quarter of all validations, and at least five."""
    config = training()
    for rising, waits in ((1, 5), (40, 14)):  # 14 of 54, for 13 of 53 are less than a quarter
        progress = Progress()
        for number in range(rising):
            validated(progress, config, float(number))
        for _ in range(waits):
            assert progress.end(config) is None
            validated(progress, config, -1.0)
        assert progress.end(config) == f"no better bleu in {waits} validations"


@pytest.mark.parametrize(("patience", "rates"), [(3, [1.0] * 4), (4, [1.0] * 4 + [0.5])])
def test_early_stopping_leaves_a_plateau_time_to_act(patience: int, rates: list[float]) -> None:
    """The rate of every interval before a validation: only a patience of 2 more than the schedule's sees the cut."""
    plateau = {"name": "plateau", "metric": "bleu", "patience": 2}
    config = training(schedule=plateau, early_stopping={"metric": "bleu", "patience": patience})
    progress, schedule, factors = Progress(), build_schedule(config), []
    while progress.end(config) is None:
        factors.append(schedule.factor(progress.update + 1, 1, 0.0))
        validated(progress, config, 5.0)
        schedule.validated({"bleu": 5.0, "loss": 1.0})
    assert factors == rates


def test_limits() -> None:
    config = training(max_epochs=3, max_updates=100)
    assert Progress(epoch=2, update=99).end(config) is None
    assert Progress(epoch=3, update=99).end(config) == "3 epochs"
    assert Progress(epoch=2, update=100).end(config) == "100 updates"


def test_json_round_trip() -> None:
    progress = Progress(epoch=2, position=3, update=7, window=Window(updates=1, loss=2.5))
    validated(progress, training(keep_best=2), 3.0, 5.0)
    assert Progress.from_json(json.loads(json.dumps(asdict(progress)))) == progress


def test_validations_beyond_the_start_are_counted_in_a_row() -> None:
    """Only guessing is compared with: a loss that rises from the best one is that of a text known by heart."""
    progress, counts = Progress(best=[Scored(3.0, 1, loss=2.0)]), []
    for loss in (9.0, 5.0, 8.1, 8.3, 8.2, 8.0):
        progress.note_loss(loss, 8.0)
        counts.append(progress.beyond)
    assert counts == [1, 0, 1, 2, 3, 0]
    assert progress.validation_loss == 8.0


def test_the_risk_is_that_of_a_sentence_however_many_an_update_has() -> None:
    window = Window()
    for sentences, risk in ((79, 0.9), (1, 0.1)):
        window.add(UpdateResult(2.0, 3, 1.0, 1, sentences=sentences, risk=risk * sentences), 0.5)
    assert window.means()["expected_risk"] == pytest.approx((79 * 0.9 + 0.1) / 80)


def test_a_window_without_an_update_has_no_means() -> None:
    means = Window().means()
    assert list(means) == list(Window(updates=1, loss=3.0, tokens=2, seconds=1.0).means())
    assert all(math.isnan(value) for value in means.values())
