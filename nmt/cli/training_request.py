"""The options of nmt-train, and the request they make: what to train, from which weights, and where.

All mistakes are found before data is read, and reported at once.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import shorten

import torch

from nmt.cli.common import DEVICES, choose_device
from nmt.cli.options import number_in
from nmt.config import Check, Config, Inheritance, Problem, load_config, unknown_names
from nmt.errors import Checking, UserError, caught, checked
from nmt.evaluation.metrics import check_tokenizer
from nmt.models.combinations import model_problems
from nmt.training.distributed import PATIENCE
from nmt.training.finetuning import Origin, inherited, load_origin
from nmt.training.optim import steering_metrics
from nmt.training.pretrained import embedding_problems
from nmt.training.run_files import STATES
from nmt.training.run_folder import as_begun, recorded_origin

PROGRAM = "nmt-train"
USUAL_MINUTES = f"{PATIENCE.total_seconds() / 60:g}"  # of waiting for another process
LEAST_MINUTES, MOST_MINUTES = 0.1, 10_000


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        allow_abbrev=False,
        description="Train a translation model from one configuration file.",
        epilog="Exit codes: 0 trained (or nothing left to do), 2 a mistake in what was given, or a training that "
        "diverged, 128 + N stopped by signal N, once training has begun with the state saved, 1 a failure of the "
        "program. Several processes: torchrun --nproc-per-node N -m nmt.cli.train and these options.",
    )
    made.add_argument("--config", type=Path, metavar="FILE", help="the configuration, a YAML file; required")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="set a key of the configuration, such as model.decoder.hidden_size=512; may be given several times",
    )
    made.add_argument("--output", type=Path, metavar="DIR", help="the run folder (default: runs/<name>)")
    made.add_argument("--resume", action="store_true", help="continue the run in the folder; start it if there is none")
    made.add_argument(
        "--overwrite",
        action="store_true",
        help="begin a new run in the folder whatever it holds: remove a former run's states, models, checkpoints and "
        "metrics, and tell which; other files, and the log, stay",
    )
    made.add_argument(
        "--init-from", type=Path, metavar="MODEL", help="fine-tune: start from a model file's or run folder's weights"
    )
    made.add_argument("--dry-run", action="store_true", help="read everything, report, and train nothing")
    made.add_argument("--device", choices=DEVICES, default="auto", help="where to compute (default: auto)")
    made.add_argument(
        "--rank-timeout",
        default=USUAL_MINUTES,
        metavar="MINUTES",
        help="with several processes: end when another one has not answered for this long, because it hangs; the state "
        f"that was saved last is kept (default: {USUAL_MINUTES})",
    )
    made.add_argument("--print-schema", action="store_true", help="print the JSON schema of the configuration and exit")
    return made


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
    dry_run: bool
    patience: timedelta  # with other processes

    @property
    def cache(self) -> Path:
        """The folder of prepared data."""
        return self.config.data.cache_folder or self.output.parent / ".cache"


def read_request(options: argparse.Namespace) -> Checking[Request]:
    """Check the arguments, and read the configuration and the model to start from."""
    device = yield from caught(lambda: choose_device(options.device), torch.device("cpu"))
    patience = yield from caught(lambda: rank_timeout(options.rank_timeout), PATIENCE)
    if options.resume and options.overwrite:
        yield "--resume and --overwrite contradict each other: continue the run, or begin another"
    start = _Start(options.init_from, resumed=options.resume, output=options.output)
    try:
        checks: list[Check] = [model_problems, _metric_problems, _tokenizer_problem]
        checks += [start.freeze_problem, start.embedding_problems]
        config = load_config(options.config, options.overrides, checks, start.inherit)
    finally:
        yield from start.problems
    return Request(
        config=config,
        config_path=options.config,
        origin=start.origin,
        device=device,
        output=_run_folder(options.output, config),
        resume=options.resume,
        overwrite=options.overwrite,
        dry_run=options.dry_run,
        patience=patience,
    )


def rank_timeout(text: str) -> timedelta:
    """How long to wait for another process. Raises UserError if `text` is not an allowed number of minutes."""
    minutes = number_in(text)
    if minutes is not None and LEAST_MINUTES <= minutes <= MOST_MINUTES:
        return timedelta(minutes=minutes)
    raise UserError(
        f"--rank-timeout {shorten(text, 40)}: allowed: a number of minutes, at least {LEAST_MINUTES} and at most "
        f"{MOST_MINUTES:,}"
    )


def _run_folder(output: Path | None, config: Config) -> Path:
    return output or Path("runs") / config.name


def _metric_problems(config: Config) -> Iterator[Problem]:
    """Metrics by which no training can be steered."""
    yield from unknown_names(config.training, {"metric": steering_metrics()}, ("training",))


def _tokenizer_problem(config: Config) -> Iterator[Problem]:
    """Whether BLEU can be computed on this machine."""
    try:
        check_tokenizer(config.training.validation.tokenize, name="BLEU's tokenizer")
    except UserError as error:
        yield Problem(("training", "validation", "tokenize"), "; ".join(error.messages))


class _Start:
    """The model to start from: that of --init-from, or the one from which the run to resume started.

    `problems` says what is wrong with its file.
    """

    def __init__(self, model: Path | None, *, resumed: bool, output: Path | None) -> None:
        self.origin: Origin | None = None
        self.problems: Sequence[str] = ()
        self._resumed, self._output = resumed, output
        self._load(model)

    def _load(self, model: Path | None) -> None:
        self._model = model
        if model is not None:
            try:
                self.origin = checked(caught(lambda: load_origin(model), None))
            except UserError as error:
                self.problems = error.messages

    def inherit(self, config: Config) -> Inheritance:
        """The configuration with what it inherits from the model; for `load_config`."""
        if self._model is None and self._resumed:
            self._load(recorded_origin(_run_folder(self._output, config)))
        if self._resumed:
            config = as_begun(config, _run_folder(self._output, config))
        if self.origin is not None:
            return inherited(config, self.origin)
        return Inheritance(config, doubtful=[] if self._model is None else [("model",), ("subwords",)])

    def embedding_problems(self, config: Config) -> Iterator[Problem]:
        """Files of vectors that cannot be read; a run that is resumed needs them no more."""
        output = _run_folder(self._output, config)
        if not (self._resumed and any((output / name).exists() for name in STATES)):
            yield from embedding_problems(config)

    def freeze_problem(self, config: Config) -> Iterator[Problem]:
        """Frozen parts need weights to keep."""
        if config.training.freeze and self._model is None:
            message = "needs --init-from; freezing weights that were never trained is of no use"
            yield Problem(("training", "freeze"), message, (("name",),) if self._resumed else ())
