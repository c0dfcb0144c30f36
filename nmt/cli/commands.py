"""The commands. `nmt COMMAND …` is `nmt-COMMAND …`.

A further command is a module with PROGRAM, `parser`, and `main`, a line here, and, for an executable of its own, a
script in pyproject.toml. The modules import nothing that takes long before their command has read its options:
`--help`, `--version`, and a wrong option are answered at once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from nmt import __version__
from nmt.cli import align, average, curves, evaluate, info, init, score, serve, shortlist, synthetic, train, translate
from nmt.cli.common import run
from nmt.cli.parser import Parser, say
from nmt.errors import UserError, nearest


class Command(NamedTuple):
    """A command: its options, the function that runs it with arguments (None: those of the process), and a summary."""

    parser: Callable[[], Parser]
    main: Callable[[Sequence[str] | None], int]
    summary: str


COMMANDS = {
    init.PROGRAM: Command(init.parser, init.main, "make training text and a configuration of your files"),
    train.PROGRAM: Command(train.parser, train.main, "train a model from one configuration file"),
    translate.PROGRAM: Command(translate.parser, translate.main, "translate text, line by line"),
    evaluate.PROGRAM: Command(evaluate.parser, evaluate.main, "score translations, and compare systems"),
    align.PROGRAM: Command(align.parser, align.main, "score word alignments, or combine two directions"),
    curves.PROGRAM: Command(curves.parser, curves.main, "draw the learning curves of trainings"),
    score.PROGRAM: Command(score.parser, score.main, "give the probability of translations"),
    serve.PROGRAM: Command(serve.parser, serve.main, "answer requests over HTTP, and show a page"),
    shortlist.PROGRAM: Command(shortlist.parser, shortlist.main, "learn which words may translate which, to be faster"),
    info.PROGRAM: Command(info.parser, info.main, "tell what a model is, and what of a text it lacks"),
    average.PROGRAM: Command(average.parser, average.main, "average the weights of several models"),
    synthetic.PROGRAM: Command(synthetic.parser, synthetic.main, "write the small corpus that the demo learns from"),
}


def loaded(program: str, arguments: Sequence[str]) -> Callable[[], int]:
    """What runs the `program` with the arguments; if it is none of the commands, the first argument names one."""
    if program in COMMANDS:
        return partial(COMMANDS[program].main, arguments)
    name, *options = arguments or [""]
    if f"nmt-{name}" in COMMANDS:
        return partial(COMMANDS[f"nmt-{name}"].main, options)
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
