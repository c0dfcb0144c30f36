"""The commands: their options, which are read before anything that takes seconds is imported, and how to import them.

`nmt COMMAND …` is `nmt-COMMAND …`. A further command is a line of COMMANDS, with the function that imports it, one in
`start.py`, and a script in pyproject.toml.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from nmt import __version__, signals
from nmt.cli import align, curves, evaluate, score
from nmt.cli.common import run
from nmt.cli.parsers import average as average_options
from nmt.cli.parsers import serve as serve_options
from nmt.cli.parsers import shortlist as shortlist_options
from nmt.cli.parsers import synthetic as synthetic_options
from nmt.cli.parsers import train as train_options
from nmt.cli.parsers import translate as translate_options
from nmt.cli.parsers.parser import Parser, say
from nmt.errors import UserError, nearest

Main = Callable[[Sequence[str] | None], int]


class Command(NamedTuple):
    """A command: its options, how to import it, and what it does, in a line."""

    parser: Callable[[], Parser]
    load: Callable[[], Main]
    summary: str


def _load_train() -> Main:
    from nmt.cli.train import main

    return main


def _load_translate() -> Main:
    from nmt.cli.translate import main

    return main


def _load_serve() -> Main:
    from nmt.cli.serve import main

    return main


def _load_shortlist() -> Main:
    from nmt.cli.shortlist import main

    return main


def _load_average() -> Main:
    from nmt.cli.average import main

    return main


def _load_synthetic() -> Main:
    from nmt.cli.synthetic import main

    return main


COMMANDS = {
    "nmt-train": Command(train_options.parser, _load_train, "train a model from one configuration file"),
    "nmt-translate": Command(translate_options.parser, _load_translate, "translate text, line by line"),
    "nmt-eval": Command(evaluate.parser, lambda: evaluate.main, "score translations, and compare systems"),
    "nmt-align": Command(align.parser, lambda: align.main, "score word alignments, or combine two directions"),
    "nmt-curves": Command(curves.parser, lambda: curves.main, "draw the learning curves of trainings"),
    "nmt-score": Command(score.parser, lambda: score.main, "give the probability of translations"),
    "nmt-serve": Command(serve_options.parser, _load_serve, "answer requests over HTTP, and show a page"),
    "nmt-shortlist": Command(
        shortlist_options.parser, _load_shortlist, "learn which words may translate which, for faster translation"
    ),
    "nmt-average": Command(average_options.parser, _load_average, "average the weights of several models"),
    "nmt-synthetic": Command(
        synthetic_options.parser, _load_synthetic, "write the small corpus that the demo learns from"
    ),
}


def prepared(program: str, arguments: Sequence[str] | None = None) -> Callable[[], int]:
    """What runs the command; --help, --version and wrong options are answered here. `arguments`: None: sys.argv."""

    def check() -> None:
        COMMANDS[program].parser().parse_args(arguments)

    if signals.reports() and (code := run(program, check, several=True)):
        return lambda: code
    return partial(COMMANDS[program].load(), arguments)


def prepared_of_any(arguments: Sequence[str]) -> Callable[[], int]:
    """The same for `nmt COMMAND …`; what says which commands there are, where that is none."""
    name, *options = arguments or [""]
    if f"nmt-{name}" in COMMANDS:
        return prepared(f"nmt-{name}", options)
    return partial(run, "nmt", partial(_about, name))


def _about(name: str) -> None:
    """Answer `nmt NAME` where NAME is not a command."""
    commands = {program.removeprefix("nmt-"): command.summary for program, command in COMMANDS.items()}
    if name in ("-h", "--help"):
        lines = "".join(f"  {command:12}{summary}\n" for command, summary in commands.items())
        say(
            "usage: nmt COMMAND [OPTIONS]\n\nNeural machine translation with recurrent networks and attention.\n\n"
            f"{lines}\n"
            "nmt COMMAND --help lists the options of a command. nmt COMMAND is the same as nmt-COMMAND.\n"
        )
    elif name == "--version":
        say(f"nmt {__version__}\n")
    else:
        similar = nearest(name, list(commands))
        hint = f"did you mean {similar}?" if similar else f"choose one of {', '.join(commands)}, or --help"
        raise UserError(f"{name}: unknown command; {hint}" if name else f"a command is missing; {hint}")
