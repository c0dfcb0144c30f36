"""Schedules as tables of factors, and optimizers built as configured."""

import math
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from nmt.config.schema import TrainingConfig
from nmt.training.optim import (
    OPTIMIZERS,
    SCHEDULES,
    build_optimizer,
    build_schedule,
    improves,
    steering_metrics,
)


def training(**settings: Any) -> TrainingConfig:
    return TrainingConfig.model_validate(settings)


def test_families_are_those_of_the_configuration() -> None:
    schema = TrainingConfig.model_json_schema()["$defs"]
    names = {name for kind in schema.values() for name in _names(kind)}
    assert set(OPTIMIZERS) | set(SCHEDULES) == names


def _names(definition: dict[str, Any]) -> list[str]:
    name = definition.get("properties", {}).get("name", {})
    return name.get("enum") or ([name["const"]] if "const" in name else [])


def test_constant() -> None:
    schedule = build_schedule(training(schedule={"name": "constant"}))
    assert [schedule.factor(update, 1, 0.0) for update in (1, 1000)] == [1.0, 1.0]


def test_linear_is_what_is_left_of_the_run() -> None:
    schedule = build_schedule(training(schedule={"name": "linear"}))
    assert [schedule.factor(1, 1, done) for done in (0.0, 0.25, 0.875)] == [1.0, 0.75, 0.125]


def test_warmup_rises_linearly_and_falls_with_the_square_root() -> None:
    schedule = build_schedule(training(schedule={"name": "warmup_inverse_sqrt", "warmup_updates": 100}))
    assert [schedule.factor(update, 1, 0.0) for update in (1, 50, 100, 400)] == pytest.approx([0.01, 0.5, 1.0, 0.5])


def test_halving_from_an_epoch_on() -> None:
    schedule = build_schedule(training(schedule={"name": "halving", "after": "5 epochs"}))
    assert [schedule.factor(1, epoch, 0.0) for epoch in (1, 5, 6, 7, 8)] == [1.0, 1.0, 0.5, 0.25, 0.125]
    assert schedule.factor(10**6, 5, 0.0) == 1.0
    rarely = build_schedule(training(schedule={"name": "halving", "after": "5 epochs", "every": "3 epochs"}))
    assert [rarely.factor(1, epoch, 0.0) for epoch in (5, 6, 8, 9, 11, 12)] == [1.0, 0.5, 0.5, 0.25, 0.25, 0.125]
    assert build_schedule(training(schedule={"name": "halving"})).factor(1, 7, 0.0) == 0.25


def halving(after: int, every: int) -> list[float]:
    """The factors of the updates 1 to 59 in the first epoch, and those of a schedule that begins at the 30th."""
    settings = {"name": "halving", "after": f"{after} updates", "every": every, "factor": 0.5}
    whole, resumed = build_schedule(training(schedule=settings)), build_schedule(training(schedule=settings))
    factors = [whole.factor(update, 1, 0.0) for update in range(1, 60)]
    resumed.restore(whole.state())
    assert [resumed.factor(update, 7, 0.0) for update in range(30, 60)] == factors[29:]
    return factors


