#!/usr/bin/env python3
"""Generate docs/configuration.md and configs/schema.json from the code.

    python scripts/make_configuration_reference.py

Both come from nmt/config/schema.py and the names of the model's families; a test fails when they are out of date.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nmt.config import json_schema
from nmt.config.allowed import Place, allowed, choices, default_name, dotted, places, resolved, variants
from nmt.config.yaml_text import KeyPath
from nmt.files import written_atomically
from nmt.models.combinations import FAMILIES
from nmt.training.optim import steering_metrics

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "configuration.md"
SCHEMA = ROOT / "configs" / "schema.json"
LONG = 60  # characters of a description that is not printed twice
NAMES = {**FAMILIES, "metric": steering_metrics()}

INTRODUCTION = """\
# Configuration reference

<!-- Written by scripts/make_configuration_reference.py; edit nmt/config/schema.py or that script instead. -->

One YAML file describes one experiment. [`my_files.yaml`](../configs/my_files.yaml) is a short one to copy; what a
file leaves out has its default. Any key can be changed from the command line:

```bash
nmt-train --config my.yaml --set model.decoder.hidden_size=512 --set 'training.schedule={name: plateau, patience: 1}' \\
    --set data.train.0.source=other.en
```

**Mistakes** are reported all at once, before any work begins: first what is wrong with single keys, then contradictions
between keys and options that would have no effect. What other toolkits call a key (`lr`, `epochs`, `rnn_size`, …) is
answered with its name here.

```text
nmt-train: 3 problems:
  - my.yaml, line 9: model.decoder.hiden_size: unknown key; nearest: hidden_size
  - my.yaml, line 10: model.decoder.dropout: given 1.2; allowed: a number, at least 0 and less than 1
  - --set training.batch_size=big: given 'big'; allowed: a whole number, at least 1 and at most 1,000,000,000
```

**YAML.** `true` and `false` are the only booleans (`no` is a language code), `5e-4` and `0.0005` are the same number,
and `null` means "not set". Tags (`!name`) are not allowed.

**Paths** in a file are relative to the folder of that file, those of `--set` to the current folder; `~` is the home
folder.

**What is saved.** The run folder and every model file hold the resolved configuration, with every key and absolute
paths. It is a configuration like any other.

**Editors** complete and check keys with [`configs/schema.json`](../configs/schema.json), which is also the output of
`nmt-train --print-schema`. With the YAML language server, make this the first line of a file in `configs/`:

```yaml
# yaml-language-server: $schema=schema.json
```

In the tables, numbers are whole unless they say "number", and the default of a section with keys of its own is those
keys' defaults. Bold: the key is required.
"""


def main() -> None:
    for path, text in files().items():
        with written_atomically(path) as file:
            file.write(text)


def files() -> dict[Path, str]:
    """Each file and what it must contain."""
    schema = json.dumps(json_schema(NAMES), indent=2, ensure_ascii=False) + "\n"
    return {REFERENCE: reference(), SCHEMA: schema}


def reference() -> str:
    return "\n".join([INTRODUCTION, *_section((), "")])


def _section(path: KeyPath, variant: str) -> Iterable[str]:
    """The tables of a section and of the sections below it, in the order of the schema."""
    here = [place for place in places() if place.path[:-1] == path and place.variant == variant]
    if here:
        yield _heading(path, here)
        yield "\n".join(["| Key | Allowed | Default | Meaning |", "| --- | --- | --- | --- |", *map(_row, here)]) + "\n"
    for place in here:
        below = (*place.path, 0) if "items" in resolved(place.schema) else place.path
        for name in _distinct_variants(place):
            yield from _section(below, name)


def _distinct_variants(place: Place) -> list[str]:
    """The first name of every variant; names with the same keys, such as adam and adamw, share a table."""
    sections = variants(place.schema)
    first = {name: next(other for other in sections if sections[other] == sections[name]) for name in sections}
    return list(dict.fromkeys(first.values())) or [""]


def _heading(path: KeyPath, here: list[Place]) -> str:
    title = f"`{dotted(path)}`" if path else "Top level"
    names = " or ".join(f"`{name}`" for place in here if place.path[-1] == "name" for name in choices(place.schema))
    return f"## {title}{f', name: {names}' if names else ''}\n"


def _row(place: Place) -> str:
    node = resolved(place.schema)
    cells = [f"`{place.path[-1]}`", _in_short(allowed(place.schema, NAMES)), _default(place, node), _meaning(place)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _meaning(place: Place) -> str:
    """The description of a key, or the section that had the same one before."""
    text = _description(place)
    first = next(other for other in places() if other.path[-1] == place.path[-1] and _description(other) == text)
    if len(text) < LONG or (first.path, first.variant) == (place.path, place.variant):
        return text
    return f"As in `{dotted(first.path[:-1])}`{f', {first.variant}' if first.variant else ''}."


def _description(place: Place) -> str:
    return " ".join(str(resolved(place.schema).get("description", "")).split())


def _in_short(text: str) -> str:
    """What is allowed, in fewer words than a message has: "0 to 10" instead of "a whole number, at least 0 …"."""
    text = re.sub(r"a section with keys such as \w+", "section", text)
    text = re.sub(r"a section whose name is one of", "section, name:", text)
    text = re.sub(r"a whole number, (?=at|more|less)|\ba (?=number|path|list)", "", text)
    text = re.sub(r"at least (\S+) and at most (\S+)", r"\1 to \2", text)
    for words, sign in (("at least ", "≥ "), ("at most ", "≤ "), ("more than ", "> "), ("less than ", "< ")):
        text = text.replace(words, sign)
    return text.replace(" and < ", ", < ").replace(" and ≤ ", ", ≤ ").replace("true or false", "true, false")


def _default(place: Place, node: dict[str, Any]) -> str:
    if "default" not in node:
        parents = [parent.schema for parent in places() if parent.path == place.path[:-1]]
        name = default_name(parents[0]) if place.variant and parents else None
        if place.path[-1] == "name" and name in choices(node):
            return f"`{name}`"
        return "**required**"
    default = node["default"]
    if variants(node):
        return f"`name: {default['name']}`"
    if isinstance(default, dict):
        return "`{}`" if {"type": "null"} in place.schema.get("anyOf", []) else ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


if __name__ == "__main__":
    main()
