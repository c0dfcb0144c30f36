"""`--set KEY=VALUE`: one key of the configuration from the command line, under the same rules as in the file.

VALUE is YAML. Items of lists are named by their index: data.train.0.source. Relative paths are relative to the current
folder, as everywhere on the command line.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.allowed import Schema, allowed, child, dotted, keys, resolved, variants
from nmt.config.key_checks import replaced, schema_at, value_at
from nmt.config.problems import in_words
from nmt.config.yaml_text import KeyPath, YamlError, read_yaml
from nmt.errors import UserError

_DEEPEST = 20  # names in a key; the schema is less deep
_LONGEST_INDEX = 9  # digits
_LONGEST_SHOWN = 200  # characters of an override in a message


class Override(NamedTuple):
    """An override that was applied: the option as it was typed, the key that it sets, and to which value."""

    text: str
    path: KeyPath
    value: Any

    def __str__(self) -> str:
        return _as_typed(self.text)


def _as_typed(text: str) -> str:
    return f"--set {text}" if len(text) <= _LONGEST_SHOWN else f"--set {text[:_LONGEST_SHOWN]}..."


def apply_overrides(tree: Any, texts: Iterable[str]) -> tuple[Any, list[Override], list[str]]:
    """Apply the overrides one after the other; a later one wins.

    Returns the values, the overrides, and messages about those that could not be applied.
    """
    overrides: list[Override] = []
    messages: list[str] = []
    for text in texts:
        try:
            path, value = _parsed(text, tree)
        except UserError as error:
            messages.append(f"{_as_typed(text)}: {error}")
            continue
        schema = schema_at(path, replaced(tree, path, value))  # with the value, which may name a variant
        tree = replaced(tree, path, _absolute(value, schema))
        overrides.append(Override(text, path, value))
    return tree, overrides, messages


def replacement(path: KeyPath, file: Any, overrides: Iterable[Override]) -> str:
    """The override that replaces a section as a whole, if one of its `name` leaves in it a key of the file, at `path`,
    that goes with the former name only; otherwise nothing. `file` is what the file has."""
    around, key = path[:-1], path[-1:]
    within = [override for override in overrides if override.path[: len(around)] == around]
    if not key or len(within) != 1 or within[0].path != (*around, "name"):
        return ""
    name, section, schema = within[0].value, value_at(file, around), schema_at(around, file)
    if not (isinstance(name, str) and name in variants(schema) and isinstance(section, dict) and key[0] in section):
        return ""
    if key[0] not in keys(schema, section) or key[0] in keys(schema, {**section, "name": name}):
        return ""
    return f"--set '{dotted(around)}={{name: {name}}}' replaces all that the file has there"


def _parsed(text: str, tree: Any) -> tuple[KeyPath, Any]:
    """The key and the value of an override. Raises UserError that says why it cannot be applied."""
    key, equals, written = text.partition("=")
    if not equals:
        raise UserError('expected KEY=VALUE, such as training.batch_size=64, but there is no "="')
    parts = key.strip().split(".")
    if not all(parts):
        raise UserError("expected KEY=VALUE, with the names of the sections before the key: training.batch_size=64")
    if len(parts) > _DEEPEST:
        raise UserError(f"the key has {len(parts)} names; no key of the configuration has more than {_DEEPEST}")
    path: KeyPath = ()
    for part in parts:
        path = (*path, _step(part, path, tree))
    try:
        document = read_yaml(written)
    except YamlError as error:
        raise UserError(error.message) from error
    if document.repeated:
        raise UserError(document.repeated[0][1])
    return path, document.value


def _step(part: str, path: KeyPath, tree: Any) -> str | int:
    """The key or index that `part` stands for below `path`."""
    value, schema = value_at(tree, path), schema_at(path, tree)
    is_list = isinstance(value, list) or (value is None and "items" in resolved(schema))
    if value is not None and not isinstance(value, dict | list):
        rule = f"; allowed: {allowed(schema)}" if schema else ""
        raise UserError(f"{dotted(path)} is {in_words(value)} and has no keys below it{rule}")
    if not is_list:
        return part
    length = len(value or [])
    if not part.isdecimal() or len(part) > _LONGEST_INDEX or int(part) > length:
        shown = part if len(part) <= 20 else f"{part[:17]}..."
        indices = f"0 to {length - 1} for its items, " if length > 1 else "0 for its item, " if length else ""
        raise UserError(f"{dotted(path)} is a list, so an index follows: {indices}{length} to add one; given {shown}")
    return int(part)


def _absolute(value: Any, schema: Schema) -> Any:
    """The value with its relative paths made absolute against the current folder."""
    if isinstance(value, dict):
        return {key: _absolute(item, child(schema, key, value) or {}) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, child(schema, index, value) or {}) for index, item in enumerate(value)]
    if isinstance(value, str) and value.strip() and resolved(schema).get("format") == "path" and value[0] != "~":
        return str(Path.cwd() / value)
    return value
