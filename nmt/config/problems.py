"""One mistake in a configuration and how it is put into words. It knows neither files nor the schema."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from nmt.config.allowed import nearest
from nmt.config.yaml_text import KeyPath

_KEYS_SHOWN = 10  # of a section that stands where something else was expected


class Problem(NamedTuple):
    """One mistake at the key `path`; the message says what was given and what is allowed.

    `reads` names the other keys that a check looked at: when one of them is reported already, the problem may be only
    its consequence and is left out.
    """

    path: KeyPath
    message: str
    reads: tuple[KeyPath, ...] = ()


def unknown_choice(path: KeyPath, given: object, choices: Sequence[str]) -> Problem:
    """The problem of a value that is none of the choices."""
    return Problem(path, joined(f"given {in_words(given)}", meant(given, choices), f"allowed: {', '.join(choices)}"))


def meant(given: object, names: Sequence[str]) -> str:
    """The clause about the most similar name; empty when none is similar."""
    name = nearest(given, names) if isinstance(given, str) else None
    return f"nearest: {name}" if name else ""


def in_words(value: Any) -> str:
    """A value as it is shown in a message: YAML's spelling, shortened, text in quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 60 else f"'{value[:57]}...'"
    if isinstance(value, dict):
        keys = [str(key) for key in islice(value, _KEYS_SHOWN)]
        more = ["..."] if len(value) > _KEYS_SHOWN else []
        return f"a section with the keys {', '.join(keys + more)}" if value else "an empty section"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    return str(value)


def joined(*clauses: str) -> str:
    """The clauses that are not empty, with semicolons between."""
    return "; ".join(filter(None, clauses))
