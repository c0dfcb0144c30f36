"""The request that nmt-train and `nmt.train` make: what to train, from which weights, and where.

All mistakes are found before data is read, and reported at once. What can hardly be meant, or can hardly work, is a
doubt, which stops nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from textwrap import shorten

import torch

from nmt.config.contradictions import contradictions
from nmt.config.loading import Loaded, read_config
from nmt.config.problems import Problem, problem_at
from nmt.config.resuming import continuation
from nmt.config.schema import Config
from nmt.data.corpus import read_lines
from nmt.data.subwords import Subwords
from nmt.decoding.text.languages import CODE, NAMES, code_of
from nmt.devices import choose_device
from nmt.errors import collected, nearest, nothing_at, refuse
from nmt.evaluation.metrics import check_tokenizer
from nmt.evaluation.text_warnings import brevity_warning, format_warnings, normalized_warning
from nmt.examples import data, examples
from nmt.models.combinations import FAMILIES, model_problems, start_warnings
from nmt.signals import PATIENCE
from nmt.text_form import form_of
from nmt.training.optim import steering_metrics
from nmt.training.run_folder import begun_with, has_state, recorded_origin
from nmt.training.starting_weights import Origin, embedding_problems, inherited, load_origin

FIRST_LINES = 1000  # of a file, that tell how all are written


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
    origin = None
    with collected(problems):
        origin = None if init_from is None else load_origin(init_from)
    source = _source(config)
    with collected(problems):
        families = {**FAMILIES, "metric": steering_metrics()}
        loaded = read_config(source.path, settings, families=families, folder=source.folder)
        folder = output or Path("runs") / loaded.config.name
        if init_from is None and resume and (copy := recorded_origin(folder)) is not None:
            origin = load_origin(copy)
        if init_from is None or origin is not None:  # else nothing is known of what it would be completed with
            completed = _completed(loaded, origin, source, folder, resume=resume)
    refuse(problems)
    return Request(
        config=completed,
        config_path=source.path,
        origin=origin,
        device=chosen,
        output=folder,
        resume=resume,
        overwrite=overwrite,
    )


def _completed(loaded: Loaded, origin: Origin | None, source: "_Source", folder: Path, *, resume: bool) -> Config:
    """The configuration with what it inherits from the model to start from. Raises UserError for keys that do not go
    together; but where a run goes on with them, a check that was added later must not end it."""
    config, sources = loaded
    goes_on = resume and has_state(folder)
    differing: list[Problem] = []
    if origin is not None:
        config, differing = inherited(config, origin)
    before = begun_with(folder) if goes_on else None
    now = None if before is None else continuation(before, config)
    is_begun = now is not None and not now.obstacles and not now.lengthened
    if not is_begun:
        sources.refuse(differing)
    problems = [] if is_begun else contradictions(config)
    problems += [*model_problems(config), *source.missing_files(config)]
    unavailable: list[str] = []
    with collected(unavailable):  # on this machine
        check_tokenizer(config.training.validation.tokenize, name="BLEU's tokenizer")
    problems += [problem_at("training.validation.tokenize", message) for message in unavailable]
    about_it = {"training.freeze": config.training.freeze, "training.vocabulary": config.training.vocabulary}
    for key in [key for key, is_given in about_it.items() if is_given and origin is None]:
        problems.append(problem_at(key, "needs --init-from, the model that it is about"))
    problems += [] if goes_on else embedding_problems(config)
    sources.refuse(problems)
    return config


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The file of a configuration, and the folder that paths in it are relative to."""

    path: Path
    folder: Path
    is_example: bool

    def missing_files(self, config: Config) -> list[Problem]:
        """Files of the corpora that are not there; of an example without any, where it has them from."""
        pairs = config.data.corpora()
        files = {f"{key}.{side}": path for key, pair in pairs.items() for side, path in pair if isinstance(path, Path)}
        problems = [problem_at(key, missing) for key, path in files.items() if (missing := nothing_at(path))]
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


# --------------------------------------------------------------------------------------------------------------- doubts


def doubts_of_start(request: Request) -> list[str]:
    """Of languages without a code, or other ones than those of the model to start from, and of weights from which a
    model hardly learns; another one's have learned."""
    warnings = []
    for key in ("source_language", "target_language"):
        name = getattr(request.config.data, key)
        if CODE.fullmatch(name) is None:
            near = nearest(name, list(NAMES.values()))
            hint = f"; {near} is {code_of(near)}" if near else ", such as de"
            warnings.append(f"data.{key} is {name!r}; sentences and glossaries need the code of a language{hint}")
        if request.origin is not None and (before := getattr(request.origin.model.config.data, key)) != name:
            warnings.append(f"data.{key} is {name}, and that of the model to start from is {before}; is this meant?")
    if request.origin is not None:
        return warnings
    warnings += start_warnings(request.config.model, request.config.training)
    if request.config.training.minimum_risk is not None:
        warnings.append(
            "training.minimum_risk learns from translations of the model, which mean nothing at first; give a trained "
            "model with --init-from"
        )
    return warnings


def doubts_of_references(config: Config, target: Subwords) -> list[str]:
    """Of references that BLEU, as validation computes it, cannot take apart as it should, or that no model with these
    subwords can write."""
    validation = config.training.validation
    corpora = {"validation references": config.data.valid}
    corpora |= {f"references of {watched.name}": watched for watched in config.data.watch}
    warnings: list[str] = []
    for name, files in corpora.items():
        lines = [target.whole_words(line) for line in islice(read_lines(files.target), FIRST_LINES)]
        warnings += normalized_warning(name, lines, [target.normalized(line) for line in lines])
        option, cure = "training.validation.tokenize", "set subwords.joiner, or join the pieces"
        form = form_of(lines, name=name)
        warnings += format_warnings(form, validation.tokenize, option=option, cure=cure).values()
        warnings += brevity_warning(form, validation.tokenize if validation.metric == "bleu" else None)
    return warnings
