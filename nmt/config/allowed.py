"""What the schema allows at a key, in words: the right-hand side of every error message and of the reference.

It reads the JSON schema that pydantic derives from `schema.py`, so that choices, ranges and defaults are written once.
It knows nothing about YAML or files.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath

Schema = dict[str, Any]  # one node of the JSON schema
_NULL = {"type": "null"}


@cache
def whole_schema() -> Schema:
    """The JSON schema of the configuration; not to be changed by the caller."""
    return Config.model_json_schema()


def resolved(schema: Schema) -> Schema:
    """The node itself instead of a reference to it, without the alternative `null`."""
    while True:
        other = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
        real = [option for option in schema.get("anyOf", []) if option != _NULL]
        if "$ref" in schema:
            schema = whole_schema()["$defs"][schema["$ref"].rpartition("/")[2]] | other
        elif len(real) == 1:
            schema = real[0] | other
        else:
            return schema


def allows_null(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", [])


def variants(schema: Schema) -> dict[str, Schema]:
    """name → section, for a section whose `name` decides about its keys; otherwise empty."""
    mapping = resolved(schema).get("discriminator", {}).get("mapping", {})
    return {name: resolved({"$ref": reference}) for name, reference in mapping.items()}


def default_name(schema: Schema) -> str | None:
    """The `name` that a section with variants has when none is given."""
    name: str | None = (schema.get("default") or {}).get("name") if variants(schema) else None
    return name


def child(schema: Schema, part: str | int, value: Any) -> Schema | None:
    """The node below `schema` at a key or index; `value` is what was given for `schema` itself."""
    if isinstance(part, int):
        below: Schema | None = resolved(schema).get("items")
    else:
        below = _section(schema, value).get("properties", {}).get(part)
    return below


def _section(schema: Schema, value: Any) -> Schema:
    """The node with the keys that `value` may have; empty when its name is none of the variants."""
    options = variants(schema)
    name = value.get("name") if options and isinstance(value, dict) else None
    chosen = options.get(name, {}) if isinstance(name, str) else {}
    return chosen if options else resolved(schema)


class Place(NamedTuple):
    """A key that the schema has: its path, the section's `name` where that decides, and its node."""

    path: KeyPath
    variant: str
    schema: Schema


def places(schema: Schema | None = None, path: KeyPath = (), variant: str = "") -> Iterator[Place]:
    """Every key of the configuration, in the order of the schema; items of lists have the index 0."""
    schema = resolved(whole_schema() if schema is None else schema)
    if "items" in schema:
        yield from places(schema["items"], (*path, 0))
    for name, section in variants(schema).items():
        yield from places(section, path, name)
    for key, below in schema.get("properties", {}).items():
        yield Place((*path, key), variant, below)
        yield from places(below, (*path, key))


def keys(section: Schema, value: Any) -> list[str]:
    """The keys that the section may have, given its `value`."""
    return list(_section(section, value).get("properties", {}))


def homes(key: str) -> list[str]:
    """The sections that have a key of this name, in words; none when that is true of many."""
    found: dict[KeyPath, list[str]] = {}
    for place in places():
        if place.path[-1] == key:
            found.setdefault(place.path[:-1], []).append(place.variant)
    return [_home(section, names) for section, names in found.items()] if len(found) <= 4 else []


def _home(section: KeyPath, names: list[str]) -> str:
    every = [place.variant for place in places() if place.path == (*section, "name")]
    some = f" when its name is {' or '.join(names)}" if any(names) and names != every else ""
    return f"{dotted(section) or 'the top level'}{some}"


def similar_elsewhere(key: str) -> KeyPath | None:
    """The path of the key with the most similar name in the whole configuration, if one is similar enough."""
    paths = {str(place.path[-1]): place.path for place in reversed(list(places()))}
    name = nearest(key, list(paths))
    return paths[name] if name else None


def choices(schema: Schema) -> list[str]:
    """The texts allowed at a node that allows only certain ones; for a section with variants, their names."""
    schema = resolved(schema)
    found = [*variants(schema), *schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]
    return found + [choice for option in schema.get("anyOf", []) for choice in choices(option)]


def allowed(schema: Schema) -> str:
    """The allowed values in words, such as "a whole number, at least 1, or null"."""
    return _in_words(resolved(schema)) + (", or null" if allows_null(schema) else "")


def _in_words(schema: Schema) -> str:
    kind = schema.get("type")
    if variants(schema):
        return f"a section whose name is one of {', '.join(variants(schema))}"
    if "anyOf" in schema:
        return ", or ".join(_in_words(resolved(option)) for option in schema["anyOf"] if option != _NULL)
    if choices(schema):
        return ", ".join(choices(schema))
    if kind in ("integer", "number"):
        return str(schema.get("$comment") or _range(schema))
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        size = f" of at least {schema['minItems']}" if "minItems" in schema else ""
        return f"a list{size}, each item: {allowed(schema['items'])}"
    if kind == "object":
        return f"a section with the keys {', '.join(schema['properties'])}"
    if schema.get("format") == "path":
        return "a path"
    return str(schema.get("$comment", "text"))


def _range(schema: Schema) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    limits = [f"{word} {schema[limit]:,.15g}" for limit, word in words.items() if limit in schema]
    return ", ".join(
        ["a whole number" if schema["type"] == "integer" else "a number", *filter(None, [" and ".join(limits)])]
    )


def required(schema: Schema, key: str | int, value: Any) -> bool:
    """Whether what is at `schema`, given as `value`, cannot be without the key."""
    return isinstance(key, int) or key in _section(schema, value).get("required", [])


def stand_in(schema: Schema, number: int) -> Any:
    """A value that the node allows, for what was missing or wrong, so that the other checks can still run.

    `number` makes texts and paths differ from each other.
    """
    schema = resolved(schema)
    if variants(schema):
        return {"name": next(iter(variants(schema)))}
    if choices(schema):
        return choices(schema)[0]
    kind = schema.get("type")
    if kind == "object":
        return {key: stand_in(schema["properties"][key], number) for key in schema.get("required", [])}
    if kind == "array":
        return [stand_in(schema["items"], number)]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    return f"stand-in-{number}"


def dotted(path: KeyPath) -> str:
    return ".".join(str(part) for part in path)


def nearest(given: object, names: Sequence[str]) -> str | None:
    """The most similar of `names`, if one is similar enough to be meant."""
    lower = {name.lower(): name for name in names}
    found = get_close_matches(str(given).strip().lower(), list(lower), n=1, cutoff=0.6)
    return lower[found[0]] if found else None
