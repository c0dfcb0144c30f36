"""YAML in and out: text → plain values that remember their lines, and plain values → text.

Stricter than PyYAML: only `true` and `false` are booleans (so the language code `no` stays text), `5e-4` is a number
without needing a dot, numbers have no octal, base-60 or underscored forms, dates stay text, and a repeated key is a
mistake. No text, whoever wrote it, takes more than a second: its length, its nesting and the number of its values have
limits far beyond any configuration, and there are no anchors and aliases, with which a short text can repeat itself
without end. It knows nothing about the configuration's keys.
"""

import re
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from nmt.errors import shortened

KeyPath = tuple[str | int, ...]  # ("data", "train", 0, "source"), written data.train.0.source

LONGEST_TEXT = 1 << 18  # characters, or bytes of a file
MOST_VALUES = 10_000  # keys, values, lists and sections
DEEPEST = 50  # levels of sections, lists and values
_LONGEST_KEY = 1000
LONGEST_SHOWN = 200  # characters of the user's text in a message

_TEXT = "tag:yaml.org,2002:str"
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# YAML 1.2's core schema without hexadecimal, octal, infinity and not-a-number.
_SCALARS = [
    ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]{1,100}"), list("-+0123456789")),
    ("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789")),
]
_TAB = "a tab; YAML allows only spaces before a key"
_HINTS = {
    "cannot start any token": "if this is text, put it in quotes",
    "mapping values are not allowed": 'a misplaced ":"; check the indentation, or put the text in quotes',
    "could not find expected ':'": 'a key without ":"',
    "expected <block end>": "the indentation does not match the lines before it",
    "unexpected end of stream": "a quotation mark is missing",
}
# What PyYAML was reading when it noticed, perhaps lines later, that something is missing
_BEGUN_BEFORE = ("while scanning a simple key", "while scanning a quoted scalar")


