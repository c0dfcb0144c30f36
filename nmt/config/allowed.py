"""What the schema allows at a key, in words: the right-hand side of every error message and of the reference.

It reads the JSON schema that pydantic derives from `schema.py`, so that choices, ranges and defaults are written only
once. It knows nothing about YAML or files.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath

Schema = dict[str, Any]  # one node of the JSON schema
Families = Mapping[str, Iterable[str]]  # the names that layers above give their members, by family, such as the scores
NO_FAMILIES: Families = {}  # any name is allowed
_NULL = {"type": "null"}


@cache
def whole_schema() -> Schema:
    """The JSON schema of the configuration; callers must not change it."""
    return Config.model_json_schema()


def resolved(schema: Schema) -> Schema:
    """The node with references followed, and without the alternative `null`."""
    while True:
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
        alternatives = [node for node in schema.get("anyOf", []) if node != _NULL]
        if "$ref" in schema:
            schema = whole_schema()["$defs"][schema["$ref"].rpartition("/")[2]] | rest
        elif len(alternatives) == 1:
            schema = alternatives[0] | rest
        else:
            return schema


def allows_null(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", [])


def variants(schema: Schema) -> dict[str, Schema]:
    """name → section, for a section whose `name` decides which keys it has; otherwise empty."""
    mapping = resolved(schema).get("discriminator", {}).get("mapping", {})
    return {name: resolved({"$ref": reference}) for name, reference in mapping.items()}


class Place(NamedTuple):
    """A key of the schema: its path, the section's `name` where that decides, and its node."""

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
    for key, node in schema.get("properties", {}).items():
        yield Place((*path, key), variant, node)
        yield from places(node, (*path, key))


def choices(schema: Schema, families: Families = NO_FAMILIES) -> list[str]:
    """The texts allowed at a node that allows only certain ones; for a section with variants, their names."""
    schema = resolved(schema)
    members = list(families.get(schema.get("x-family", ""), ()))
    constant = [str(schema["const"])] if "const" in schema else []
    alternatives = [choice for node in schema.get("anyOf", []) for choice in choices(node, families)]
    return [*variants(schema), *schema.get("enum", []), *members, *constant, *alternatives]


def allowed(schema: Schema, families: Families = NO_FAMILIES) -> str:
    """The allowed values in words, such as "a whole number, at least 1, or null"."""
    return _in_words(resolved(schema), families) + (", or null" if allows_null(schema) else "")


def _in_words(schema: Schema, families: Families) -> str:
    kind = schema.get("type")
    if variants(schema):
        return f"a section whose name is one of {', '.join(variants(schema))}"
    if "anyOf" in schema:
        return ", or ".join(_in_words(resolved(node), families) for node in schema["anyOf"] if node != _NULL)
    if names := choices(schema, families):
        return ", ".join(names)
    if kind in ("integer", "number"):
        return str(schema.get("$comment") or _range(schema))
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        size = f" of at least {schema['minItems']}" if "minItems" in schema else ""
        return f"a list{size}, each item: {allowed(schema['items'], families)}"
    if kind == "object":
        return f"a section with keys such as {next(iter(schema['properties']))}"
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
    limits = " and ".join(f"{word} {schema[limit]:,.15g}" for limit, word in words.items() if limit in schema)
    number = "a whole number" if schema["type"] == "integer" else "a number"
    return f"{number}, {limits}" if limits else number


def dotted(path: KeyPath) -> str:
    return ".".join(str(part) for part in path)
