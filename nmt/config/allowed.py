"""What the schema allows at a key, in words: the right-hand side of every error message and of the reference.

It reads the JSON schema that pydantic derives from `schema.py`, so that choices, ranges and defaults are written only
once. It knows nothing about YAML or files.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath
from nmt.errors import nearest

Schema = dict[str, Any]  # one node of the JSON schema
Families = Mapping[str, Iterable[str]]  # the names that layers above give their members, by family, such as the scores
_NULL = {"type": "null"}


@cache
def whole_schema() -> Schema:
    """The JSON schema of the configuration; callers must not change it."""
    return Config.model_json_schema()


def json_schema(families: Families) -> Schema:
    """The JSON schema (draft 2020-12) of a configuration file, with which editors complete and check it."""
    schema = Config.model_json_schema()
    for section in list(schema["$defs"].values()):
        for node in section.get("properties", {}).values():
            if family := node.pop("x-family", None):
                del node["$comment"]
                node["enum"] = list(families[family])
            if name := default_name(node):  # a section without a name then matches the default variant only
                reference = node["discriminator"]["mapping"][name]
                schema["$defs"][reference.rpartition("/")[2]]["required"].remove("name")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of nmt-train"}
    return head | {key: value for key, value in schema.items() if key not in head}


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


def default_name(schema: Schema) -> str | None:
    """The `name` of a section with variants when none is given."""
    name: str | None = (schema.get("default") or {}).get("name") if variants(schema) else None
    return name


def child(schema: Schema, part: str | int, value: Any) -> Schema | None:
    """The node below `schema` at a key or index; `value` is what was given for `schema` itself."""
    if isinstance(part, int):
        node: Schema | None = resolved(schema).get("items")
    else:
        node = _section(schema, value).get("properties", {}).get(part)
    return node


def _section(schema: Schema, value: Any) -> Schema:
    """The node with the keys that `value` may have; empty when its name matches no variant."""
    sections = variants(schema)
    if not sections:
        return resolved(schema)
    name = value.get("name") if isinstance(value, dict) else None
    return sections.get(name, {}) if isinstance(name, str) else {}


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


def keys(section: Schema, value: Any) -> list[str]:
    """The keys that the section may have, given its `value`."""
    return list(_section(section, value).get("properties", {}))


def sections_with(key: str) -> list[str]:
    """The sections that have a key of this name, in words; none when there are many."""
    names: dict[KeyPath, list[str]] = {}
    for place in places():
        if place.path[-1] == key:
            names.setdefault(place.path[:-1], []).append(place.variant)
    return [_section_in_words(path, variants_with) for path, variants_with in names.items()] if len(names) <= 4 else []


def _section_in_words(path: KeyPath, names: list[str]) -> str:
    all_names = [place.variant for place in places() if place.path == (*path, "name")]
    condition = f" when its name is {' or '.join(names)}" if any(names) and names != all_names else ""
    return f"{dotted(path) or 'the top level'}{condition}"


def similar_elsewhere(key: str) -> KeyPath | None:
    """The path of the key with the most similar name in the whole configuration, if one is similar enough."""
    paths = {str(place.path[-1]): place.path for place in reversed(list(places()))}
    name = nearest(key, list(paths))
    return paths[name] if name else None


def choices(schema: Schema) -> list[str]:
    """The texts allowed at a node that allows only certain ones; for a section with variants, their names."""
    schema = resolved(schema)
    constant = [schema["const"]] if "const" in schema else []
    alternatives = [choice for node in schema.get("anyOf", []) for choice in choices(node)]
    return [*variants(schema), *schema.get("enum", []), *constant, *alternatives]


def allowed(schema: Schema) -> str:
    """The allowed values in words, such as "a whole number, at least 1, or null"."""
    return _in_words(resolved(schema)) + (", or null" if allows_null(schema) else "")


def _in_words(schema: Schema) -> str:
    kind = schema.get("type")
    if variants(schema):
        return f"a section whose name is one of {', '.join(variants(schema))}"
    if "anyOf" in schema:
        return ", or ".join(_in_words(resolved(node)) for node in schema["anyOf"] if node != _NULL)
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
    limits = " and ".join(f"{word} {schema[limit]:,.15g}" for limit, word in words.items() if limit in schema)
    number = "a whole number" if schema["type"] == "integer" else "a number"
    return f"{number}, {limits}" if limits else number


def required(schema: Schema, key: str | int, value: Any) -> bool:
    """Whether the section `value` at `schema` cannot do without the key."""
    return isinstance(key, int) or key in _section(schema, value).get("required", [])


def stand_in(schema: Schema, number: int) -> Any:
    """A value that the node allows, in place of a missing or wrong one, so that the other checks can still run.

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
