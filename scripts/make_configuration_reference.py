#!/usr/bin/env python3
"""Generate docs/configuration.md and configs/schema.json from the code.

    python scripts/make_configuration_reference.py

Both come from nmt/config/schema.py and the names of the model's families; a test fails when they are out of date.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the package beside this, whichever is installed

from nmt.config import schema as sections
from nmt.config.allowed import (
    Families,
    Place,
    Schema,
    allowed,
    allows_null,
    dotted,
    places,
    resolved,
    variants,
    whole_schema,
)
from nmt.config.yaml_text import KeyPath
from nmt.files import written_atomically
from nmt.models.combinations import FAMILIES
from nmt.training.optim import steering_metrics

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "configuration.md"
SCHEMA = ROOT / "configs" / "schema.json"
NO_LIMIT = r" and at most 1,000,000(,000)?\b"  # which only stops typing errors
NAMES = {**FAMILIES, "metric": steering_metrics()}

INTRODUCTION = """\
# Configuration reference

<!-- Written by scripts/make_configuration_reference.py; edit nmt/config/schema.py or that script instead. -->

One YAML file describes one experiment. Copy [`my_files.yaml`](../configs/my_files.yaml), enter the paths of your text,
and train; what a file leaves out has its default. Most people change only these keys:

```yaml
subwords:
  size: 4000 # pieces of words; about 8,000 for 100,000 pairs or more
model:
  embedding_size: 256
  encoder: {hidden_size: 256, dropout: 0.3} # a larger model for more text, more dropout for less
  decoder: {type: bahdanau, hidden_size: 512, dropout: 0.3} # or luong, conditional_gru
  attention: {score: additive} # or dot, general, …
training:
  optimizer: {name: adam, learning_rate: 0.001}
  batch_size: 80
  max_epochs: 15
  label_smoothing: 0.1
  gradient_clip_norm: 1.0
decoding:
  beam_size: 5
```

Any keys can be changed from the command line, several after one `--set`:

```bash
nmt-train --config my.yaml --set model.decoder.hidden_size=512 'training.schedule={name: plateau, patience: 1}' \\
    data.train.0.source=other.en
```

**Mistakes** are reported before any work begins, with the nearest name. What other toolkits call a key (`lr`, `epochs`,
`rnn_size`, …) is answered with its name here.

```text
nmt-train: 3 problems:
  - my.yaml, line 9: model.decoder.hiden_size: unknown key; nearest: hidden_size
  - my.yaml, line 10: model.decoder.dropout: given 1.2; allowed: a number, at least 0 and less than 1
  - --set training.batch_size=big: given 'big'; allowed: a whole number, at least 1 and at most 1,000,000,000
```

**YAML.** `true` and `false` are the only booleans (`no` is a language code), and `null` means "not set". Tags, anchors,
and aliases are refused.

**Paths** in a file are relative to the folder of that file, those of `--set` to the current folder.

**What is saved.** The run folder and every model file hold the configuration with every key and absolute paths. It is a
configuration like any other.

**Editors** complete and check keys with [`configs/schema.json`](../configs/schema.json). With the YAML language
server, begin a file in `configs/` with

```yaml
# yaml-language-server: $schema=schema.json
```

