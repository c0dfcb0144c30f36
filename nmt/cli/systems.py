"""The systems that nmt-eval scores: files of translations, or models; their names, and which are seeds of one.

It reads options and the files of translations; it opens no model, and knows no metrics.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import Files
from nmt.cli.parsers.parser import option_name
from nmt.errors import Checking, counted

GIVEN_BY = ("hypotheses", "model", "runs")  # the options that say which systems there are
_TENSORS = 9  # bytes that tell a model: safetensors begin with a length, in eight, and a brace


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One system: a file of translations with its lines, or models that are to make them."""

    name: str
    option: str
    path: Path
    lines: Sequence[str]
    models: Models | None

    @property
    def files(self) -> Files:
        return [(self.option, self.path)] if self.models is None else self.models.files


@dataclass(frozen=True, kw_only=True)
class Systems:
    """The systems, in order; and the names of those that are seeds of one, by its name."""

    candidates: Sequence[Candidate]
    runs: Mapping[str, Sequence[str]]

    @property
    def have_models(self) -> bool:
        return any(candidate.models is not None for candidate in self.candidates)

    @property
    def files(self) -> Files:
        return [file for candidate in self.candidates for file in candidate.files]


class _Entry(NamedTuple):
    """A system as an option gives it."""

    option: str
    name: str | None
    paths: Sequence[Path]  # several for an ensemble
    translates: bool
    seed_of: str | None = None


def read_systems(options: argparse.Namespace) -> Checking[Systems]:
    """Read which systems there are, and the files of translations."""
    kinds = [option_name(name) for name in GIVEN_BY if getattr(options, name)]
    if not kinds:
        yield "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE, or --runs PATH PATH"
    if len(kinds) > 1:
        yield f"{' and '.join(kinds)} exclude each other: score files, translate with models and score, or score runs"
    entries = [_Entry("--hypotheses", name, [path], False) for name, path in map(_named, options.hypotheses or ())]
    entries += yield from _models(options.model or ())
    entries += yield from _seeds(options.runs or ())
    translating = [entry for entry in entries if entry.translates]
    if options.ensemble and len(entries) > 1 and translating and all(len(entry.paths) == 1 for entry in translating):
        yield (
            "--ensemble has no effect: no system has several models; give --model several times without names, or with "
            "the same name"
        )
    names = _names(entries)
    for name, count in Counter(names).items():
        if count > 1 and entries[names.index(name)].seed_of is not None:
            yield f"--runs {name} is given {count} times, and the seeds of a system are different runs"
        elif count > 1:
            yield f"{count} systems are called {name}; give them different names: NAME=PATH"
    candidates, runs = [], dict[str, list[str]]()
    for name, entry in zip(names, entries, strict=True):
        candidates.append((yield from _candidate(name, entry, vars(options), entries)))
        if entry.seed_of is not None:
            runs.setdefault(entry.seed_of, []).append(name)
    for members in runs.values():
        if len(members) == 1:
            yield f"--runs {members[0]}: a mean and a standard deviation need two runs of a system, or more"
    return Systems(candidates=candidates, runs=runs)


def read_sentences(option: str, path: Path | None) -> Checking[list[str]]:
    """Read the lines of a text, of which there must be one."""
    return (yield from read_whole(option, path, _lines))


def unequal_counts(files: Sequence[tuple[str, Path, int]]) -> Iterator[str]:
    """What is wrong if the files, each with its option and its number of lines, do not have equally many."""
    if len({count for *_, count in files}) > 1:
        told = [f"{option} {path} has {counted(count, 'line')}" for option, path, count in files]
        if len(told) == 2:
            _, (option, path, count) = files
            yield f"{told[0]} and {option} {path} has {count:,}: line i of the one must go with line i of the other"
        else:
            yield f"{', '.join(told[:-1])}, and {told[-1]}: line i of all of them must be of the same sentence"


def _lines(lines: Iterable[str], *, name: str) -> list[str]:
    del name
    return list(lines)


def _named(text: str) -> tuple[str | None, Path]:
    """The name and the path in NAME=PATH; no name where the whole is a path, or where a folder would be part of it."""
    name, mark, path = text.partition("=")
    if not (name and mark and path) or "/" in name or Path(text).exists():
        return None, Path(text)
    return name, Path(path)


def _models(paths: Sequence[Path]) -> Checking[list[_Entry]]:
    """Models without names are one system, an ensemble if they are several; those of the same name are one, too."""
    named = [_named(str(path)) for path in paths]
    groups: dict[str | None, list[Path]] = {}
    for name, path in named:
        groups.setdefault(name, []).append(path)
    if len(groups) > 1 and None in groups:
        yield (
            "--model: give all models a name, or none: models with names (--model NAME=PATH) are compared, and models "
            "without names, or with the same one, work together as an ensemble"
        )
    return [_Entry("--model", name, group, True) for name, group in groups.items()]


def _seeds(groups: Sequence[Sequence[str]]) -> Checking[list[_Entry]]:
    """The runs of each system; a name before the first is that of the system."""
    entries = list[_Entry]()
    for number, texts in enumerate(groups, start=1):
        (name, _), *others = runs = [_named(text) for text in texts]
        seed_of = name or ("runs" if len(groups) == 1 else f"runs {number}")
        if any(entry.seed_of == seed_of for entry in entries):
            yield f"--runs {texts[0]}: another system is called {seed_of}; give it a different name"
        for other, path in others:
            if other is not None:
                yield (
                    f"--runs {other}={path}: only the first run has a name before it, that of the system; for "
                    "another system, give --runs again"
                )
        entries += [_Entry("--runs", None, [path], _is_model(path), seed_of) for _, path in runs]
    return entries


def _is_model(path: Path) -> bool:
    """Whether a run is to be translated with: a folder, or a file that begins as models do."""
    if not path.is_file():
        return path.is_dir()
    try:
        with open(path, "rb") as file:
            head = file.read(_TENSORS)
    except OSError:
        return False
    return len(head) == _TENSORS and b"\0" in head and head.endswith(b"{")


def _names(entries: Sequence[_Entry]) -> list[str]:
    """What each system is called: as the user says, by its file or folder, or by the whole path where two are alike."""
    short = [entry.name or entry.paths[0].name for entry in entries]
    counts = Counter(short)
    return [
        entry.name or (name if name and counts[name] == 1 else str(entry.paths[0]))
        for name, entry in zip(short, entries, strict=True)
    ]


def _candidate(name: str, entry: _Entry, options: Mapping[str, Any], entries: Sequence[_Entry]) -> Checking[Candidate]:
    if not entry.translates:
        lines = yield from read_sentences(entry.option, entry.paths[0])
        return Candidate(name=name, option=entry.option, path=entry.paths[0], lines=lines, models=None)
    alone = len(entry.paths) == 1 and len(entries) > 1
    ensemble = None if alone else options["ensemble"]
    models = yield from read_models({**options, "model": entry.paths, "ensemble": ensemble})
    return Candidate(name=name, option=entry.option, path=entry.paths[0], lines=(), models=models)
