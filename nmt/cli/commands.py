"""The commands. `nmt COMMAND …` is `nmt-COMMAND …`.

A further command is a module with `parser` and `main`, a line here, and, for an executable of its own, a script in
pyproject.toml. Only the module of the command that runs is imported, and it imports nothing that takes long before it
has read the options: `--help`, `--version`, and a wrong option are answered at once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import NamedTuple

from nmt import __version__
from nmt.cli.common import installed, run
from nmt.cli.parser import Parser, say
from nmt.errors import UserError, nearest


class Command(NamedTuple):
    """A command: the name of its module in nmt.cli, and a summary."""

    module: str
    summary: str

    def parser(self) -> Parser:
        """Its options."""
        parser: Parser = import_module(f"nmt.cli.{self.module}").parser()
        return parser

    def main(self, arguments: Sequence[str]) -> int:
        """Run it; returns the exit code."""
        code: int = import_module(f"nmt.cli.{self.module}").main(arguments)
        return code


COMMANDS = {
    "nmt-init": Command("init", "make training text and a configuration of your files"),
    "nmt-train": Command("train", "train a model from one configuration file"),
    "nmt-translate": Command("translate", "translate text, line by line"),
    "nmt-eval": Command("evaluate", "score translations, and compare systems"),
    "nmt-align": Command("align", "learn, combine, and score word alignments"),
    "nmt-score": Command("score", "give the probability of translations"),
    "nmt-serve": Command("serve", "answer requests over HTTP, and show a page"),
    "nmt-shortlist": Command("shortlist", "learn which words may translate which, to be faster"),
    "nmt-info": Command("info", "tell what a model is, and what of a text it lacks"),
    "nmt-export": Command("export", "write a model for use without PyTorch"),
    "nmt-average": Command("average", "average the weights of several models"),
    "nmt-synthetic": Command("synthetic", "write the small corpus that the demo learns from"),
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
        here = " and ".join(installed()) or "not installed"
        say(f"nmt {__version__} ({here}{'; uninstall both, and install one' if ' and ' in here else ''})\n")
    else:
        similar = nearest(name, list(commands))
        hint = f"did you mean {similar}?" if similar else f"choose one of {', '.join(commands)}, or --help"
        raise UserError(f"{name}: unknown command; {hint}" if name else f"a command is missing; {hint}")
