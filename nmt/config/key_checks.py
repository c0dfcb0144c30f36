"""Every key checked on its own: plain values → Config, or pydantic's errors as problems in the user's words.

It knows nothing about files, lines or checks between keys.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from nmt.config.allowed import Families, Schema, allowed, choices, dotted, places, resolved, variants, whole_schema
from nmt.config.problems import Problem, in_words, joined, nearest_hint
from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath, value_at
from nmt.errors import nearest
from nmt.other_names import OPTIONS, our_keys, ours

MOST_PROBLEMS = 100  # reported at once; looking for the names that 10,000 keys might mean would take a minute
_FEW = 4  # keys of one name, one of which may be meant


def check_keys(tree: Any, base: Path | None, families: Families) -> Config | list[Problem]:
    """The configuration of the values `tree`, or all that is wrong with single keys.

    Relative paths are relative to the folder `base`. A key that names a member of one of the `families` must name one.
    """
    try:
        return Config.model_validate(tree, context={"base": base, "families": families})
    except ValidationError as error:
        return _problems(error.errors(include_url=False, include_context=False), tree, families)


def _problems(errors: Sequence[ErrorDetails], tree: Any, families: Families) -> list[Problem]:
    problems: dict[KeyPath, Problem] = {}
    missing: set[KeyPath] = set()
    meant: set[KeyPath] = set()  # by unknown keys
    for error in errors:
        path, section, schema = _located(error)
        if path in problems:  # every alternative of a value such as "1 epoch" or 500 has its own error
            continue
        if error["type"] == "missing":
            missing.add(path)
            message = f"this key is missing; allowed: {allowed(schema, families)}"
        elif error["type"] == "extra_forbidden":
            message, keys = _unknown_key(path, section)
            meant.update(keys)
        else:
            value = value_at(tree, path)
            is_name = isinstance(value, str) and value in variants(schema)
            hint = "" if is_name else nearest_hint(value, choices(schema, families))
            way_out = f"write {path[-1]}: {{name: {value}}}" if is_name else ""
            message = joined(f"given {in_words(value)}", hint, f"allowed: {allowed(schema, families)}", way_out)
            if error["type"] == "value_error" and isinstance(value, list):  # one of its items
                message = error["msg"].removeprefix("Value error, ")
        problems[path] = Problem(path, message)
        if len(problems.keys() - (missing & meant)) > MOST_PROBLEMS:
            break
    return [problem for path, problem in problems.items() if path not in missing & meant]


def _located(error: ErrorDetails) -> tuple[KeyPath, Schema, Schema]:
    """The key that an error is about, and what the schema has for its section and for itself.

    Pydantic's location also names the variant of a section, and the alternatives of a value.
    """
    path: KeyPath = ()
    section: Schema = {}
    schema = whole_schema()
    for part in error["loc"]:
        sections, node = variants(schema), resolved(schema)
        if part in sections:
            schema = sections[str(part)]
        elif isinstance(part, int) and "items" in node:
            path, section, schema = (*path, part), schema, node["items"]
        elif "properties" in node:
            path, section, schema = (*path, part), schema, node["properties"].get(part, {})
        else:
            break
    if error["type"].startswith("union_tag") and isinstance(error["input"], dict):
        return (*path, "name"), schema, {"enum": [*variants(schema)]}
    return path, section, schema


def _unknown_key(path: KeyPath, section: Schema) -> tuple[str, list[KeyPath]]:
    """What is wrong with a key that its section does not have, and the keys that may be meant."""
    if option := ours(str(path[-1]), OPTIONS, OPTIONS):
        return f"unknown key; it is the option {option} of nmt-train", []
    if names := [place.variant for place in places() if place.path == path]:
        return f"unknown key here; it goes with name: {' or '.join(names)}", []
    here = list(resolved(section).get("properties", {}))
    meant = _meant(path, here)
    if not meant:
        return f"unknown key; allowed here: {', '.join(here)}", []
    shown = [str(key[-1]) if key[:-1] == path[:-1] else dotted(key) for key in meant]
    return f"unknown key; nearest: {', or '.join(shown)}", meant


def _meant(path: KeyPath, here: Sequence[str]) -> list[KeyPath]:
    """The keys that an unknown one may stand for; `here` are those of its section."""
    around, key, elsewhere = path[:-1], str(path[-1]), _keys_by_name()
    known: list[KeyPath] = [tuple(name.split(".")) for name in our_keys(key, section=dotted(around))]
    if known:
        return [name for name in known if name[:-1] == around] or known
    if 0 < len(elsewhere.get(key, ())) <= _FEW:
        return elsewhere[key]
    if name := nearest(key, here):
        return [(*around, name)]
    name = nearest(key, list(elsewhere))
    return elsewhere[name][:1] if name else []


@cache
def _keys_by_name() -> dict[str, list[KeyPath]]:
    """The paths of all keys, by their last names."""
    paths: dict[str, list[KeyPath]] = {}
    for path in dict.fromkeys(place.path for place in places()):
        paths.setdefault(str(path[-1]), []).append(path)
    return paths