def test_halving_is_that_of_other_toolkits() -> None:
    """With the settings that the class names: OpenNMT-py's formula, and that of tensorflow's nmt for N = 60 updates."""
    start, every = 10, 7
    opennmt = [0.5 ** (max(step - start + every, 0) // every) for step in range(1, 60)]
    assert halving(start - 1, every) == opennmt
    for start, times in ((30, 5), (30, 10), (40, 4)):  # luong5, luong10, luong234
        every = (60 - start) // times
        done = range(59)  # updates before the one in question
        tensorflow = [1.0 if step < start else 0.5 ** ((step - start) // every) for step in done]
        assert halving(start + every, every) == tensorflow


def test_plateau_bears_patience_validations() -> None:
    settings = {"name": "plateau", "metric": "bleu", "patience": 2, "factor": 0.5, "minimum_learning_rate": 1.5e-4}
    schedule = build_schedule(training(schedule=settings, optimizer={"name": "adam", "learning_rate": 1e-3}))
    factors = []
    for bleu in (10.0, 9.0, 11.0, 11.0, 10.0, 10.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        schedule.validated({"bleu": bleu, "loss": 3.0})
        factors.append(schedule.factor(1, 1, 0.0))
    #                      new  -    new  -    -    cut  -    -    cut   ...            lowest: 1.5e-4 / 1e-3
    assert factors == pytest.approx([1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.15, 0.15, 0.15, 0.15])


def test_plateau_takes_the_lower_loss_for_the_better_of_equal_values() -> None:
    """As at the start, when no translation is right and BLEU is 0: the rate is not cut while the loss falls."""
    schedule = build_schedule(training(schedule={"name": "plateau", "metric": "bleu", "patience": 0}))
    factors = []
    for loss in (math.nan, 5.0, 4.0, 3.0, 3.0, math.nan, 2.9):
        schedule.validated({"bleu": 0.0, "loss": loss})
        factors.append(schedule.factor(1, 1, 0.0))
    assert factors == [1, 1, 1, 1, 0.5, 0.25, 0.25]


def test_plateau_on_a_loss_wants_it_low_and_says_when_it_cuts() -> None:
    schedule = build_schedule(training(schedule={"name": "plateau", "metric": "loss", "patience": 0}))
    assert schedule.validated({"loss": 3.0}) is None
    assert schedule.validated({"loss": 2.0}) is None
    message = schedule.validated({"loss": 2.5})
    assert message is not None
    assert "learning rate 0.0005" in message


def test_plateau_may_end_training_in_the_place_of_its_lowest_rate() -> None:
    """JoeyNMT's learning_rate_min of 5e-5: 1e-3 is halved to 6.25e-5, and the next cut is the end."""
    settings = {"name": "plateau", "metric": "loss", "patience": 0, "minimum_learning_rate": 5e-5}
    both = [
        build_schedule(training(schedule={**settings, **more}, optimizer={"name": "adam", "learning_rate": 1e-3}))
        for more in ({}, {"stop_below_minimum": True})
    ]
    for schedule, lowest in zip(both, (0.05, 0.03125), strict=True):
        schedule.validated({"loss": 1.0})
        messages = [schedule.validated({"loss": 2.0}) for _ in range(4)]
        assert all(message is not None for message in messages)
        assert (schedule.factor(1, 1, 0.0), schedule.end()) == (0.0625, None)
        schedule.validated({"loss": 2.0})
        assert schedule.factor(1, 1, 0.0) == lowest
    assert both[0].end() is None
    assert both[1].end() == "the learning rate would be below 5e-05"


@pytest.mark.parametrize(("rate", "factor", "cuts"), [(0.03, 0.7, 1), (3e-4, 0.1, 1), (1e-3, 0.7, 3), (0.05, 0.1, 1)])
@pytest.mark.parametrize("ends", [False, True])
def test_plateau_reaches_a_lowest_rate_that_its_cuts_lead_to(rate: float, factor: float, cuts: int, ends: bool) -> None:
    """Though floating point does not quite: neither is the last cut missing, nor is there one that cuts nothing."""
    lowest = float(f"{rate * factor**cuts:.6g}")
    settings = {"name": "plateau", "metric": "loss", "patience": 0, "factor": factor, "stop_below_minimum": ends}
    optimizer = {"name": "adam", "learning_rate": rate}
    schedule = build_schedule(training(schedule={**settings, "minimum_learning_rate": lowest}, optimizer=optimizer))
    schedule.validated({"loss": 1.0})
    for _ in range(cuts):
        assert schedule.validated({"loss": 2.0}) is not None
        assert schedule.end() is None
    assert rate * schedule.factor(1, 1, 0.0) == pytest.approx(lowest, rel=1e-9)
    assert schedule.validated({"loss": 2.0}) is None
    assert schedule.end() == (f"the learning rate would be below {lowest:g}" if ends else None)


def test_improves() -> None:
    assert steering_metrics() == ["bleu", "chrf", "chrf++", "ter", "accuracy", "cer", "loss", "perplexity"]
    assert improves("bleu", (2.0, 9.0), (1.0, 9.0))
    assert not improves("bleu", (1.0, 9.0), (1.0, 9.0))
    assert improves("bleu", (1.0, 8.0), (1.0, 9.0))
    assert improves("loss", (1.0, 1.0), (2.0, 2.0))
    assert improves("loss", (5.0, 5.0), (None, 0.0))
    assert not improves("loss", (math.nan, math.inf), (None, 0.0))


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("sgd", torch.optim.SGD, {"fused": True, "momentum": 0.5}),
        ("adam", torch.optim.Adam, {"fused": True}),
        ("adamw", torch.optim.AdamW, {"fused": True}),
        ("adadelta", torch.optim.Adadelta, {"rho": 0.95}),
    ],
)
def test_steps_are_those_of_pytorch_to_the_bit(name: str, kind: type[Any], options: dict[str, Any]) -> None:
    """They do without its wrappers; the state, too, before and after it is saved and loaded."""
    start = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    settings = {"name": name, "learning_rate": 0.1, "weight_decay": 0.01}
    weights = [nn.Parameter(start.clone()), nn.Parameter(start.clone())]
    if name == "sgd":
        settings["momentum"] = 0.5
    ours = build_optimizer(weights[:1], training(optimizer=settings))
    theirs = kind(weights[1:], lr=0.1, weight_decay=0.01, **options)
    for _ in range(5):
        for weight, optimizer in zip(weights, (ours, theirs), strict=True):
            optimizer.zero_grad()
            weight.pow(4).sum().backward()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
        assert torch.equal(*weights)
    (state,), (expected,) = (optimizer.state_dict()["state"].values() for optimizer in (ours, theirs))
    assert {name: value.tolist() for name, value in state.items()} == {
        name: value.tolist() for name, value in expected.items()
    }
    assert not torch.equal(weights[0], start)
    assert type(pickle.loads(pickle.dumps(ours))) is type(ours)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adadelta"])
def test_only_matrices_decay(name: str) -> None:
    """Without a gradient from the loss, only what decays moves."""
    matrix, vector = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(5))
    settings = {"name": name, "learning_rate": 0.1, "weight_decay": 0.5, "decayed": "matrices"}
    optimizer = build_optimizer([vector, matrix], training(optimizer=settings))
    matrix.grad, vector.grad = torch.zeros_like(matrix), torch.zeros_like(vector)
    optimizer.step()
    assert bool((matrix < 1).all())
    assert bool((vector == 1).all())


def test_frozen_parameters_are_left_out() -> None:
    free, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3), requires_grad=False)
    optimizer = build_optimizer([free, frozen], training())
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]
