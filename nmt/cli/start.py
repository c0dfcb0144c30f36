"""Where the commands start: signals are answered in one line from here on, before what takes seconds is imported."""

from nmt.cli import stopping


def train() -> int:
    """nmt-train."""
    stopping.from_now_on("nmt-train")
    from nmt.cli.train import main

    return main()


def translate() -> int:
    """nmt-translate."""
    stopping.from_now_on("nmt-translate")
    from nmt.cli.translate import main

    return main()


def evaluate() -> int:
    """nmt-eval."""
    stopping.from_now_on("nmt-eval")
    from nmt.cli.evaluate import main

    return main()


def score() -> int:
    """nmt-score."""
    stopping.from_now_on("nmt-score")
    from nmt.cli.score import main

    return main()


def shortlist() -> int:
    """nmt-shortlist."""
    stopping.from_now_on("nmt-shortlist")
    from nmt.cli.shortlist import main

    return main()
