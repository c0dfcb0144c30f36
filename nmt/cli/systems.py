"""The systems that nmt-eval scores: files of translations, or models; their names, and which are seeds of one.

It reads options and the files of translations; it opens no model, and knows no metrics.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nmt.cli.models import Models, read_models
from nmt.cli.options import read_whole
from nmt.cli.outputs import Files
from nmt.cli.parser import option_name

GIVEN_BY = ("hypotheses", "model", "runs")  # the options that say which systems there are


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One system: a file of translations with its lines, or models that are to make them."""

    option: str
    name: str
    paths: Sequence[Path]  # several for an ensemble
    translates: bool = False
    seed_of: str | None = None  # the system of which it is a run
    lines: Sequence[str] = ()
    models: Models | None = None

    @property
    def files(self) -> Files:
        return [(self.option, self.paths[0])] if self.models is None else self.models.files


def read_systems(options: argparse.Namespace, problems: list[str]) -> list[Candidate]:
    """Read which systems there are, and the files of translations."""
    kinds = [option_name(name) for name in GIVEN_BY if getattr(options, name)]
    if not kinds:
        problems.append(
            "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE, or --runs PATH PATH"
        )
    if len(kinds) > 1:
        problems.append(f"{' and '.join(kinds)} exclude each other: score files, translate and score, or score runs")
    systems: list[Candidate] = []
    for name, path in map(_named, options.hypotheses or ()):
        systems.append(Candidate(option="--hypotheses", name=name, paths=[path]))
    systems += _models(options.model or (), problems)
    for number, texts in enumerate(options.runs or (), start=1):
        systems += _runs(texts, "runs" if len(options.runs) == 1 else f"runs {number}", problems)
    short = [one.name or one.paths[0].name for one in systems]
    counts = Counter(short)
    for place, (one, name) in enumerate(zip(systems, short, strict=True)):  # the whole path where two are alike
        systems[place] = replace(one, name=one.name or (name if name and counts[name] == 1 else str(one.paths[0])))
    for name, count in Counter(one.name for one in systems).items():
        if count > 1:
            problems.append(f"{count} systems are called {name}; give them different names: NAME=PATH")
    together = any(len(one.paths) > 1 for one in systems)  # so that --ensemble has an effect, though not on all
    for place, one in enumerate(systems):
        if one.translates:
            ensemble = None if together and len(one.paths) == 1 else options.ensemble
            models = read_models({**vars(options), "model": one.paths, "ensemble": ensemble}, problems)
            systems[place] = replace(one, models=models)
        else:
            systems[place] = replace(one, lines=read_sentences(one.option, one.paths[0], problems))
    return systems


def read_sentences(option: str, path: Path | None, problems: list[str]) -> list[str]:
    """Read the lines of a text, of which there must be one; none without a `path`."""
    return read_whole(option, path, lambda lines, name: list(lines), problems)


def _named(text: str) -> tuple[str, Path]:
    """The name and the path in NAME=PATH; no name where the whole is a path, or where a folder would be part of it."""
    name, mark, path = text.partition("=")
    if not (name and mark and path) or "/" in name or Path(text).exists():
        return "", Path(text)
    return name, Path(path)


def _models(paths: Sequence[Path], problems: list[str]) -> list[Candidate]:
    """Models without names are one system, an ensemble if they are several; those of the same name are one, too."""
    groups: dict[str, list[Path]] = {}
    for name, path in (_named(str(path)) for path in paths):
        groups.setdefault(name, []).append(path)
    if len(groups) > 1 and "" in groups:
        problems.append(
            "--model: give all models a name, or none: models with names (--model NAME=PATH) are compared, and models "
            "without names, or with the same one, work together as an ensemble"
        )
    return [Candidate(option="--model", name=name, paths=group, translates=True) for name, group in groups.items()]


def _runs(texts: Sequence[str], usual_name: str, problems: list[str]) -> list[Candidate]:
    """The runs of a system; a name before the first is that of the system."""
    name, first = _named(texts[0])
    paths = [first, *map(Path, texts[1:])]
    if len(paths) == 1:
        problems.append(f"--runs {texts[0]}: a mean and a standard deviation need two runs of a system, or more")
    runs = []
    for path in paths:
        translates = path.is_dir() or path.suffix == ".safetensors"
        run = Candidate(option="--runs", name="", paths=[path], translates=translates, seed_of=name or usual_name)
        runs.append(run)
    return runs
