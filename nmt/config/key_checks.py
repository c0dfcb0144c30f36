"""Every key checked on its own: plain values → Config, and pydantic's errors → Problems in the user's words.

It knows nothing about files, lines or checks between keys.
"""

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nmt.config.allowed import (
    Schema,
    allowed,
    child,
    choices,
    dotted,
    keys,
    places,
    required,
    resolved,
    sections_with,
    similar_elsewhere,
    stand_in,
    variants,
    whole_schema,
)
from nmt.config.problems import Problem, in_words, joined, nearest_hint, unknown_choice
from nmt.config.schema import Config
from nmt.config.yaml_text import KeyPath
from nmt.errors import UserError, nearest
from nmt.other_names import PLACED, is_limit, our_keys, our_option

MOST_PROBLEMS = 100  # reported at once; looking for the names that 10,000 keys might mean would take a minute
_ROUNDS = 10  # replacing a mistake can uncover others below it; no part of the schema is nested deeper than this


class Checked(NamedTuple):
    """The configuration, its mistakes, and the keys whose values are stand-ins because of them.

    `config` is None when some mistake could not be replaced by a stand-in.
    """

    config: Config | None
    problems: list[Problem]
    doubtful: list[KeyPath]


def check_keys(tree: Any, base: Path | None) -> Checked:
    """Check every key on its own; relative paths are relative to the folder `base`.

    Pydantic does not look below a mistake, and a check between keys needs valid values. So each mistake is noted
    and replaced by something allowed, until everything is valid or there are more problems than are reported.
    """
    tree = _named(tree)
    problems: dict[KeyPath, Problem] = {}
    doubtful: list[KeyPath] = []
    missing: set[KeyPath] = set()
    meant: set[KeyPath] = set()  # by unknown keys
    listed: set[KeyPath] = set()  # sections whose keys were said, with the first unknown one

    def told() -> list[Problem]:
        misspelt = missing & meant
        return [problem for path, problem in problems.items() if path not in misspelt]

    for _ in range(_ROUNDS):
        try:
            config = Config.model_validate(tree, context={"base": base})
            return Checked(config, told(), doubtful)
        except ValidationError as error:
            mended = tree
            for detail in error.errors(include_url=False):
                path, kind = _key_path(detail), detail["type"]
                if len(told()) > MOST_PROBLEMS:
                    return Checked(None, told(), doubtful)
                if path not in problems:  # every alternative of a value such as "1 epoch" or 500 has its own error
                    problems[path] = _problem(path, kind, tree, is_listed=path[:-1] in listed)
                    intended = _doubtful(path, kind, tree)
                    doubtful += intended
                    if kind == "missing":
                        missing.add(path)
                    elif kind == "extra_forbidden":
                        listed.add(path[:-1])
                        meant.update(intended if len(intended) == 1 else ())
                    mended = _mended(path, kind, mended, len(problems))
            tree = mended
    return Checked(None, told(), doubtful)


def checked_value(path: KeyPath, value: Any) -> Any:
    """`value` as the key at `path` takes it, whatever the other keys may be.

    Raises UserError that says what is allowed there, with the nearest name if one is similar.
    """
    config, problems, _ = check_keys(replaced(stand_in(whole_schema(), 0), path, value), None)
    if config is None or any(problem.path == path for problem in problems):
        schema = schema_at(path, {})
        raise UserError(joined(nearest_hint(value, choices(schema)), f"allowed: {allowed(schema)}"))
    node: Any = config
    for part in path:
        node = node[part] if isinstance(part, int) else getattr(node, part)
    return node


def _named(tree: Any) -> Any:
    """The values with the default `name` in every section that has variants but was given without a name."""
    for path, name in default_names(Config).items():
        section = value_at(tree, path)
        if isinstance(section, dict) and "name" not in section:
            tree = replaced(tree, (*path, "name"), name)
    return tree


def default_names(section: type[BaseModel], path: KeyPath = ()) -> dict[KeyPath, str]:
    """The path of every section that has variants, below `path`, with its default `name`.

    They are in the JSON schema, too, but pydantic takes most of a tenth of a second to make it, and a file without
    mistakes does not need it.
    """
    names: dict[KeyPath, str] = {}
    for key, field in section.model_fields.items():
        place = (*path, key)
        if field.discriminator is not None:
            names[place] = field.default.name
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= default_names(field.annotation, place)
    return names


def schema_at(path: KeyPath, tree: Any) -> Schema:
    """The schema's node at a path of the values `tree`; empty where the schema has no such key."""
    schema: Schema | None = whole_schema()
    for depth, part in enumerate(path):
        schema = schema and child(schema, part, value_at(tree, path[:depth]))
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


def _problem(path: KeyPath, kind: str, tree: Any, *, is_listed: bool) -> Problem:
    """What is wrong with a key; with `is_listed`, the keys of its section have been said already."""
    around, section = value_at(tree, path[:-1]), schema_at(path[:-1], tree)
    if kind == "extra_forbidden":
        return Problem(path, _unknown_key(path, around, section, is_listed=is_listed))
    if kind == "union_tag_invalid":
        return Problem(path, unknown_choice(around["name"], list(variants(section))))
    schema = schema_at(path, tree) if path else whole_schema()
    if kind == "missing":
        return Problem(path, f"this key is missing; allowed: {allowed(schema)}")
    return Problem(path, _wrong_value(path, value_at(tree, path), schema))


