"""The request that nmt-train and `nmt.train` make: what to train, from which weights, and where.

All mistakes are found before data is read, and reported at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import shorten

import torch

from nmt.config import Check, Config, Inheritance, Problem, load_config, moved_files
from nmt.config.schema import ParallelFiles
from nmt.config.yaml_text import KeyPath
from nmt.devices import choose_device
from nmt.errors import UserError, collected, nothing_at, refuse
from nmt.evaluation.metrics import check_tokenizer
from nmt.examples import data, examples
from nmt.models.combinations import FAMILIES, model_problems
from nmt.signals import PATIENCE
from nmt.training.optim import steering_metrics
from nmt.training.run_folder import begun_with, has_state, recorded_origin
from nmt.training.starting_weights import Origin, embedding_problems, inherited, load_origin


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to train, from which weights, and where."""

    config: Config
    config_path: Path
    origin: Origin | None  # the model to start from
    device: torch.device
    output: Path  # the run folder
    resume: bool
    overwrite: bool
    patience: timedelta = timedelta(minutes=PATIENCE)  # with other processes
    program: str | None = None  # the command that a signal ends; None: a program that calls us

    @property
    def cache(self) -> Path:
        """The folder of prepared data."""
        return self.config.data.cache_folder or self.output.parent / ".cache"


def read_request(
    config: Path,
    *,
    settings: Sequence[str] = (),
    output: Path | None = None,
    init_from: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
) -> Request:
    """Read the configuration, which is a file or an example, and the model to start from.

    `settings` are "KEY=VALUE" with VALUE in YAML. The other arguments are those of `nmt.train`. Raises UserError with
    everything that is wrong.
    """
    problems: list[str] = []
    with collected(problems):
        chosen = choose_device(device)
    if resume and overwrite:
        problems.append("--resume and --overwrite contradict each other: continue the run, or begin another")
    start = _Start(init_from, output, resume)
    source = _source(config)
    checks: list[Check] = [model_problems, source.missing_files, _tokenizer_problems]
    checks += [start.missing_model, start.embedding_problems]
    with collected(problems):
        families = {**FAMILIES, "metric": steering_metrics()}
        loaded = load_config(source.path, settings, checks, start.inherit, families=families, folder=source.folder)
    refuse([*start.problems, *problems])
    return Request(
        config=loaded,
        config_path=source.path,
        origin=start.origin,
        device=chosen,
        output=_run_folder(output, loaded),
        resume=resume,
        overwrite=overwrite,
    )


def _run_folder(output: Path | None, config: Config) -> Path:
    return output or Path("runs") / config.name


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The file of a configuration, and the folder that paths in it are relative to."""

    path: Path
    folder: Path
    is_example: bool

    def missing_files(self, config: Config) -> list[Problem]:
        """Files of the corpora that are not there; of an example without any, where it has them from."""
        pairs: dict[KeyPath, ParallelFiles] = {("data", "train", i): pair for i, pair in enumerate(config.data.train)}
        pairs |= {("data", "watch", i): pair for i, pair in enumerate(config.data.watch)}
        pairs["data", "valid"] = config.data.valid
        files = {(*place, key): path for place, pair in pairs.items() for key, path in pair if isinstance(path, Path)}
        problems = [Problem(place, missing) for place, path in files.items() if (missing := nothing_at(path))]
        if self.is_example and len(problems) == len(files):
            hint = f"the example's files are not in this folder; its header says: {shorten(data(self.path), 200)}"
            return [Problem(("data",), hint)]
        return problems


def _source(path: Path) -> _Source:
    """The file that --config names: a file, or an example, whose paths then begin in the current folder.

    Those of a clone's configs/demo.yaml, such as ../data/synthetic/train.en, lead to the clone's data/, and those of
    the example demo to data/ in the current folder, wherever the example was installed.
    """
    example = examples().get(str(path))
    if example is None or (path.exists() and not path.is_dir()):
        return _Source(path=path, folder=path.parent, is_example=False)
    folder = Path("configs", "research") if example.parent.name == "research" else Path("configs")
    return _Source(path=example, folder=Path.cwd() / folder, is_example=True)


def _tokenizer_problems(config: Config) -> list[Problem]:
    """Why BLEU cannot be computed on this machine."""
    try:
        check_tokenizer(config.training.validation.tokenize, name="BLEU's tokenizer")
    except UserError as error:
        return [Problem(("training", "validation", "tokenize"), "; ".join(error.messages))]
    return []


class _Start:
    """The model to start from: that of --init-from, or the one from which the run to resume started.

    `problems` says what is wrong with its file.
    """

    def __init__(self, model: Path | None, output: Path | None, resume: bool) -> None:
        self.origin: Origin | None = None
        self.problems: list[str] = []
        self._output, self._resume = output, resume
        self._load(model)

    def _load(self, model: Path | None) -> None:
        self._model = model
        if model is not None:
            with collected(self.problems):
                self.origin = load_origin(model)

    def inherit(self, config: Config) -> Inheritance:
        """The configuration with what it inherits from the model; for `load_config`."""
        folder, goes_on = _run_folder(self._output, config), self._goes_on(config)
        if self._model is None and self._resume:
            self._load(recorded_origin(folder))
        refuse(self.problems)  # nothing is known of what it would be completed with
        completed = Inheritance(config) if self.origin is None else inherited(config, self.origin)
        before = begun_with(folder) if goes_on else None
        is_begun = before is not None and moved_files(before, completed.config) is not None
        return completed._replace(is_begun=is_begun)

    def embedding_problems(self, config: Config) -> list[Problem]:
        """Files of vectors that cannot be read; a run that is resumed needs them no more."""
        return [] if self._goes_on(config) else embedding_problems(config)

    def _goes_on(self, config: Config) -> bool:
        """Whether a run is resumed that has a state to resume from."""
        return self._resume and has_state(_run_folder(self._output, config))

    def missing_model(self, config: Config) -> list[Problem]:
        """What makes no sense without the weights of a model that has learned something."""
        if self._model is not None:
            return []
        training = config.training
        given: dict[KeyPath, bool] = {
            ("training", "freeze"): bool(training.freeze),
            ("training", "vocabulary"): training.vocabulary != "same",
        }
        message = "needs --init-from, the model that it is about"
        return [Problem(key, message) for key, is_given in given.items() if is_given]
