"""Where commands start: signals are handled from here on, before the imports that take seconds."""

from collections.abc import Callable
from functools import wraps

from nmt.jobs import stopping

Main = Callable[[], int]


def _command(program: str) -> Callable[[Callable[[], Main]], Main]:
    """Turn a function that imports a command's main function into one that runs the command."""

    def start(load: Callable[[], Main]) -> Main:
        return wraps(load)(lambda: stopping.started(program, load))

    return start


@_command("nmt-train")
def train() -> Main:
    """nmt-train."""
    from nmt.cli.train import main

    return main


@_command("nmt-translate")
def translate() -> Main:
    """nmt-translate."""
    from nmt.cli.translate import main

    return main


@_command("nmt-eval")
def evaluate() -> Main:
    """nmt-eval."""
    from nmt.cli.evaluate import main

    return main


@_command("nmt-score")
def score() -> Main:
    """nmt-score."""
    from nmt.cli.score import main

    return main


@_command("nmt-shortlist")
def shortlist() -> Main:
    """nmt-shortlist."""
    from nmt.cli.shortlist import main

    return main
