"""The options of nmt-eval about chance: which tests compare systems, intervals, and how many samples are drawn."""

import argparse
from dataclasses import dataclass

from nmt.cli.options import read_count
from nmt.cli.systems import Systems
from nmt.config.problems import unknown_choice
from nmt.errors import Checking, caught
from nmt.evaluation.comparison import (
    FEWEST_RESAMPLES,
    FEWEST_TRIALS,
    METHODS,
    RESAMPLES,
    TRIALS,
    Method,
    resampling_seed,
)

NO_TEST = "none"


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How chance is measured; the fields are arguments of `compare`."""

    methods: tuple[Method, ...]
    intervals: bool
    resamples: int
    trials: int


def read_resampling(options: argparse.Namespace, systems: Systems) -> Checking[Resampling]:
    """Read how to test the systems against the first one: by the bootstrap, unless told otherwise."""
    methods: tuple[Method, ...] = ()
    several = len(systems.candidates) > 1
    if options.significance is not None:
        methods = yield from _read_methods(options.significance)
        if systems.runs:
            yield "--significance has no effect with --runs: seeds of a system are not tested against each other"
        elif not several:
            yield "--significance needs several systems: --hypotheses FILE FILE, or --model NAME=PATH --model NAME=PATH"
    elif several and not systems.runs:
        methods = ("bootstrap",)
    resamples = yield from read_count("--resamples", options.resamples, least=FEWEST_RESAMPLES)
    trials = yield from read_count("--trials", options.trials, least=FEWEST_TRIALS)
    intervals = options.intervals or options.report is not None
    if options.resamples is not None and "bootstrap" not in methods and not intervals:
        yield "--resamples has an effect only with --significance bootstrap, --intervals, or --report"
    if options.trials is not None and "randomization" not in methods:
        yield "--trials has an effect only with --significance randomization"
    if methods or intervals:
        yield from caught(resampling_seed, None)
    return Resampling(methods=methods, intervals=intervals, resamples=resamples or RESAMPLES, trials=trials or TRIALS)


def _read_methods(text: str) -> Checking[tuple[Method, ...]]:
    names = [name.strip().lower() for name in text.split(",")]
    if names == [NO_TEST]:
        return ()
    for name in dict.fromkeys(names):
        if name not in METHODS:
            yield f"--significance: {unknown_choice(name, [*METHODS, NO_TEST])}"
        elif names.count(name) > 1:
            yield f"--significance: {name} is given more than once"
    return tuple(method for method in METHODS if method in names)
