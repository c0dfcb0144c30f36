"""A parser that knows --version, shows the options that most people need, and reports all wrong options at once; and
the command that has it."""

import argparse
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

from nmt import __version__, signals
from nmt.cli.common import describe, run
from nmt.cli.outputs import STANDARD, write_text
from nmt.errors import ToldElsewhere, UserError, nearest
from nmt.other_names import OPTIONS, OTHER_OPTIONS, our_keys, ours

_PLACES = ("FILE", "PATH", "DIR", "FOLDER", "MODEL", "RUN")  # the metavars of values that name a file or a folder


class Parser(argparse.ArgumentParser):
    """The options of the command `program`; none of them may be shortened.

    With the names of the `usual` options, --help shows these, and --help-all all of them. Of several values the last
    one counts, so that what follows a script's options changes them. But a second file or folder is refused, for the
    first would be ignored, and so is an empty one, as of a variable that is not set: it would be the current folder.
    """

    def __init__(self, program: str, *, description: str, epilog: str, usual: Collection[str] = ()) -> None:
        super().__init__(program, description=description, epilog=epilog, allow_abbrev=False, add_help=False)
        self.formatter_class = _Formatter
        self._usual = {*usual, "help", "help_all", "version"} if usual else None
        self._places: dict[argparse.Action, list[list[str]]] = {}  # the files and folders of options, time by time
        self._wrong: list[str] = []  # what is wrong with values
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        if usual:
            self.add_argument(
                "--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help="show all options and exit"
            )
        self.add_argument(
            "--version", action="version", version=f"{program} {__version__}", help="print the version and exit"
        )

    def read(self, args: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
        """The options in `args`, by default those of the process, and what is wrong with their values: one that cannot
        be read is the default. Ends the process if something is wrong with names or places."""
        self._places.clear()
        self._wrong = []
        options, rest = self.parse_known_args(args)
        if problems := [*self._misplaced(), *self._unknown(rest)]:
            self._refuse(*self._wrong, *problems)
        return options, self._wrong

    def parse_args(  # type: ignore[override]  # argparse's overloads are about the type of `namespace`
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """What `read` gives, for who has no problems to add: ends the process if anything is wrong."""
        options, problems = self.read(args)
        if problems:
            self._refuse(*problems)
        return options

    def format_help(self) -> str:
        """The text of --help."""
        if self._usual is None:
            return super().format_help()
        hidden = [action for action in self._actions if action.dest not in self._usual]
        texts = [action.help for action in hidden]
        for action in hidden:
            action.help = argparse.SUPPRESS
        try:
            return f"{super().format_help()}\n{self.prog} --help-all shows {len(hidden)} more options.\n"
        finally:
            for action, text in zip(hidden, texts, strict=True):
                action.help = text

    def error(self, message: str) -> NoReturn:
        """End the process with `message`, argparse's, and without the list of all options."""
        self._refuse(message)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """The value of an option, which argparse asks for whenever the option is given."""
        if action.type is Path or str(action.metavar).endswith(_PLACES):
            self._places.setdefault(action, []).append(arg_strings)
        values = super()._get_values(action, arg_strings)
        if self._wrong and action.default is argparse.SUPPRESS:  # stores nothing: prints, and ends the process
            self._refuse(*self._wrong)
        return values

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """The value in a text by the option's `type`; wrong ones are collected."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self._wrong.append(f"{action.option_strings[-1]} {shlex.quote(arg_string)}: {error.message}")
            return action.default

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Collect a value that is none of the option's `choices`."""
        if value is not None and action.choices is not None and value not in action.choices:
            name, choices = action.option_strings[-1], ", ".join(action.choices)
            self._wrong.append(f"{name} {shlex.quote(str(value))}: unknown; choose one of {choices}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a help text or the version as all else on standard output; argparse would be silent if that fails."""
        if file is not None and file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)

    def _refuse(self, *messages: str) -> NoReturn:
        if not signals.reports():
            raise ToldElsewhere(*messages)
        self.exit(2, f"{describe(self.prog, UserError(*messages))}\n")

    def _misplaced(self) -> Iterator[str]:
        """What is wrong with options that are files or folders, a line each."""
        for action, places in self._places.items():
            name = action.option_strings[-1]
            if any("" in paths for paths in places):
                yield f"{name}: the path is empty"
            if len(places) > 1 and isinstance(action, argparse._StoreAction):
                several = f"give all of them after one {name}" if action.nargs == "+" else "it takes one value"
                yield f"{name}: is given {len(places)} times; {several}"

    def _unknown(self, rest: Sequence[str]) -> Iterator[str]:
        """What is wrong with the arguments that no option took, a line each."""
        after_unknown = False  # where a word is what an unknown option was to get
        for argument, following in zip_longest(rest, rest[1:], fillvalue="-"):
            name, equals, value = argument.partition("=")
            if name.startswith("-") and name != "-":
                if not equals:
                    value = "VALUE" if following.startswith("-") else following
                yield f"{name}: unknown; {self._instead(name, value)}"
            elif not after_unknown:
                is_config = "--config" in self._option_string_actions and argument.endswith((".yaml", ".yml"))
                hint = "give a value after its option's name"
                if is_config:
                    hint = f"write --config {shlex.quote(argument)}"
                yield f"{argument}: belongs to no option; {hint}"
            after_unknown = name.startswith("-")

    def _instead(self, name: str, value: str) -> str:
        """What to write instead of the unknown option `name`, which was given `value`."""
        options = [option for option in self._option_string_actions if option.startswith("--")]
        keys = our_keys(name)
        if "--set" in options:
            similar = ours(name, OPTIONS, OPTIONS)
            if similar is None and keys:
                settings = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key in keys)
                return f"set it in the configuration, or with {settings}"
        else:
            names = [option_name(key.rpartition(".")[2]) for key in keys]
            similar = ours(name, OTHER_OPTIONS, options) or next(
                (option for option in names if option in options), None
            )
        if similar is None and (word := nearest(name.lstrip("-"), [option[2:] for option in options])):
            similar = f"--{word}"  # compared without what all options begin with, which would make them similar
        help_option = "--help" if self._usual is None else "--help-all"
        return f"did you mean {similar}?" if similar else f"{self.prog} {help_option} lists all options"


class _Formatter(argparse.HelpFormatter):
    """Help in which a path, unless it has another name, is called FILE."""

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        return "FILE" if action.type is Path else super()._get_default_metavar_for_optional(action)


class _HelpAll(argparse.Action):
    """Print all options and exit, as --help does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        say(argparse.ArgumentParser.format_help(parser))
        parser.exit()


def command(
    program: str, parser: Callable[[], Parser], *, several: bool = False
) -> Callable[[Callable[[argparse.Namespace, list[str]], int | None]], Callable[..., int]]:
    """Make a function the `main` of a command, which reads the options from its arguments, by default those of the
    process, and returns the exit code of `run`. The function gets them, and what is wrong with their values: it refuses
    these problems together with those that it finds."""

    def made(body: Callable[[argparse.Namespace, list[str]], int | None]) -> Callable[..., int]:
        @wraps(body)
        def main(arguments: Sequence[str] | None = None) -> int:
            return run(program, lambda: body(*parser().read(arguments)), several=several)

        return main

    return made


def say(text: str) -> None:
    """Write to standard output as all that goes there is written, in UTF-8; nothing where it is closed, like `print`,
    or where another process says it.

    A path in the text may have bytes that are no UTF-8. Raises UserError if the disk is full and the like.
    """
    if sys.stdout is not None and signals.reports():
        write_text(STANDARD, text.encode("utf-8", "backslashreplace").decode("utf-8"))


def option_name(name: str) -> str:
    """The option whose value argparse stores as `name`."""
    return f"--{name.replace('_', '-')}"
