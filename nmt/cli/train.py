"""nmt-train: one configuration file → a trained model in a run folder.

Wiring only: configuration → data → model → trainer, in a run folder that is locked and logged to.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli.common import DEVICES, choose_device, run
from nmt.cli.logs import logging_to
from nmt.cli.options import collect
from nmt.cli.validation import build_validation
from nmt.config import Check, Config, Inheritance, Problem, dump_config, json_schema, load_config
from nmt.data.preparation import Log, Prepared, prepare
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError
from nmt.evaluation.metrics import check_tokenizer
from nmt.models.checks import model_problems
from nmt.models.model_file import ModelFile, save_model
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.checkpoint import read_state
from nmt.training.distributed import LostProcess, Processes, joined
from nmt.training.dry_run import describe, parameters
from nmt.training.finetuning import Origin, freeze, inherited, load_origin, load_weights
from nmt.training.interruption import Interrupted
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.run_folder import STATE, RunFolder, recorded_origin
from nmt.training.torchrun import is_silent, job
from nmt.training.trainer import Trainer
from nmt.training.update import chosen_computing, out_of_memory

PROGRAM = "nmt-train"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return run(PROGRAM, lambda: _train(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        allow_abbrev=False,
        description="Train a translation model from one configuration file.",
        epilog="Exit codes: 0 trained (or nothing left to do), 2 a mistake in what was given, 130 or 143 stopped by a "
        "signal, once training has begun with the state saved, 1 a failure of the program. Several processes: torchrun "
        "--nproc-per-node N -m nmt.cli.train and these options.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration, a YAML file; required")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="set a key of the configuration, such as model.decoder.hidden_size=512; may be given several times",
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="the run folder (default: runs/<name>)")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run in the folder; start it if there is none"
    )
    parser.add_argument(
        "--init-from", type=Path, metavar="MODEL", help="fine-tune: start from a model file's or run folder's weights"
    )
    parser.add_argument("--dry-run", action="store_true", help="read everything, report, and train nothing")
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where to compute (default: auto)")
    parser.add_argument(
        "--print-schema", action="store_true", help="print the JSON schema of the configuration and leave"
    )
    return parser


def _train(options: argparse.Namespace) -> int | None:
    if options.print_schema:
        _print(json.dumps(json_schema(list(SCORES)), indent=2, ensure_ascii=False))
        return None
    if options.config is None:
        raise UserError("--config FILE is missing; configs/ has examples")
    try:
        return _train_checked(options, *_checked(options))
    except UserError as error:
        if is_silent() and not isinstance(error, LostProcess):
            return 2
        raise


def _checked(options: argparse.Namespace) -> tuple[Config, Origin | None, torch.device]:
    """What is to be trained, from what, and where. Raises UserError with all that is wrong."""
    problems: list[str] = []
    device = collect(problems, lambda: choose_device(options.device))
    start = _Start(options, problems)
    checks: list[Check] = [model_problems, _tokenizer_problem, start.freeze_problem]
    config = collect(problems, lambda: load_config(options.config, options.overrides, checks, start.inherit))
    if problems or config is None or device is None:
        raise UserError(*problems)
    return config, start.origin, device


def _train_checked(
    options: argparse.Namespace, config: Config, origin: Origin | None, device: torch.device
) -> int | None:
    output = _output(options, config)
    with _explained(output):
        cache = config.data.cache_folder or output.parent / ".cache"
        if options.dry_run:
            if not is_silent():
                _dry_run(config, cache, origin, device)
            return None
        with joined(device) as (processes, device):
            if not processes.is_first:
                processes.wait()  # until the first one has the folder and has prepared the data
                with RunFolder.follow(output) as folder:
                    return _run(config, cache, folder, origin, device, lambda _: None, processes)
            path = origin and origin.path
            with (
                RunFolder.open(output, config, resume=options.resume, origin=path, job=job()) as folder,
                logging_to(folder.log_path) as logger,
            ):
                if processes.size > 1:
                    _prepare(config, cache, origin, logger.info)
                    processes.wait()
                return _run(config, cache, folder, origin, device, logger.info, processes)


def _output(options: argparse.Namespace, config: Config) -> Path:
    return options.output or Path("runs") / config.name


def _tokenizer_problem(config: Config) -> Iterator[Problem]:
    """Whether the validation's BLEU can be computed here at all."""
    try:
        check_tokenizer(config.training.validation.tokenize, name="BLEU's tokeniser")
    except UserError as error:
        yield Problem(("training", "validation", "tokenize"), "; ".join(error.messages))


class _Start:
    """The model to start from: the one that was given, or the one that the run to resume started from."""

    def __init__(self, options: argparse.Namespace, problems: list[str]) -> None:
        """What is wrong with the model file is added to `problems`."""
        self._options, self._problems = options, problems
        self.origin: Origin | None = None
        self._wanted = False
        if options.init_from is not None:
            self._load(options.init_from)

    def _load(self, path: Path) -> None:
        self._wanted = True
        self.origin = collect(self._problems, lambda: load_origin(path))

    def inherit(self, config: Config) -> Inheritance:
        """The configuration with what the model decides; to be passed to `load_config`."""
        if self._options.init_from is None and self._options.resume:
            recorded = recorded_origin(_output(self._options, config))
            if recorded is not None:
                self._load(recorded)
        if self.origin is not None:
            return inherited(config, self.origin)
        return Inheritance(config, doubtful=[("model",), ("subwords",)] if self._wanted else [])

    def freeze_problem(self, config: Config) -> Iterator[Problem]:
        """Frozen parts need weights to keep."""
        if config.training.freeze and not self._wanted:
            message = "needs --init-from; freezing weights that were never trained is of no use"
            yield Problem(("training", "freeze"), message, (("name",),) if self._options.resume else ())


