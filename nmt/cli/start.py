"""Where commands start: signals are handled from here on, before any other import."""

import sys
from collections.abc import Callable
from functools import partial

from nmt import signals


def _start(program: str) -> int:

    def load() -> Callable[[], int]:
        from nmt.cli.commands import prepared

        return prepared(program)

    return signals.started(program, load)


train = partial(_start, "nmt-train")
translate = partial(_start, "nmt-translate")
evaluate = partial(_start, "nmt-eval")
align = partial(_start, "nmt-align")
curves = partial(_start, "nmt-curves")
score = partial(_start, "nmt-score")
serve = partial(_start, "nmt-serve")
shortlist = partial(_start, "nmt-shortlist")
average = partial(_start, "nmt-average")
synthetic = partial(_start, "nmt-synthetic")


def nmt() -> int:
    """Run `nmt COMMAND …`, or say which commands there are."""

    def load() -> Callable[[], int]:
        from nmt.cli.commands import prepared_of_any

        return prepared_of_any(sys.argv[1:])

    return signals.started("nmt", load)
