"""Checks the numbers of a saved state, which a stranger may have written: anything that no training writes is refused.

It knows the JSON object of a state, neither tensors nor files.
"""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from nmt.training.gradient_norms import is_counts
from nmt.training.progress import Progress, Window

_ALWAYS = {"epoch", "position", "update", "best", "last", "finished", "window"}  # in states of every version
_MOST_THREADS = 1 << 12
_LARGEST = 1 << 53


def checked_numbers(numbers: Any) -> dict[str, Any]:
    """The same numbers. Raises ValueError with the key of one that no training writes."""
    _expect(isinstance(numbers, dict), "its numbers")
    for key in ("progress", "schedule", "surroundings"):
        _expect(isinstance(numbers.get(key), dict), key)
    _expect(isinstance(numbers.get("data"), str), "data")
    _expect(_is_count(numbers.get("recorded")), "recorded")
    _expect(isinstance(numbers.get("recorded_digest", ""), str), "recorded_digest")
    for key, value in numbers["schedule"].items():
        _expect(value is None or _is_number(value), f"schedule.{key}")
    surroundings = numbers["surroundings"]
    for key, value in surroundings.items():
        _expect(isinstance(value, str | int), f"surroundings.{key}")
    _expect(_is_count(surroundings.get("threads"), 1, _MOST_THREADS), "surroundings.threads")
    _expect(_is_count(surroundings.get("processes", 1), 1), "surroundings.processes")
    progress, known = numbers["progress"], {field.name: field.default for field in fields(Progress)}
    odd = (progress.keys() - known) | (_ALWAYS - progress.keys())
    _expect(not odd, *(f"progress.{key}" for key in sorted(odd)))
    for key, value in progress.items():
        fits = _FITS.get(key, _is_number)(value) or (value is None and known[key] is None)
        _expect(fits, f"progress.{key}")
    return numbers


def _expect(fits: bool, *keys: str) -> None:
    if not fits:
        raise ValueError(f"{', '.join(key[:100] for key in keys[:5])}: missing, or not what a training writes")


def _is_window(sums: dict[str, Any]) -> bool:
    """Whether these are sums over updates from which means can be computed."""
    optional = {"guided", "risk"}  # not in states of every version; rounding may leave them a little below 0
    for number in (sums.get(key) for key in optional):
        if number is not None and not (_is_number(number) and math.isfinite(number)):
            return False
    if sums.get("risk") is not None and sums.get("sentences") == 0:
        return False
    sums = {"sentences": 0, **{key: value for key, value in sums.items() if key not in optional}}  # once not counted
    if sums.keys() != {field.name for field in fields(Window)} - optional:
        return False
    if not all(_is_number(number) and 0 <= number < math.inf for number in sums.values()):
        return False
    return not sums["updates"] or min(sums["tokens"], sums["positions"], sums["seconds"]) > 0


def _is_scored(entry: Any) -> bool:
    if not (isinstance(entry, list) and 2 <= len(entry) <= 3):  # once there was no loss
        return False
    return _is_number(entry[0]) and _is_count(entry[1]) and all(map(_is_number, entry[2:]))


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < _LARGEST)


def _is_count(value: Any, least: int = 0, most: int = _LARGEST) -> bool:
    return type(value) is int and least <= value <= most


_FITS: dict[str, Callable[[Any], bool]] = {  # of the keys of progress that are no simple numbers
    "epoch": _is_count,
    "position": _is_count,
    "update": _is_count,
    "finished": lambda value: isinstance(value, str),
    "best": lambda value: isinstance(value, list) and all(map(_is_scored, value)),
    "last": lambda value: isinstance(value, list) and all(map(_is_count, value)),
    "gradient_norms": is_counts,
    "window": lambda value: isinstance(value, dict) and _is_window(value),
}
