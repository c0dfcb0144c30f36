"""Where the commands start: signals are answered in one line from here on, before what takes seconds is imported."""

from collections.abc import Callable
from functools import wraps

from nmt.jobs import stopping

Main = Callable[[], int]


def _command(program: str) -> Callable[[Callable[[], Main]], Main]:
    """Make a function that imports the main function of a command the start of this command."""

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
