"""The one exception that means "the user can fix this": printed as messages, never as a traceback, exit code 2.

All mistakes are reported at once: checks append their problems to a plain list, `collected` adds what a function
raises, and `refuse` raises them all together.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from unicodedata import category

LEFT_OUT = ("jinja2", "onnx", "sacrebleu", "tensorboard", "torch")  # by nmt-runtime, of what nmt-toolkit needs
_MOST_LINES = 20  # in messages; a file of another kind has a mistake in every line
_MOST_NAMES = 1_000  # of a folder among which the nearest is looked for


class UserError(Exception):
    """One or more mistakes of the user, each a complete message.

    A message says what was given, where (file, line, key), what is allowed and, if there is one, the nearest match.
    """

    def __init__(self, *messages: str) -> None:
        if not messages:
            raise ValueError("a UserError needs at least one message")
        super().__init__("\n".join(messages))
        self.messages: Sequence[str] = messages


class InputWarning(UserWarning):
    """What a user gives may not be meant, though it is no mistake. A command prints it; options are named `as_here`."""


class ToldElsewhere(UserError):
    """A mistake that another process of the same command reports."""


class DamagedFile(UserError):
    """A file is not what was written: cut short, overwritten, or with a flipped bit."""


def environment_number(variable: str, default: str = "") -> int:
    """The whole number that a variable of the environment has. Raises UserError if it is none."""
    try:
        return int(os.environ.get(variable) or default)
    except ValueError as error:
        raise UserError(f"{variable}: {error}") from None


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: "1 line", "2 lines", "1,000 lines"; `plural` is that of a noun that takes more than s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shortened(text: str, most: int) -> str:
    """A text for a message: its first `most` characters, with three dots where there are more."""
    return text if len(text) <= most else f"{text[:most]}..."


def shown(name: str) -> str:
    """A name as a terminal or a picture can show it, in one line."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def visible(character: str) -> str:
    """A character, or its number where it cannot be read by itself, as white space and marks on letters cannot."""
    is_read = character.isprintable() and not category(character).startswith(("M", "Z"))
    return character if is_read else f"U+{ord(character):04X}"


def first_of(texts: Sequence[str], most: int, *, before: str = "and ", after: str = "") -> list[str]:
    """The first texts of many, `most` of them, and then how many more there are: with `before`, "3 more", `after`."""
    others = len(texts) - most
    return [*texts[:most], *([f"{before}{others:,} more{after}"] if others > 0 else [])]


def nearest(value: object, names: Sequence[str]) -> str | None:
    """The most similar of `names`, if one is similar enough to be meant."""
    lower = {name.lower(): name for name in names}
    matches = get_close_matches(str(value).strip().lower(), list(lower), n=1, cutoff=0.6)
    return lower[matches[0]] if matches else None


def nothing_at(path: Path, what: str = "no such file", *, endings: tuple[str, ...] = ("",)) -> str | None:
    """What to say about a path where nothing is, with the nearest name there; None if something is there.

    `endings`: those that the name of such a file has.
    """
    try:
        path.stat()
        return None
    except FileNotFoundError:
        missing = path
    except (OSError, ValueError):
        return None  # opening it will give the reason
    while not missing.parent.is_dir():
        missing = missing.parent
    try:
        with os.scandir(missing.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES) if entry.name != missing.name]
        if missing == path:
            names = [name for name in names if name.endswith(endings)]
    except OSError:  # a folder that may not be listed
        names = []
    name = nearest(missing.name, names)
    folder = "" if missing == path else f"; there is no folder {missing}"
    return f"{path}: {what}{folder}" + (f"; nearest: {missing.with_name(name)}" if name else "")


@contextmanager
def needing_toolkit() -> Iterator[None]:
    """Turn the import of what nmt-runtime leaves out, in the block or the decorated function, into a UserError."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in LEFT_OUT:
            raise
        raise UserError(
            f"{error.name} is not installed, and this needs it: install nmt-toolkit in place of nmt-runtime; or, to "
            "translate, give an export, which nmt-export writes where nmt-toolkit is installed"
        ) from error


@contextmanager
def collected(problems: list[str], *, of: str = "") -> Iterator[None]:
    """Append the messages of a UserError or OSError that ends the block to `problems`, and go on after the block.

    `of`: what the messages of a UserError get before them, as an option whose file they are about.
    """
    try:
        yield
    except UserError as error:
        problems += [f"{of}: {message}" for message in error.messages] if of else error.messages
    except OSError as error:  # not even its existence can be checked: a name too long, a folder closed to us
        reason = error.strerror or str(error)
        problems.append(f"{error.filename}: {reason}" if error.filename else reason)


def refuse(problems: Sequence[str]) -> None:
    """Raise UserError with all the problems, each once, if there are any."""
    if problems:
        raise UserError(*dict.fromkeys(problems))


def refuse_lines(name: object, problems: Sequence[str]) -> None:
    """Raise UserError with the problems of the lines called `name`, or the first of many, if there are any."""
    refuse(first_of(problems, _MOST_LINES, before=f"{name}: ", after=" lines are malformed"))
