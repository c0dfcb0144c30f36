"""One mistake in a configuration, and how names and values read in a message. It knows no files."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from nmt.config.yaml_text import KeyPath
from nmt.errors import nearest, shortened
from nmt.other_names import VALUES, ours

_LONGEST_TEXT = 60  # characters of a value
_KEYS_SHOWN = 10  # of a section where something else was expected


class Problem(NamedTuple):
    """One mistake at the key `path`; the message says what was given and what is allowed."""

    path: KeyPath
    message: str


def problem_at(key: str, message: str) -> Problem:
    """The problem at a key such as "data.train.0"."""
    return Problem(tuple(int(part) if part.isdecimal() else part for part in key.split(".")), message)


def unknown_choice(value: object, choices: Sequence[str]) -> str:
    """The message about a value that is not among the choices."""
    return joined(f"given {in_words(value)}", nearest_hint(value, choices), f"allowed: {', '.join(choices)}")


def nearest_hint(value: object, names: Sequence[str]) -> str:
    """The clause that suggests what the value is called here, or the most similar name; empty when none is similar."""
    name = ours(value, VALUES, names) or nearest(value, names) if isinstance(value, str) else None
    return f"nearest: {name}" if name else ""


def in_words(value: Any) -> str:
    """A value as messages show it: spelled as in YAML, shortened, text in quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{shortened(value, _LONGEST_TEXT)}'"
    if isinstance(value, dict):
        keys = [str(key) for key in islice(value, _KEYS_SHOWN)]
        more = ["..."] if len(value) > _KEYS_SHOWN else []
        return f"a section with the keys {', '.join(keys + more)}" if value else "an empty section"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    return str(value)


def joined(*clauses: str) -> str:
    """The clauses, separated by semicolons; empty ones are dropped."""
    return "; ".join(filter(None, clauses))
