"""Every key checked by itself: plain values → Config, and pydantic's errors → Problems in the user's words.

It knows nothing about files, lines or checks between keys.
"""

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from nmt.config import trees
from nmt.config.allowed import (
    Schema,
    allowed,
    child,
    choices,
    default_name,
    dotted,
    homes,
    keys,
    nearest,
    places,
    required,
    resolved,
    similar_elsewhere,
    stand_in,
    variants,
    whole_schema,
)
from nmt.config.problems import Problem, in_words, joined, meant, unknown_choice
from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath
from nmt.errors import UserError

MOST_PROBLEMS = 100  # that are told at once; to look for the names that 10,000 keys may mean takes a minute
_ROUNDS = 10  # a mended mistake can uncover others below it; no part of the schema is nested deeper than this


class Validated(NamedTuple):
    """The configuration, its mistakes, and the keys whose values are stand-ins because of them.

    `config` is None when some mistake could not be replaced by a stand-in.
    """

    config: Config | None
    problems: list[Problem]
    doubtful: list[KeyPath]


def validated(tree: Any, base: Path | None) -> Validated:
    """Check every key by itself; relative paths are relative to the folder `base`.

    Pydantic looks no further below a mistake, and a check between keys needs valid values. So each mistake is noted
    and replaced by something allowed, until the whole is valid, or until there are more problems than are told.
    """
    tree = _named(tree)
    problems: dict[KeyPath, Problem] = {}
    doubtful: list[KeyPath] = []
    for _ in range(_ROUNDS):
        try:
            config = Config.model_validate(tree, context={"base": base})
        except ValidationError as error:
            mended = tree
            for detail in error.errors(include_url=False):
                path = _key_path(detail)
                if len(problems) > MOST_PROBLEMS:
                    return Validated(None, list(problems.values()), doubtful)
                if path not in problems:  # every alternative of a value such as "1 epoch" or 500 has its own error
                    problems[path] = _problem(path, detail["type"], tree)
                    doubtful += _doubtful(path, detail["type"], tree)
                    mended = _mended(path, detail["type"], mended, len(problems))
            tree = mended
        else:
            return Validated(config, list(problems.values()), doubtful)
    return Validated(None, list(problems.values()), doubtful)


def checked_value(path: KeyPath, value: Any) -> Any:
    """`value` as the key at `path` takes it by itself, whatever the other keys may be.

    Raises UserError with what is allowed there, and with the nearest name when the value is like one.
    """
    result = validated(trees.replaced(stand_in(whole_schema(), 0), path, value), None)
    if result.config is None or any(problem.path == path for problem in result.problems):
        schema = schema_at(path, {})
        raise UserError(joined(meant(value, choices(schema)), f"allowed: {allowed(schema)}"))
    found: Any = result.config
    for part in path:
        found = found[part] if isinstance(part, int) else getattr(found, part)
    return found


def _named(tree: Any) -> Any:
    """The values with the default `name` in every section that is given without one, where the name decides."""
    for place in places():
        name, section = default_name(place.schema), trees.get(tree, place.path)
        if name and isinstance(section, dict) and "name" not in section:
            tree = trees.replaced(tree, (*place.path, "name"), name)
    return tree


def schema_at(path: KeyPath, tree: Any) -> Schema:
    """The schema's node at a path of the values `tree`; empty where the schema has no such key."""
    schema: Schema | None = whole_schema()
    for depth, part in enumerate(path):
        schema = schema and child(schema, part, trees.get(tree, path[:depth]))
    return schema or {}


def _key_path(error: ErrorDetails) -> KeyPath:
    """The key an error is about: pydantic's location without the variants and alternatives that it also names."""
    path: KeyPath = ()
    schema: Schema | None = whole_schema()
    variant: Any = None
    for part in error["loc"]:
        if schema is None or not (variants(schema) or {"properties", "items"} & resolved(schema).keys()):
            break
        if variants(schema) and variant is None:
            variant = {"name": part}
        else:
            schema, variant, path = child(schema, part, variant), None, (*path, part)
    return (*path, "name") if error["type"].startswith("union_tag") else path


def _problem(path: KeyPath, kind: str, tree: Any) -> Problem:
    around, section = trees.get(tree, path[:-1]), schema_at(path[:-1], tree)
    if kind == "extra_forbidden":
        return Problem(path, _unknown_key(path, around, section))
    if kind == "union_tag_invalid":
        return unknown_choice(path, around["name"], list(variants(section)))
    schema = schema_at(path, tree) if path else whole_schema()
    if kind == "missing":
        return Problem(path, f"this key is missing; allowed: {allowed(schema)}")
    return Problem(path, _wrong_value(path, trees.get(tree, path), schema))


def _wrong_value(path: KeyPath, value: Any, schema: Schema) -> str:
    given, rule = f"given {in_words(value)}", f"allowed: {allowed(schema)}"
    if isinstance(value, str) and value in variants(schema):
        return joined(given, rule, f"write {path[-1]}: {{name: {value}}}")
    if value is None and "properties" in resolved(schema):
        way_out = "leave its key out to take the defaults" if "default" in schema else ""
        return joined("the section is empty", rule, way_out)
    text = " (text)" if isinstance(value, str) and not choices(schema) else ""
    empty = "it must not be empty" if isinstance(value, str) and not value.strip() else ""
    return joined(given + text, empty, meant(value, choices(schema)), rule)


def _unknown_key(path: KeyPath, around: Any, section: Schema) -> str:
    siblings = keys(section, around)
    belongs = f"it belongs to {', or '.join(homes(str(path[-1])))}" if homes(str(path[-1])) else ""
    close = meant(path[-1], siblings)
    if not close and not belongs:
        close = f"nearest: {dotted(far)}" if (far := similar_elsewhere(str(path[-1]))) else ""
    here = f"allowed when the name is {around['name']}" if variants(section) else "allowed here"
    return joined("unknown key", close, belongs, f"{here}: {', '.join(siblings)}")


def _doubtful(path: KeyPath, kind: str, tree: Any) -> list[KeyPath]:
    """The keys that do not have the value that the user meant."""
    if kind.startswith("union_tag"):
        return [path[:-1]]
    if kind != "extra_forbidden":
        return [path]
    around, key = path[:-1], str(path[-1])
    close = nearest(key, keys(schema_at(around, tree), trees.get(tree, around)))
    far = similar_elsewhere(key)
    meant_keys = [(*around, close)] if close else [far] if far else []
    return [*meant_keys, *(place.path for place in places() if place.path[-1] == key)]


def _mended(path: KeyPath, kind: str, tree: Any, number: int) -> Any:
    around, section = trees.get(tree, path[:-1]), schema_at(path[:-1], tree)
    if kind.startswith("union_tag"):
        name = nearest(around.get("name", ""), list(variants(section))) or _variant_with(around, section)
        return trees.replaced(tree, path, name) if name else trees.without(tree, path[:-1])
    if not path:
        return stand_in(whole_schema(), number)
    if required(section, path[-1], around):
        return trees.replaced(tree, path, stand_in(schema_at(path, tree), number))
    return trees.without(tree, path)


def _variant_with(around: dict[str, Any], section: Schema) -> str | None:
    """The first variant that has all the given keys: their values can be checked although the name is missing."""
    for name, variant in variants(section).items():
        if around.keys() <= variant["properties"].keys():
            return name
    return None