@contextmanager
def _explained(output: Path) -> Iterator[None]:
    """Turn what the user can mend, on the disk or with smaller batches, into a UserError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        resumable = (output / STATE).exists()
        saved = "; what the run had saved is intact: mend this and continue with --resume" if resumable else ""
        raise UserError(f"{error.filename or output}: {error.strerror or error}{saved}") from error
    except (torch.cuda.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not out_of_memory(error):
            raise
        raise UserError(
            "the memory does not suffice for this model and one sentence pair, or a process's share of a batch: lower "
            "data.max_length, training.batch_size (accumulate can make up for it), or the sizes in model"
        ) from error


def _dry_run(config: Config, cache: Path, origin: Origin | None, device: torch.device) -> None:
    prepared = _prepare(config, cache, origin, lambda message: print(message, file=sys.stderr))
    for line in describe(config, prepared, _model(config, prepared, origin, device)):
        _print(line)


def _print(line: str) -> None:
    """Write a line to stdout in UTF-8: it may hold characters that the locale lacks, such as the marks of pieces."""
    sys.stdout.buffer.write(f"{line}\n".encode())


def _run(
    config: Config,
    cache: Path,
    folder: RunFolder,
    origin: Origin | None,
    device: torch.device,
    log: Log,
    processes: Processes,
) -> int:
    """Train in an open run folder, as one of the processes."""
    state = read_state(folder.state_path) if folder.state_path.exists() else None
    log(f"run folder {folder.path}, {device}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    if processes.size > 1:
        log(f"{processes.size} processes, each with its share of every batch")
    log(f"training with {chosen_computing(config.training, device)}")
    prepared = _prepare(config, cache, origin, log)
    processes.check_same("configuration", dump_config(config))
    processes.check_same("corpus", _fingerprint(prepared))
    processes.check_same("saved state", "none" if state is None else f"of update {state.numbers['progress']['update']}")
    model = _model(config, prepared, origin, device)
    for line in parameters(model):
        log(line)
    if origin is not None and state is None:
        log(f"starting from the weights of {origin.path}")
    trainer = Trainer(
        config=config,
        model=model,
        optimizer=build_optimizer(model.parameters(), config.training),
        schedule=build_schedule(config.training),
        corpus=prepared.train,
        vocabularies=prepared.vocabularies,
        data=_fingerprint(prepared),
        folder=folder,
        state=state,
        validate=build_validation(config, prepared, device, processes),
        write_model=_model_writer(config, prepared.vocabularies),
        log=log,
        progress_bar=partial(_progress_bar, shown=processes.is_first),
        processes=processes,
    )
    if state is not None:
        log(f"resuming after update {trainer.progress.update:,}")
    try:
        progress = trainer.train()
    except Interrupted as interruption:
        log(f"{interruption}; the state is saved, continue with --resume")
        return interruption.exit_code
    log(f"finished: {progress.finished}, {progress.seconds / 60:.1f} minutes; the best model is {folder.best_path}")
    return 0


def _prepare(config: Config, cache: Path, origin: Origin | None, log: Log) -> Prepared:
    return prepare(config, cache=cache, log=log, vocabularies=None if origin is None else origin.vocabularies)


def _fingerprint(prepared: Prepared) -> str:
    """What the data was made from: the cache names a folder by the corpus files, subword models and filters."""
    return f"{prepared.train.folder.name} {prepared.valid.folder.name}"


def _model(config: Config, prepared: Prepared, origin: Origin | None, device: torch.device) -> Seq2Seq:
    """The model to train: drawn from the seed, or with the weights of `origin`."""
    torch.manual_seed(config.seed)
    source, target = prepared.vocabularies
    model = build_model(config.model, source_size=source.size, target_size=target.size)
    if origin is not None:
        load_weights(model, origin)
        freeze(model, config.training.freeze)
    return model.to(device).train()


def _model_writer(config: Config, vocabularies: Vocabularies) -> Callable[[Path, Seq2Seq, dict[str, Any]], None]:
    def write(path: Path, model: Seq2Seq, training: dict[str, Any]) -> None:
        source, target = vocabularies
        sizes = (source.size, target.size)
        save_model(path, ModelFile(config, model.state_dict(), source.model, target.model, sizes, training))

    return write


def _progress_bar(epoch: int, done: int, batches_in_all: int, *, shown: bool) -> "tqdm[Any]":
    """A bar on a terminal, nothing elsewhere."""
    hidden = None if shown else True  # None: where there is no terminal
    return tqdm(desc=f"epoch {epoch}", initial=done, total=batches_in_all, unit="batch", leave=False, disable=hidden)


if __name__ == "__main__":
    sys.exit(main())
