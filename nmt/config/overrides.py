"""`--set KEY=VALUE`: one key of the configuration from the command line, under the same rules as in the file.

VALUE is YAML. Items of lists are named by their index: data.train.0.source. Relative paths are relative to the current
folder, as everywhere on the command line.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from nmt.config.allowed import dotted
from nmt.config.problems import in_words
from nmt.config.schema import CommandLineText
from nmt.config.yaml_text import LONGEST_SHOWN, KeyPath, YamlError, read_yaml, replaced, value_at
from nmt.errors import shortened

_DEEPEST = 20  # names in a key; the schema is less deep


class Override(NamedTuple):
    """An override: the option as it was typed, and the key that it sets."""

    text: str
    path: KeyPath = ()

    def __str__(self) -> str:
        return f"--set {shortened(self.text, LONGEST_SHOWN)}"


def apply_overrides(tree: Any, texts: Iterable[str], problems: list[str]) -> tuple[Any, list[Override]]:
    """Apply the overrides one after the other; of two that set the same key, the later one wins.

    Returns the values and the overrides; what could not be applied is appended to `problems`, such as a section that
    would replace a key of it that was set before.
    """
    overrides: list[Override] = []
    for text in texts:
        try:
            path, value = _parsed(text, tree)
            for earlier in overrides:
                if len(earlier.path) > len(path) and earlier.path[: len(path)] == path:
                    raise ValueError(f"would undo {earlier}; give it before that")
        except (ValueError, YamlError) as error:
            problems.append(f"{Override(text)}: {error}")
        else:
            tree = replaced(tree, path, _from_command_line(value))
            overrides.append(Override(text, path))
    return tree, overrides


def _parsed(text: str, tree: Any) -> tuple[KeyPath, Any]:
    """The key and the value of an override. Raises ValueError and YamlError that say why it cannot be applied."""
    key, equals, written = text.partition("=")
    parts = key.strip().split(".")
    if not (equals and all(parts)):
        raise ValueError("expected KEY=VALUE, such as training.batch_size=64")
    if len(parts) > _DEEPEST:
        raise ValueError(f"the key has {len(parts)} names; no key has more than {_DEEPEST}")
    path: KeyPath = ()
    for part in parts:
        path = (*path, _step(part, path, value_at(tree, path)))
    return path, read_yaml(written).value


def _step(part: str, path: KeyPath, value: Any) -> str | int:
    """The key or index that `part` stands for in the `value` at `path`. Raises ValueError where there is none."""
    if value is not None and not isinstance(value, dict | list):
        raise ValueError(f"{dotted(path)} is {in_words(value)} and has no keys below it")
    if not part.isdecimal() and not isinstance(value, list):
        return part
    length = len(value) if isinstance(value, list) else int(bool(value))  # one section may stand for a list of it
    if part not in map(str, range(length + 1)):
        raise ValueError(
            f"{dotted(path)} is a list, so an index from 0 to {length} follows ({length} adds an item); given "
            f"{in_words(part)}"
        )
    return int(part)


def _from_command_line(value: Any) -> Any:
    """The value with its texts marked as such: relative paths among them are relative to the current folder."""
    if isinstance(value, dict):
        return {key: _from_command_line(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_command_line(item) for item in value]
    return CommandLineText(value) if isinstance(value, str) else value
