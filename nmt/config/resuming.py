"""How two configurations differ, and whether a run that began with one goes on with the other.

A run goes on if only paths differ, or if it is to be longer: nothing that it has done depends on where it ends, unless
its schedule does.
"""

from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.allowed import dotted
from nmt.config.problems import in_words
from nmt.config.schema import Config, LinearSchedule
from nmt.config.yaml_text import KeyPath

_STOPPING = ("training", "early_stopping")
_LENGTHS = {("training", "max_epochs"), ("training", "max_updates"), (*_STOPPING, "patience"), (*_STOPPING, "share")}


class Continuation(NamedTuple):
    """How a run goes on with another configuration: which keys differ, and why it cannot if `obstacles` has any."""

    moved: list[str]  # keys of files at other paths
    lengthened: list[str]  # what makes the run longer, a line per key
    obstacles: list[str]  # what must not differ, a line per key


def continuation(old: Config, new: Config) -> Continuation:
    """How a run of `old` goes on with `new`. A cache may be anywhere, for what it lacks is made again."""
    before, after = (leaves(config.model_dump()) for config in (old, new))
    result = Continuation([], [], [])
    for path, line in differences(old, new).items():
        there, here = before.get(path), after.get(path)
        if path == ("data", "cache_folder"):
            continue
        if isinstance(there, Path) and isinstance(here, Path):
            result.moved.append(dotted(path))
        elif path not in _LENGTHS and (path[:2] != _STOPPING or new.training.early_stopping is not None):
            result.obstacles.append(line)
        elif isinstance(old.training.schedule, LinearSchedule) and path[:2] != _STOPPING:
            result.obstacles.append(f"{line}; with training.schedule: linear, every rate depends on it")
        elif here is None or (there is not None and here > there):
            result.lengthened.append(line)
        else:
            result.obstacles.append(f"{line}; a run can be lengthened, but not shortened")
    return result


def with_length(old: Config, new: Config) -> Config:
    """The configuration `old` with the length of training of `new`."""
    lengths = {key: getattr(new.training, key) for key in ("max_epochs", "max_updates", "early_stopping")}
    return old.model_copy(update={"training": old.training.model_copy(update=lengths)})


def differences(old: Config, new: Config, *, there: str = "there") -> dict[KeyPath, str]:
    """What differs, a line for each key: "training.batch_size: 80 there, 64 here"; `there` says where `old` is."""
    before, after = (leaves(config.model_dump(mode="json")) for config in (old, new))
    absent = object()
    return {
        path: f"{dotted(path)}: {_value_in(before, path)} {there}, {_value_in(after, path)} here"
        for path in {**before, **after}
        if before.get(path, absent) != after.get(path, absent)
    }


def leaves(tree: Any, path: KeyPath = ()) -> dict[KeyPath, Any]:
    """Every value that is no section or list, or an empty one, by its path."""
    if not isinstance(tree, dict | list) or not tree:
        return {path: tree}
    found: dict[KeyPath, Any] = {}
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        found |= leaves(value, (*path, key))
    return found


def _value_in(values: dict[KeyPath, Any], path: KeyPath) -> str:
    if path in values:
        return in_words(values[path])
    return "given" if any(other[: len(path)] == path for other in values) else "absent"
