"""The systems that nmt-eval scores: files of translations, or models; their names, and which are seeds of one.

It reads options and the files of translations; it opens no model, and knows no metrics.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import Files
from nmt.cli.parser import option_name

GIVEN_BY = ("hypotheses", "model", "runs")  # the options that say which systems there are


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One system: a file of translations with its lines, or models that are to make them."""

    name: str
    option: str
    path: Path
    lines: Sequence[str]
    models: Models | None
    seed_of: str | None  # the system of which it is a run

    @property
    def files(self) -> Files:
        return [(self.option, self.path)] if self.models is None else self.models.files


class _Entry(NamedTuple):
    """A system as an option gives it."""

    option: str
    name: str | None
    paths: Sequence[Path]  # several for an ensemble
    translates: bool = False
    seed_of: str | None = None


def read_systems(options: argparse.Namespace, problems: list[str]) -> list[Candidate]:
    """Read which systems there are, and the files of translations."""
    kinds = [option_name(name) for name in GIVEN_BY if getattr(options, name)]
    if not kinds:
        problems.append(
            "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE, or --runs PATH PATH"
        )
    if len(kinds) > 1:
        problems.append(f"{' and '.join(kinds)} exclude each other: score files, translate and score, or score runs")
    entries = [_Entry("--hypotheses", name, [path]) for name, path in map(_named, options.hypotheses or ())]
    entries += _models(options.model or (), problems)
    for number, texts in enumerate(options.runs or (), start=1):
        entries += _runs(texts, "runs" if len(options.runs) == 1 else f"runs {number}", problems)
    names = _names(entries)
    for name, count in Counter(names).items():
        if count > 1:
            problems.append(f"{count} systems are called {name}; give them different names: NAME=PATH")
    together = any(len(entry.paths) > 1 for entry in entries)
    return [
        _candidate(name, entry, vars(options), problems, together=together)
        for name, entry in zip(names, entries, strict=True)
    ]


def read_sentences(option: str, path: Path | None, problems: list[str]) -> list[str]:
    """Read the lines of a text, of which there must be one; none without a `path`."""
    return read_whole(option, path, lambda lines, name: list(lines), problems)


def _named(text: str) -> tuple[str | None, Path]:
    """The name and the path in NAME=PATH; no name where the whole is a path, or where a folder would be part of it."""
    name, mark, path = text.partition("=")
    if not (name and mark and path) or "/" in name or Path(text).exists():
        return None, Path(text)
    return name, Path(path)


def _models(paths: Sequence[Path], problems: list[str]) -> list[_Entry]:
    """Models without names are one system, an ensemble if they are several; those of the same name are one, too."""
    groups: dict[str | None, list[Path]] = {}
    for name, path in (_named(str(path)) for path in paths):
        groups.setdefault(name, []).append(path)
    if len(groups) > 1 and None in groups:
        problems.append(
            "--model: give all models a name, or none: models with names (--model NAME=PATH) are compared, and models "
            "without names, or with the same one, work together as an ensemble"
        )
    return [_Entry("--model", name, group, translates=True) for name, group in groups.items()]


def _runs(texts: Sequence[str], usual_name: str, problems: list[str]) -> list[_Entry]:
    """The runs of a system; a name before the first is that of the system."""
    name, first = _named(texts[0])
    paths = [first, *map(Path, texts[1:])]
    if len(paths) == 1:
        problems.append(f"--runs {texts[0]}: a mean and a standard deviation need two runs of a system, or more")
    return [
        _Entry("--runs", None, [path], path.is_dir() or path.suffix == ".safetensors", seed_of=name or usual_name)
        for path in paths
    ]


def _names(entries: Sequence[_Entry]) -> list[str]:
    """What each system is called: as the user says, by its file or folder, or by the whole path where two are alike."""
    short = [entry.name or entry.paths[0].name for entry in entries]
    counts = Counter(short)
    return [
        entry.name or (name if name and counts[name] == 1 else str(entry.paths[0]))
        for name, entry in zip(short, entries, strict=True)
    ]


def _candidate(
    name: str, entry: _Entry, options: Mapping[str, Any], problems: list[str], *, together: bool
) -> Candidate:
    """`together`: whether some system is an ensemble, so that --ensemble has an effect, though not on single models."""
    lines: Sequence[str] = ()
    models: Models | None = None
    if entry.translates:
        ensemble = None if together and len(entry.paths) == 1 else options["ensemble"]
        models = read_models({**options, "model": entry.paths, "ensemble": ensemble}, problems)
    else:
        lines = read_sentences(entry.option, entry.paths[0], problems)
    return Candidate(
        name=name, option=entry.option, path=entry.paths[0], lines=lines, models=models, seed_of=entry.seed_of
    )
