"""Configuration files: strict reading, overrides, one report of everything that is wrong, and writing.

Every mistake is reported at once, with its file and line or its --set option, the value given, what is allowed and the
nearest name. It does not know what the keys mean; see `schema.py` and `contradictions.py`.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from nmt.config.allowed import NO_FAMILIES, Families, dotted
from nmt.config.key_checks import MOST_PROBLEMS, check_keys
from nmt.config.overrides import Override, apply_overrides
from nmt.config.problems import Problem, in_words
from nmt.config.schema import Config
from nmt.config.yaml_text import LONGEST_TEXT, Document, KeyPath, YamlError, read_yaml, write_yaml
from nmt.errors import UserError, nearest, nothing_at, refuse
from nmt.examples import examples


class _Sources(NamedTuple):
    """What a configuration was put together from."""

    name: str  # of the file
    document: Document
    overrides: Sequence[Override] = ()

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Raise UserError with the problems, if there are any, and where each is."""
        refuse(_first(self.messages(problems)))

    def messages(self, problems: Iterable[Problem]) -> list[str]:
        """One message per problem: those of the file by line, then those of the overrides."""
        placed = [(*self._origin(problem.path), problem) for problem in problems]
        placed.sort(key=lambda entry: entry[0])
        messages = []
        for _, origin, problem in placed:
            is_named = isinstance(origin, Override) and origin.path == problem.path
            key = "" if is_named else dotted(problem.path)
            messages.append(": ".join(filter(None, [str(origin), key, problem.message])))
        return messages

    def _origin(self, path: KeyPath) -> tuple[tuple[int, int], str | Override]:
        """(order, origin) of whatever set the key at `path`, or left it out."""
        alone = tuple(part for part in path if part != 0)  # one section stands for a list of it
        for number, override in reversed(list(enumerate(self.overrides))):
            if override.path in (path[: len(override.path)], alone[: len(override.path)]):
                return (1, number), override
        line, _ = self.document.line(path)
        for depth in range(len(path), 0, -1):
            if self.document.line(path[:depth])[1]:
                break
            for number, override in enumerate(self.overrides):
                if override.path[:depth] == path[:depth]:  # a section that only this override created
                    return (1, number), override
        return (0, line or 0), f"{self.name}, line {line}" if line else self.name


class Loaded(NamedTuple):
    """A configuration whose keys are right by themselves, and what it was put together from."""

    config: Config
    sources: _Sources


def read_config(
    path: Path, overrides: Sequence[str] = (), *, families: Families = NO_FAMILIES, folder: Path | None = None
) -> Loaded:
    """Read a configuration file; paths in it are relative to `folder`, by default its own, and paths in `overrides` to
    the current one.

    `overrides` are "KEY=VALUE" with VALUE in YAML. `families` are the names that only the caller knows, such as those
    of the attention scores. Raises UserError with every mistake in a single key.
    """
    document = _document(_text(path), str(path))
    problems: list[str] = []
    tree, applied = apply_overrides(document.value, overrides, problems)
    sources = _Sources(str(path), document, applied)
    config = check_keys(tree, path.parent if folder is None else folder, families)
    if not isinstance(config, Config):
        raise UserError(*_first([*sources.messages(config), *problems]))
    refuse(_first(problems))
    return Loaded(config, sources)


def parse_config(text: str, families: Families = NO_FAMILIES) -> Config:
    """Read a configuration that `dump_config` wrote. Raises UserError.

    Checks between keys are skipped: they passed when the model was trained, and a check added later must not make its
    file unreadable.
    """
    sources = _Sources("the saved configuration", _document(text, "the saved configuration"))
    config = check_keys(sources.document.value, None, families)
    if not isinstance(config, Config):
        raise UserError(*_first(sources.messages(config)))
    return config


def _first(messages: list[str]) -> list[str]:
    """The messages, or as many of them as anybody would read."""
    if len(messages) <= MOST_PROBLEMS:
        return messages
    return [*messages[:MOST_PROBLEMS], f"there are more problems than these {MOST_PROBLEMS}"]


def dump_config(config: Config) -> str:
    """The configuration as YAML: every key, defaults included, in the order of the schema."""
    return _written(json.dumps(config.model_dump(mode="json")))


@lru_cache(maxsize=32)
def _written(values: str) -> str:
    """JSON as YAML, which is remembered: a run writes its configuration again with each of its models."""
    return write_yaml(json.loads(values))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_TEXT + 1)  # bounded, for a file may have no end
    except FileNotFoundError:
        example = nearest(path.stem, list(examples()))
        hint = f"nearest of the examples: {example}" if example else "nmt-train --list-configs lists examples"
        missing = nothing_at(path, "no such configuration file", endings=(".yaml", ".yml"))
        raise UserError(f"{missing}; {hint}") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; give a file, such as {path / 'config.yaml'}") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > LONGEST_TEXT:
        raise UserError(f"{path}: over {LONGEST_TEXT:,} bytes, too large for a configuration; is it the right file?")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise UserError(f"{path}, line {line}: not valid UTF-8 (byte 0x{byte:02X}); save the file as UTF-8") from error


def _document(text: str, name: str) -> Document:
    try:
        document = read_yaml(text)
    except YamlError as error:
        place = f"{name}, line {error.line}" if error.line else name
        raise UserError(f"{place}: {error.message}") from error
    if document.value is None:
        raise UserError(f"{name}: the file is empty; expected the keys of a configuration, such as name and data")
    if not isinstance(document.value, dict):
        raise UserError(f"{name}: given {in_words(document.value)}; expected keys with values, such as name: demo")
    return document