In the lists, the default is bold, and numbers are whole unless they say "number".
"""


def main() -> None:
    for path, text in files().items():
        with written_atomically(path) as file:
            file.write(text)


def files() -> dict[Path, str]:
    """Each file and what it must contain."""
    schema = json.dumps(json_schema(NAMES), indent=2, ensure_ascii=False) + "\n"
    return {REFERENCE: reference(), SCHEMA: schema}


def json_schema(families: Families) -> Schema:
    """The JSON schema (draft 2020-12) of a configuration file, with which editors complete and check it."""
    schema = deepcopy(described_schema())
    sampling = sections.SamplingConfig  # for options of commands
    schema["$defs"][sampling.__name__] = _described(sampling.__name__, sampling.model_json_schema())
    for section in list(schema["$defs"].values()):
        for key, node in section.get("properties", {}).items():
            if family := node.pop("x-family", None):
                del node["$comment"]
                node["enum"] = list(families[family])
            if "discriminator" in node:  # a section without a name then matches the default variant only
                reference = node["discriminator"]["mapping"][node["default"]["name"]]
                schema["$defs"][reference.rpartition("/")[2]]["required"].remove("name")
            if "$ref" in node.get("items", {}):  # one section may stand for a list of it
                section["properties"][key] = {"anyOf": [node, node["items"]], "description": node["description"]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of nmt-train"}
    return head | {key: value for key, value in schema.items() if key not in head}


@cache
def described_schema() -> Schema:
    """The schema in which `resolved` looks, with the text below each key.

    With `use_attribute_docstrings`, pydantic would read these texts at every start of a command, which takes as long as
    all else that it does.
    """
    schema = _described(sections.Config.__name__, whole_schema())
    for name, section in schema["$defs"].items():
        _described(name, section)
    return schema


def _described(name: str, section: Schema) -> Schema:
    """The JSON schema of a section, to each key of which the text below it is added, also of sections it extends."""
    keys = section.get("properties", {})
    for kind in reversed(getattr(sections, name).__mro__):
        for key, text in _texts().get(kind.__name__, {}).items():
            keys[key] = dict(sorted({**keys[key], "description": text}.items()))
    return section


@cache
def _texts() -> dict[str, dict[str, Any]]:
    """Class → key → the text below the key."""
    return {
        section.name: {
            key.target.id: inspect.cleandoc(str(below.value.value))
            for key, below in zip(section.body, section.body[1:], strict=False)
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        }
        for section in ast.parse(inspect.getsource(sections)).body
        if isinstance(section, ast.ClassDef)
    }


def reference() -> str:
    return "\n".join([INTRODUCTION, "## Top level\n", *_keys((), "")])


def _section(place: Place) -> Iterable[str]:
    """A section with what it is for, and its variants."""
    below = (*place.path, 0) if "items" in resolved(place.schema) else place.path
    yield f"## `{dotted(below)}`\n"
    on = allows_null(place.schema) and place.schema.get("default") is not None
    yield f"{_description(place)}{' On by default.' if on else ''}\n"
    sections = variants(place.schema)
    if not sections:
        yield from _keys(below, "")
    for variant in sections:
        names = [name for name in sections if sections[name] == sections[variant]]  # such as adam and adamw
        if names[0] == variant:
            yield f"### `{dotted(below)}`, name: {' or '.join(f'`{name}`' for name in names)}\n"
            yield from _keys(below, variant)


def _keys(path: KeyPath, variant: str) -> Iterable[str]:
    """A list of the section's own keys, those that it shares with a section before it, and the sections below."""
    here = [place for place in places(described_schema()) if place.path[:-1] == path and place.variant == variant]
    if variant:
        (named,) = [place for place in here if place.path[-1] == "name"]
        yield f"{_description(named)}\n"
        here.remove(named)
    sections = [place for place in here if _is_section(place)]
    keys = [place for place in here if place not in sections]
    new = [place for place in keys if _first_like(place) == place]
    if new:
        items = "".join(f"- `{place.path[-1]}` ({_values(place)}): {_description(place)}\n" for place in new)
        yield re.sub(r"(?<![/`])<[/A-Za-z]+>", r"`\g<0>`", items)  # such as <BT>, which would be a tag of HTML
    shared = [(place, _first_like(place)) for place in keys if place not in new]
    for section in dict.fromkeys(_name_of(first) for _, first in shared):
        names = ", ".join(f"`{place.path[-1]}`" for place, first in shared if _name_of(first) == section)
        yield f"{names}: as in {section}.\n"
    for place in sections:
        yield from _section(place)


def _is_section(place: Place) -> bool:
    node = resolved(place.schema)
    return bool(variants(node)) or "properties" in resolved(node.get("items", node))


def _first_like(place: Place) -> Place:
    """The first key of the same name, meaning, values, and default."""
    return _first_of_each()[_about(place)]


@cache
def _first_of_each() -> dict[tuple[str, str, str], Place]:
    return {_about(place): place for place in reversed(list(places(described_schema())))}


def _about(place: Place) -> tuple[str, str, str]:
    return str(place.path[-1]), _description(place), _values(place)


def _name_of(place: Place) -> str:
    """The section of a key."""
    return f"`{dotted(place.path[:-1])}`{f', {place.variant}' if place.variant else ''}"


def _description(place: Place) -> str:
    return " ".join(str(resolved(place.schema).get("description", "")).split())


def _values(place: Place) -> str:
    """What is allowed, with the default in bold: "**5**, 1 to 1,000"."""
    node = resolved(place.schema)
    words = _in_short(allowed(place.schema, NAMES).removesuffix(", or null"))
    if "default" not in node:
        return f"{words}; required"
    default = node["default"]
    written = default if isinstance(default, str) else json.dumps(default)
    if re.search(rf"(^|, ){re.escape(written)}(,|$)", words):
        words = re.sub(rf"(^|, ){re.escape(written)}(,|$)", rf"\1**{written}**\2", words)
    else:
        words = f"**{written}**, {words}"
    return f"{words}, null" if allows_null(place.schema) and default is not None else words


def _in_short(text: str) -> str:
    """What is allowed, in fewer words than a message has: "0 to 10" instead of "a whole number, at least 0 …"."""
    text = re.sub(NO_LIMIT, "", text).replace(" or false", ", false")
    text = re.sub(r"a whole number, (?=at|more|less)|\ba (?=number|path|list)", "", text)
    text = re.sub(r"at least (\S+) and at most (\S+)", r"\1 to \2", text)
    for words, sign in (("at least ", "≥ "), ("at most ", "≤ "), ("more than ", "> "), ("less than ", "< ")):
        text = text.replace(words, sign)
    return text.replace(" and < ", ", < ").replace(" and ≤ ", ", ≤ ")


if __name__ == "__main__":
    main()
