"""nmt-train: one configuration file → a trained model in a run folder.

Wiring only: configuration → data → model → trainer, in a run folder that is locked and logged to.
"""

import sys

if __name__ == "__main__":  # before what takes seconds to import, so that Ctrl-C is answered meanwhile
    from nmt.cli import start

    sys.exit(start.train())

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli.common import run
from nmt.cli.logs import logging_to
from nmt.cli.training_request import PROGRAM, checked, parser, rank_timeout, run_folder_path
from nmt.cli.validation import build_validation
from nmt.config import Config, dump_config, json_schema
from nmt.data.preparation import Log, Prepared, prepare
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError
from nmt.jobs.stopping import Interrupted, handled, leaving, telling
from nmt.jobs.torchrun import is_silent, job
from nmt.models.model_file import ModelFile, save_model
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.ops.memory import out_of_memory
from nmt.training.best_model import mend_best
from nmt.training.distributed import LostProcess, Processes, joined
from nmt.training.dry_run import describe, parameters
from nmt.training.finetuning import Origin, freeze, load_weights
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.run_files import STATES
from nmt.training.run_folder import RunFolder
from nmt.training.states import saved_state
from nmt.training.trainer import Trainer
from nmt.training.update import chosen_computing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(arguments)
    return run(PROGRAM, lambda: _train(options))


def _train(options: argparse.Namespace) -> int | None:
    if options.print_schema:
        _print(json.dumps(json_schema(list(SCORES)), indent=2, ensure_ascii=False))
        return None
    if options.config is None:
        raise UserError("--config FILE is missing; configs/ has examples")
    try:
        return _train_checked(options, *checked(options))
    except UserError as error:
        if is_silent() and not isinstance(error, LostProcess):
            return 2
        raise


def _train_checked(
    options: argparse.Namespace, config: Config, origin: Origin | None, device: torch.device
) -> int | None:
    output = run_folder_path(options, config)
    with _explained(output):
        cache = config.data.cache_folder or output.parent / ".cache"
        if options.dry_run:
            if not is_silent():
                _dry_run(config, cache, origin, device)
            return None
        with joined(device, program=PROGRAM, patience=rank_timeout(options.rank_timeout)) as (processes, device):
            if not processes.is_first:
                processes.wait_until_prepared()
                with RunFolder.follow(output) as folder:
                    return _run(config, cache, folder, origin, device, lambda _: None, processes)
            path = origin and origin.path
            with (
                RunFolder.open(
                    output,
                    config,
                    resume=options.resume,
                    overwrite=options.overwrite,
                    given=options.config,
                    origin=path,
                    job=job(),
                ) as folder,
                logging_to(folder.log_path) as logger,
            ):
                for warning in folder.warnings:
                    logger.warning(f"warning: {warning}")
                prepared = None
                if processes.size > 1 or options.overwrite:
                    prepared = _prepare(config, cache, origin, logger.info)
                    if (replaced := folder.overwrite()) is not None:
                        logger.info(replaced)
                    processes.tell_prepared()
                return _run(config, cache, folder, origin, device, logger.info, processes, prepared)


@contextmanager
def _explained(output: Path) -> Iterator[None]:
    """Turn what the user can mend, on the disk or with smaller batches, into a UserError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        resumable = any((output / name).exists() for name in STATES)
        saved = "; what the run had saved is intact: mend this and continue with --resume" if resumable else ""
        raise UserError(f"{error.filename or output}: {error.strerror or error}{saved}") from error
    except (torch.cuda.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
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
    prepared: Prepared | None = None,
) -> int:
    """Train in an open run folder, as one of the processes, on the data that may be `prepared` already."""
    log(f"run folder {folder.path}, {device}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    state = saved_state(folder, processes, log)
    if processes.size > 1:
        log(f"{processes.size} processes, each with its share of every batch")
    log(f"training with {chosen_computing(config.training, device)}")
    if prepared is None:
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
        if processes.is_first:
            mend_best(folder, trainer.progress, log, is_averaged=config.training.average_best > 1)
    try:
        with handled(leaving(PROGRAM)):
            progress = trainer.train()
    except Interrupted as interruption:
        with telling():
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
