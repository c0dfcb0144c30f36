"""A parser that knows --version, and that reports all wrong options at once, with the nearest names."""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NoReturn

from nmt import __version__
from nmt.cli.common import describe
from nmt.cli.outputs import STANDARD, write_text
from nmt.errors import UserError, nearest
from nmt.other_names import are_threads, is_limit, other_option, our_keys, our_option

_FEW = 3  # options that have one beginning in common
_PLACES = ("FILE", "PATH", "DIR", "FOLDER", "MODEL", "RUN")  # how values are called that name a file or a folder


class Parser(argparse.ArgumentParser):
    """The options of the command `program`; none of them may be shortened.

    Of several values the last one counts, as usual, so that what follows a script's options changes them. But a second
    file or folder is refused, for the first would be ignored, and so is an empty one, as of a variable that is not set:
    it would be the current folder.
    """

    def __init__(self, program: str, *, description: str, epilog: str) -> None:
        super().__init__(prog=program, allow_abbrev=False, description=description, epilog=epilog)
        self._places: dict[argparse.Action, list[list[str]]] = {}  # the files and folders of options, time by time
        self.add_argument(
            "--version", action="version", version=f"{program} {__version__}", help="print the version and exit"
        )

    def parse_args(  # type: ignore[override]  # argparse's overloads are about the type of `namespace`
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """The options in `args`, by default those of the process; ends it if something is wrong with their names,
        or with their files and folders."""
        self._places.clear()
        options, rest = self.parse_known_args(args, namespace)
        if problems := [*self._misplaced(), *self._unknown(rest)]:
            self._refuse(*problems)
        return options

    def error(self, message: str) -> NoReturn:
        """End the process with `message`, argparse's, and without the list of all options."""
        self._refuse(message)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """The value of an option, which argparse asks for whenever the option is given."""
        if str(action.metavar).endswith(_PLACES):
            self._places.setdefault(action, []).append(arg_strings)
        return super()._get_values(action, arg_strings)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a help text or the version as all else on standard output; argparse would be silent if that fails."""
        if file is not None and file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)

    def _refuse(self, *messages: str) -> NoReturn:
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
                yield f"{argument}: belongs to no option; {self._place_of(argument)}"
            after_unknown = name.startswith("-")

    def _instead(self, name: str, value: str) -> str:
        """What to write instead of the unknown option `name`, which was given `value`."""
        options = [option for option in self._option_string_actions if option.startswith("--")]
        trains = "--set" in options
        if option := our_option(name) if trains else other_option(name, options):
            return f"did you mean {option}?"
        if are_threads(name) and "--device" in options:
            number = value if value.isdecimal() else "N"
            return f"the environment sets the number of threads: OMP_NUM_THREADS={number} {self.prog} …"
        if is_limit(name) and trains:
            extra = shlex.quote(f"decoding.max_length_extra={value}")
            return f"did you mean --set decoding.max_length_ratio=0 --set {extra}?"
        if is_limit(name) and "--max-length-extra" in options:
            return f"did you mean --max-length-ratio 0 --max-length-extra {shlex.quote(value)}?"
        keys = our_keys(name)
        if keys and trains:
            settings = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key in keys)
            return f"set it in the configuration, or with {settings}"
        for key in keys:
            if (option := f"--{key.rpartition('.')[2].replace('_', '-')}") in options:
                return f"did you mean {option}?"
        word = name.lstrip("-")  # without what all options begin with, which would make them similar
        if len(word) < 2:
            return f"{self.prog} --help lists all options"
        if 0 < len(longer := [option for option in options if option.startswith(f"--{word}")]) <= _FEW:
            return f"did you mean {' or '.join(longer)}?"
        similar = nearest(word, [option[2:] for option in options])
        return f"did you mean --{similar}?" if similar else f"{self.prog} --help lists all options"

    def _place_of(self, word: str) -> str:
        """Where a word was to stand that is the value of no option."""
        is_file = os.path.isfile(word)  # noqa: PTH113 - raises nothing where a path cannot be asked about
        if "--config" in self._option_string_actions and (is_file or word.endswith((".yaml", ".yml"))):
            return f"write --config {shlex.quote(word)}"
        return "give a value after its option's name"


def say(text: str) -> None:
    """Write to standard output as all that goes there is written, in UTF-8; nothing where it is closed, like `print`.

    A path in the text may have bytes that are no UTF-8. Raises UserError if the disk is full and the like.
    """
    if sys.stdout is not None:
        write_text(STANDARD, text.encode("utf-8", "backslashreplace").decode("utf-8"))


def option_name(name: str) -> str:
    """The option whose value argparse stores as `name`."""
    return f"--{name.replace('_', '-')}"


def option_names(name: str) -> list[str]:
    """The names of the option for a key; --minimum-length… is also called --min-length…."""
    option = option_name(name)
    return [option.replace("minimum", "min"), option] if "minimum" in option else [option]
