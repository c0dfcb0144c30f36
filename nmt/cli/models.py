"""What the options say that name models and say how they compute: device, precision and shortlist.

What translates is imported only if there is a model, since that takes longer than scoring a file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.outputs import Files
from nmt.config.schema import EnsembleName
from nmt.devices import device_name
from nmt.errors import collected, nothing_at

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class Models:
    """The models to load, one or an ensemble, and how they compute."""

    paths: Sequence[Path] = ()
    device: str = "cpu"
    precision: str | None = None
    shortlist: Path | None = None
    ensemble: EnsembleName | None = None

    @property
    def files(self) -> Files:
        """The files that no output may replace, with their options."""
        return [*kept(self.paths), ("--shortlist", self.shortlist)]

    def load(self) -> "Translator":
        """Load the translator. Raises UserError if a file is damaged."""
        from nmt.decoding.translator import Translator

        how = {name: value for name, value in vars(self).items() if name != "paths"}
        return Translator.load(self.paths, **how)


def read_models(
    options: Mapping[str, Any],
    problems: list[str],
    place: Callable[[str], str] = lambda device: device,
) -> Models:
    """Read which models to load, and no more of them than their heads. `place` chooses among devices of a kind."""
    from nmt.models.model_file import is_export

    paths = read_model_paths(options["model"], problems)
    name, shortlist, ensemble = options["device"], options.get("shortlist"), options["ensemble"]
    device = "cpu"
    if options["model"] or name is not None:
        with collected(problems):
            if name in (None, "auto"):
                name = "cpu" if any(map(is_export, paths)) else "auto"
            device = place(device_name(name))
    if shortlist is not None and not shortlist.is_file():
        missing = nothing_at(shortlist) or f"{shortlist}: is not a file"
        problems.append(f"--shortlist {missing}; make one with nmt-shortlist")
    if ensemble is not None and len(paths) == 1:
        problems.append("--ensemble has an effect only with several models: give --model several times")
    return Models(paths, device, options.get("precision"), shortlist, ensemble)


def languages_of(path: Path) -> tuple[str, str]:
    """What a model translates from and to, by the head of its file alone. Raises UserError where that is damaged."""
    from nmt.models.model_file import load_head

    data = load_head(path).config.data
    return data.source_language, data.target_language


def read_model_paths(paths: Sequence[Path] | None, problems: list[str]) -> list[Path]:
    """Find the model files, some perhaps in run folders."""
    models = []
    for path in paths or ():
        from nmt.models.model_file import model_path

        models.append(path)
        with collected(problems):
            models[-1] = model_path(path)
    return models


def kept(models: Sequence[Path]) -> Files:
    """What no output may replace, with options: model files, and what else training has left in their folders."""
    if not models:
        return []
    from nmt.training.run_folder import CHECKPOINTS, CONFIG, LOG, removable

    names = ["--model", *(f"--model number {number}" for number in range(2, len(models) + 1))]
    folders = dict.fromkeys(path.parent.parent if path.parent.name == CHECKPOINTS else path.parent for path in models)
    runs = [folder for folder in folders if (folder / CONFIG).is_file()]
    files = [file for run in runs for file in (run / CONFIG, run / LOG, *removable(run))]
    return [*zip(names, models, strict=True), *(("a file of the model's run,", file) for file in files)]
