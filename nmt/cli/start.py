"""Where the commands start: signals are answered in one line from here on, before what takes seconds is imported."""

from collections.abc import Callable

from nmt.jobs import stopping


def train() -> int:
    """nmt-train."""

    def load() -> Callable[[], int]:
        from nmt.cli.train import main

        return main

    return stopping.started("nmt-train", load)


def translate() -> int:
    """nmt-translate."""

    def load() -> Callable[[], int]:
        from nmt.cli.translate import main

        return main

    return stopping.started("nmt-translate", load)


def evaluate() -> int:
    """nmt-eval."""

    def load() -> Callable[[], int]:
        from nmt.cli.evaluate import main

        return main

    return stopping.started("nmt-eval", load)


def score() -> int:
    """nmt-score."""

    def load() -> Callable[[], int]:
        from nmt.cli.score import main

        return main

    return stopping.started("nmt-score", load)


def shortlist() -> int:
    """nmt-shortlist."""

    def load() -> Callable[[], int]:
        from nmt.cli.shortlist import main

        return main

    return stopping.started("nmt-shortlist", load)
