#!/usr/bin/env python3
"""Generate docs/configuration.md and configs/schema.json from the code.

    python scripts/make_configuration_reference.py

Both come from nmt/config/schema.py and the names of the model's families; a test fails when they are out of date.
"""

import json
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
NAMES = {**FAMILIES, "metric": steering_metrics()}

INTRODUCTION = """\
# Configuration reference

<!-- Written by scripts/make_configuration_reference.py; edit nmt/config/schema.py or that script instead. -->

One YAML file describes one experiment; [`configs/`](../configs) has complete ones. The tables below list every key.

**Mistakes.** Unknown keys, wrong types, values out of range and repeated keys are reported all at once, before any work
begins; once these are mended, so are contradictions between keys and options that would have no effect. What JoeyNMT,
OpenNMT-py, fairseq, or Hugging Face call a key (`lr`, `epochs`, `rnn_size`, `num_beams`, …) is answered with its name
here, and an option of `nmt-train` (`device`, `output`, …) with that option:

```text
nmt-train: 3 problems:
  - my.yaml, line 9: model.decoder.hiden_size: unknown key; nearest: hidden_size
  - my.yaml, line 10: model.decoder.dropout: given 1.2; allowed: a number, at least 0 and less than 1
  - --set training.batch_size=big: given 'big'; allowed: a whole number, at least 1 and at most 1,000,000,000
```

An option counts as having no effect only if its value differs from the default and nothing would read it, so a file
may spell out defaults, those that only some decoders, scores, or scopes take beside the name of one.

**YAML.** `true` and `false` are the only booleans (`no` is a language code), `5e-4` and `0.0005` are the same number,
`null` means "not set". Tags (`!name`) are not allowed. A file, or the value of an override, may have up to 256 KiB,
10,000 keys and values and 50 levels of nesting, counting everything that aliases (`*name`) and merge keys (`<<`) stand
for. If there are more than 100 mistakes, the first 100 are reported.

**Paths** in a file are relative to the folder of that file, and `~` is the home folder.

**Overrides.** `--set KEY=VALUE` changes one key, under the same rules, and may be repeated; the last one wins. `VALUE`
is YAML, so it can replace a whole section. Items of lists are named by their index. Relative paths are relative to the
current folder, as everywhere on the command line.

```bash
nmt-train --config my.yaml --set model.decoder.hidden_size=512 --set 'training.schedule={name: plateau, patience: 1}' \\
    --set data.train.0.source=other.en
```

**What is saved.** The run folder and every model file hold the resolved configuration: every key with its value, and
absolute paths. It is a configuration file like any other and, with the same version, trains the same model again.

**Editors** complete and check keys with [`configs/schema.json`](../configs/schema.json), which is also the output of
`nmt-train --print-schema`. With the YAML language server, make this the first line of a file in `configs/`:

```yaml
# yaml-language-server: $schema=schema.json
```
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
    meaning = " ".join(str(node.get("description", "")).split())
    cells = [f"`{place.path[-1]}`", allowed(place.schema, NAMES), _default(place, node), meaning]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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
