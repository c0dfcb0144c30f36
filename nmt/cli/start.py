"""Where commands start: signals are handled from here on, before the imports that take seconds."""

from collections.abc import Callable
from functools import partial

from nmt.jobs import stopping


def _start(program: str) -> int:

    def load() -> Callable[[], int]:
        if program == "nmt-train":
            from nmt.cli.train import main
        elif program == "nmt-translate":
            from nmt.cli.translate import main
        elif program == "nmt-eval":
            from nmt.cli.evaluate import main
        elif program == "nmt-score":
            from nmt.cli.score import main
        elif program == "nmt-serve":
            from nmt.cli.serve import main
        else:
            from nmt.cli.shortlist import main
        return main

    return stopping.started(program, load)


train = partial(_start, "nmt-train")
translate = partial(_start, "nmt-translate")
evaluate = partial(_start, "nmt-eval")
score = partial(_start, "nmt-score")
serve = partial(_start, "nmt-serve")
shortlist = partial(_start, "nmt-shortlist")
