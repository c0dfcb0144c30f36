"""The keys of a section of the configuration, read from the text of `nmt/config/schema.py`.

They are options with the same names and descriptions. Importing the schema takes longer than all else that `--help`
needs; its text is where pydantic finds the descriptions, too.
"""

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import nmt

SCHEMA = Path(nmt.__file__).parent / "config" / "schema.py"


class Key(NamedTuple):
    """What `--help` shows of a key."""

    description: str
    default: str  # as it is written there
    is_boolean: bool


def keys_of(section: str) -> dict[str, Key]:
    """The keys of the class `section` of the schema, in order."""
    body = next(node.body for node in _classes() if node.name == section)
    keys = {}
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            description = " ".join(ast.literal_eval(below.value).split())
            keys[ast.unparse(field.target)] = Key(description, _default(field), ast.unparse(field.annotation) == "bool")
    return keys


@cache
def _classes() -> list[ast.ClassDef]:
    tree = ast.parse(SCHEMA.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _default(field: ast.AnnAssign) -> str:
    """The default: the value, or the argument of that name where it is a call of Field."""
    value = field.value
    if isinstance(value, ast.Call):
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    return "" if value is None else ast.unparse(value)