def _wrong_value(path: KeyPath, value: Any, schema: Schema) -> str:
    shown, rule = f"given {in_words(value)}", f"allowed: {allowed(schema)}"
    if isinstance(value, str) and value in variants(schema):
        return joined(shown, rule, f"write {path[-1]}: {{name: {value}}}")
    if value is None and "properties" in resolved(schema):
        way_out = "leave its key out to take the defaults" if "default" in schema else ""
        return joined("the section is empty", rule, way_out)
    text = " (text)" if isinstance(value, str) and not choices(schema) else ""
    empty = "it must not be empty" if isinstance(value, str) and not value.strip() else ""
    return joined(shown + text, empty, nearest_hint(value, choices(schema)), rule)


def _unknown_key(path: KeyPath, around: Any, section: Schema, *, is_listed: bool) -> str:
    siblings = keys(section, around)
    where = f"allowed when the name is {around['name']}" if variants(section) else "allowed here"
    rule = "" if is_listed else f"{where}: {', '.join(siblings)}"
    return joined("unknown key", _hint(path, siblings), rule)


def _hint(path: KeyPath, siblings: list[str]) -> str:
    """What an unknown key may stand for; `siblings` are the keys of its section. Empty if nothing is near."""
    key = str(path[-1])
    if option := our_option(key):
        return f"it is the option {option} of nmt-train"
    if is_limit(key):
        return "nearest: decoding.max_length_extra, with decoding.max_length_ratio 0"
    known, is_placed = _called_so_elsewhere(path), dotted(path) in PLACED
    if not is_placed and (homes := sections_with(key)):
        return joined(nearest_hint(path[-1], siblings), f"it belongs to {', or '.join(homes)}")
    if known:
        return f"nearest: {', or '.join(key[-1] if key[:-1] == path[:-1] else dotted(key) for key in known)}"
    if hint := nearest_hint(path[-1], siblings):
        return hint
    return f"nearest: {dotted(elsewhere)}" if (elsewhere := similar_elsewhere(key)) else ""


def _called_so_elsewhere(path: KeyPath) -> list[tuple[str, ...]]:
    """The keys that other toolkits call like the last name of `path`: that of its section, or else all."""
    known = [tuple(key.split(".")) for key in our_keys(str(path[-1]), section=dotted(path[:-1]))]
    return [key for key in known if key[:-1] == path[:-1]] or known


def _doubtful(path: KeyPath, kind: str, tree: Any) -> list[KeyPath]:
    """The keys that do not have the value that the user meant."""
    if kind.startswith("union_tag"):
        return [path[:-1]]
    if kind != "extra_forbidden":
        return [path]
    around, key = path[:-1], str(path[-1])
    if our_option(key):
        return []
    if known := _called_so_elsewhere(path):
        return [*known]
    sibling, elsewhere = nearest(key, keys(schema_at(around, tree), value_at(tree, around))), similar_elsewhere(key)
    intended = [(*around, sibling)] if sibling else [elsewhere] if elsewhere else []
    return [*intended, *(place.path for place in places() if place.path[-1] == key)]


def _mended(path: KeyPath, kind: str, tree: Any, number: int) -> Any:
    around, section = value_at(tree, path[:-1]), schema_at(path[:-1], tree)
    if kind.startswith("union_tag"):
        name = nearest(around.get("name", ""), list(variants(section))) or _variant_with(around, section)
        return replaced(tree, path, name) if name else _without(tree, path[:-1])
    if not path:
        return stand_in(whole_schema(), number)
    if required(section, path[-1], around):
        return replaced(tree, path, stand_in(schema_at(path, tree), number))
    return _without(tree, path)


def _variant_with(around: dict[str, Any], section: Schema) -> str | None:
    """The first variant that has all these keys: their values can be checked although the name is missing."""
    return next((name for name, node in variants(section).items() if around.keys() <= node["properties"].keys()), None)


def value_at(tree: Any, path: KeyPath) -> Any:
    """The value at a path of nested sections and lists; None where there is nothing."""
    for part in path:
        if isinstance(part, int):
            tree = tree[part] if isinstance(tree, list) and part < len(tree) else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def replaced(tree: Any, path: KeyPath, value: Any) -> Any:
    """A copy with `value` at `path`. Missing or null sections are created; a list grows by one item at most."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(part, int):
        items = list(tree or [])
        items[part : part + 1] = [replaced(value_at(items, (part,)), rest, value)]
        return items
    section = dict(tree or {})
    section[part] = replaced(section.get(part), rest, value)
    return section


def _without(tree: Any, path: KeyPath) -> Any:
    """A copy without the key at `path`, which must exist."""
    section = value_at(tree, path[:-1])
    return replaced(tree, path[:-1], {key: value for key, value in section.items() if key != path[-1]})