class YamlError(Exception):
    """Text that is not YAML: what is wrong, and the line (from 1) where it is, or was noticed, if known."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message, self.line = message, line


class _Reader(yaml.SafeLoader):
    """SafeLoader with the rules of this module."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's protocol) none of YAML 1.1's; filled below

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0  # so far
        self._levels = 0  # around the present value, and it

    def compose_node(self, parent: Node | None, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line + 1
        if getattr(event, "tag", None) is not None:
            raise YamlError(f"tags such as {shortened(event.tag, LONGEST_SHOWN)} are not allowed here", line)
        if getattr(event, "anchor", None) is not None:
            name = ("*" if isinstance(event, yaml.AliasEvent) else "&") + event.anchor
            raise YamlError(
                f"anchors and aliases such as {shortened(name, LONGEST_SHOWN)} are not allowed here; quote a text that "
                "begins with & or *",
                line,
            )
        self._values, self._levels = self._values + 1, self._levels + 1
        if self._values > MOST_VALUES:
            raise YamlError(f"more than {MOST_VALUES:,} values", line)
        if self._levels > DEEPEST:
            raise YamlError(f"nested too deeply, more than {DEEPEST} levels", line)
        node = super().compose_node(parent, index)
        self._levels -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> MappingNode:
        node: MappingNode = super().compose_mapping_node(anchor)
        first_lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                raise YamlError("a key must be one word, not a list or a section", line)
            if len(key.value) > _LONGEST_KEY:
                raise YamlError(f"a key of {len(key.value):,} characters; at most {_LONGEST_KEY:,} are allowed", line)
            if key.value in first_lines:
                first = first_lines[key.value]
                where = f"first in line {first}" if first != line else "both times in this line"
                raise YamlError(f"the key {key.value} is given twice; {where}", line)
            first_lines[key.value] = line
            key.tag = _TEXT  # every key is text, even 1 and true
        return node


_Reader.add_constructor("tag:yaml.org,2002:int", lambda reader, node: int(node.value))  # 010 is ten, not eight


class _Writer(yaml.SafeDumper):
    """SafeDumper that quotes text which YAML 1.1 or this module's reader would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(writer: Any, data: str) -> ScalarNode:
    # In single quotes these would be folded into a space.
    style = '"' if any(line_break in data for line_break in "\x85\u2028\u2029") else None
    node: ScalarNode = writer.represent_scalar(_TEXT, data, style=style)
    return node


_Writer.add_representer(str, _represent_text)
for _tag, _pattern, _first_letters in _SCALARS:
    _anchored = re.compile(f"^(?:{_pattern.pattern})$")
    for _kind in (_Reader, _Writer):
        _kind.add_implicit_resolver(_tag, _anchored, _first_letters)


class Document(NamedTuple):
    """The values of a YAML text, and where each was written."""

    value: Any
    root: Node | None

    def line(self, path: KeyPath) -> tuple[int | None, bool]:
        """The line of the key at `path`, or else of the nearest section around it, and whether the key exists."""
        node, line = self.root, None
        for part in path:
            step = _child(node, part)
            if step is None:
                return line, False
            line, node = step
        return line, True


def _child(node: Node | None, part: str | int) -> tuple[int, Node] | None:
    if isinstance(node, MappingNode):
        if part == 0:  # one section stands for a list of it
            return node.start_mark.line + 1, node
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line + 1, value
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        item = node.value[part]
        return item.start_mark.line + 1, item
    return None


def value_at(tree: Any, path: KeyPath) -> Any:
    """The value at a path of nested sections and lists, where one section may stand for a list; None without one."""
    for part in path:
        if isinstance(part, int):
            items = [tree] if isinstance(tree, dict) else tree
            tree = items[part] if isinstance(items, list) and part < len(items) else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def replaced(tree: Any, path: KeyPath, value: Any) -> Any:
    """A copy with `value` at `path`. Missing or null sections are created; a list grows by one item at most."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(part, int):
        items = [tree] if isinstance(tree, dict) and tree else list(tree or [])
        items[part : part + 1] = [replaced(value_at(items, (part,)), rest, value)]
        return items
    section = dict(tree or {})
    section[part] = replaced(section.get(part), rest, value)
    return section


def read_yaml(text: str) -> Document:
    """Parse one YAML document. Raises YamlError, also for text beyond the limits of this module."""
    document = _parsed(text)
    return document._replace(value=deepcopy(document.value))


@lru_cache(maxsize=32)
def _parsed(text: str) -> Document:
    """The document, which is remembered: a run reads its configuration again from each of its models."""
    if len(text) > LONGEST_TEXT:
        raise YamlError(f"longer than {LONGEST_TEXT:,} characters", None)
    try:
        reader = _Reader(text)
        root = reader.get_single_node()
        value = None if root is None else reader.construct_document(root)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"the character U+{ord(text[error.position]):04X} is not allowed in YAML", line) from error
    except yaml.MarkedYAMLError as error:
        raise _readable(error, text) from error
    except (ValueError, OverflowError) as error:  # a number too large, in a directive or an escape
        raise YamlError(f"not valid YAML: {shortened(str(error), LONGEST_SHOWN)}", None) from error
    return Document(value, root)


def _readable(error: yaml.MarkedYAMLError, text: str) -> YamlError:
    mark = error.problem_mark or error.context_mark
    if error.context in _BEGUN_BEFORE:
        mark = error.context_mark
    problem = str(error.problem or error.context)
    hint = next((hint for part, hint in _HINTS.items() if part in problem), "")
    if mark is None:
        return YamlError(problem, None)
    lines = text.split("\n")
    written = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in written[: mark.column + 1] or "'\\t'" in problem:
        hint = _TAB
    message = f"column {mark.column + 1}: not valid YAML: {hint or shortened(problem, LONGEST_SHOWN)}"
    shown = shortened(written.strip(), LONGEST_SHOWN)
    return YamlError(f"{message}; the line reads: {shown}" if shown else message, mark.line + 1)


_WRITING: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 1_000_000}


def write_yaml(value: Any) -> str:
    """Write plain values in the order of their keys; `read_yaml` reads back equal values."""
    # Not the writer in C, which refuses lone surrogates: they stand for bytes of a path that is not UTF-8.
    return str(yaml.dump(value, Dumper=_Writer, default_flow_style=False, **_WRITING))


def on_one_line(value: Any) -> str:
    """The same for a value behind its key."""
    return str(yaml.dump([value], Dumper=_Writer, default_flow_style=True, **_WRITING)).strip()[1:-1]
