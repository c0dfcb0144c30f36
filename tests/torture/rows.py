"""The rows of the matrix: each a fault, a moment, and the trial that tries them once."""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.torture import damage, kills, together
from tests.torture.faults import ERRORS, Fault
from tests.torture.kills import Trial
from tests.torture.moments import CALLS, moments
from tests.torture.scene import JOBS, RANKS, Scene

KILLS, FLIPS, OTHERS = "kills", "flips", "others"
UNBOUNDED = 1 << 30
GROUPS = (KILLS, FLIPS, OTHERS)
SIGNALS = {"terminate": "SIGTERM", "interrupt": "SIGINT", "interrupt twice": "SIGINT twice"}
FAILURES = {action: f"{action} (refused by the system call)" for action in ERRORS}


class Row(NamedTuple):
    """One row; `most` bounds how often it is tried, where a trial takes many seconds."""

    group: str
    fault: str
    moment: str
    trial: Trial
    most: int = UNBOUNDED

    @property
    def name(self) -> str:
        """What --only looks in."""
        return f"{self.fault} × {self.moment}"


def rows(scene: Scene) -> list[Row]:
    """All rows, those of a group in an order in which the first few are of many kinds."""
    all_rows = [*_struck(scene), *_others(), *_damaged()]
    order = random.Random(1)
    order.shuffle(all_rows)
    return sorted(all_rows, key=lambda row: (GROUPS.index(row.group), row.most < 100))


def _struck(scene: Scene) -> Iterator[Row]:
    """A fault before a file operation, or before a call of a function."""
    for job, operations in scene.operations.items():
        most = 4 if JOBS[job].makes else UNBOUNDED
        for moment, numbers in moments(job, operations).items():
            yield Row(KILLS, "kill -9", moment, kills.at(job, "kill", _operation("kill", numbers)), most)
            for action, title in SIGNALS.items():
                yield Row(KILLS, title, moment, kills.at(job, action, _operation(action, numbers)), most)
            for action, title in FAILURES.items():
                yield Row(OTHERS, title, moment, kills.at(job, action, _operation(action, numbers)), most)
        everywhere = list(range(1, len(operations) + 1))
        yield Row(OTHERS, "clock set back", job, kills.at(job, "clock", _operation("clock", everywhere)), most)
        yield Row(OTHERS, "slow disk, kill -9", job, kills.any_time(job, delay=0.005), most)
        yield Row(OTHERS, "quota (files limited)", job, kills.file_limit(job), most)
    for moment, (target, calls) in CALLS.items():
        for action, title in {"kill": "kill -9", **SIGNALS}.items():
            yield Row(KILLS, title, moment, kills.at("training", action, _call(action, target, calls)))
    updates, validations = CALLS["accumulation"], CALLS["validation"]
    for rank in range(RANKS):
        place = f"process {rank} of {RANKS}"
        for moment, (target, calls) in {"an update": updates, "validation": validations}.items():
            trial = kills.rank(rank, "kill", _call("kill", target, calls))
            yield Row(KILLS, "kill -9", f"{moment}, {place}", trial, most=8)
        trial = kills.rank(rank, "terminate", _call("terminate", *updates))
        yield Row(KILLS, "SIGTERM", f"an update, {place}", trial, most=4)


def _operation(action: str, numbers: list[int]) -> Callable[[random.Random], Fault]:
    return lambda draw: Fault(action, operation=draw.choice(numbers))


def _call(action: str, target: str, calls: range) -> Callable[[random.Random], Fault]:
    return lambda draw: Fault(action, call=(target, draw.choice(calls)))


def _others() -> Iterator[Row]:
    for job in ("training", "translation"):
        yield Row(KILLS, "kill -9", f"any time, {job}", kills.any_time(job))
    yield Row(OTHERS, "two in one folder", "training", together.in_one_folder)
    yield Row(OTHERS, "two of one output", "translation", together.to_one_output)
    yield Row(OTHERS, "two make one cache", "preparing", together.making_one_cache)


def _damaged() -> Iterator[Row]:
    for kind in damage.KINDS:
        group = FLIPS if kind == "one bit flipped" else OTHERS
        for name in damage.READS:
            yield Row(group, kind, name, damage.damaged(name, kind))
