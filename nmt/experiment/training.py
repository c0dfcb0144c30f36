"""A training from its request to the best model: corpora → model → trainer, in a run folder with a lock and a log.

The warnings of `doubts` come first; nothing of a former run is removed before the new one has all that it needs.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from nmt.config import Config, dump_config
from nmt.data.cache import Log
from nmt.data.planning import mixture
from nmt.data.prepare import Prepared, prepare
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError, counted
from nmt.experiment.candidates import build_candidates
from nmt.experiment.doubts import doubts_of_references, doubts_of_start, doubts_of_updates
from nmt.experiment.logs import logging_to
from nmt.experiment.request import Request
from nmt.experiment.validation import build_validation
from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.ops.memory import enough_memory
from nmt.processes import Processes, joined, started_by
from nmt.signals import Interrupted, handled, leaving, reporting
from nmt.training.dry_run import describe, parameters
from nmt.training.finetuning import freeze, parts
from nmt.training.new_vocabulary import vocabulary_report, with_vocabularies
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.pretrained import Pretrained, freeze_pretrained, read_pretrained, start_from
from nmt.training.records import Records
from nmt.training.run_files import has_state
from nmt.training.run_folder import RunFolder
from nmt.training.states import SavedStates, saved_state
from nmt.training.trainer import Trainer
from nmt.training.update import chosen_computing


class Trained(NamedTuple):
    """A training that has ended.

    `folder`: the run folder; `model`: the file of its best model; `validation`: that model's metrics on the validation
    corpus, such as loss, perplexity, and bleu, and those of watched corpora, such as old.bleu (none where the model
    cannot be read, and in processes of torchrun other than the first); `finished`: why training ended, such as "16
    epochs"; `minutes`: of training and validation, over all sittings.
    """

    folder: Path
    model: Path
    validation: dict[str, float]
    finished: str
    minutes: float


def run(request: Request) -> Trained:
    """Train as the request says, as one of the processes of the job.

    Raises UserError for what the user can mend, and Interrupted, with the state saved, when a signal asks to stop.
    """
    with _explained(request.output):
        trained = _run_as_one(request)
    if isinstance(trained, Interrupted):
        raise trained
    return trained


def dry_run(request: Request, log: Log) -> Iterator[str]:
    """What the training would be, line by line; warnings go to `log`. Raises UserError like `train`."""
    with _explained(request.output):
        _warn(log, doubts_of_start(request))
        prepared = _prepare(request, log)
        _warn(log, doubts_of_updates(request, prepared))
        _tell_vocabulary(request, prepared, log)
        pretrained = read_pretrained(request.config.model, prepared.vocabularies)
        for line in pretrained.report:
            log(line)
        candidates = build_candidates(request.config, prepared.vocabularies, request.device)
        yield from describe(request.config, prepared, _model(request, prepared, pretrained), candidates)


def _run_as_one(request: Request) -> Trained | Interrupted:
    """Open the run folder and train in it as one of the processes."""
    program = request.program or "nmt.train"
    with joined(request.device, program=program, patience=request.patience) as (processes, device):
        request = replace(request, device=device)
        trained = _train_as_first(request, processes) if processes.is_first else _train_as_another(request, processes)
        processes.wait()  # a process that leaves early takes its connections with it
        return trained


def _train_as_another(request: Request, processes: Processes) -> Trained | Interrupted:
    processes.wait_until_prepared()
    with RunFolder.follow(request.output) as folder:
        return _train(request, folder, lambda _: None, processes)


def _train_as_first(request: Request, processes: Processes) -> Trained | Interrupted:
    with (
        RunFolder.open(
            request.output,
            request.config,
            resume=request.resume,
            overwrite=request.overwrite,
            config_file=request.config_path,
            origin=request.origin and request.origin.path,
            job=started_by(),
        ) as folder,
        logging_to(folder.log_path) as log,
    ):
        for warning in folder.warnings:
            log(f"warning: {warning}")
        prepared = pretrained = None
        if processes.size > 1 or request.overwrite:
            prepared = _prepare(request, log)
            if folder.replaces:  # all that the new run needs, before the former one is gone
                pretrained = read_pretrained(request.config.model, prepared.vocabularies)
                _model(request, prepared, pretrained)  # which may not fit into the memory
            if (replaced := folder.overwrite()) is not None:
                log(replaced)
            processes.tell_prepared()
        return _train(request, folder, log, processes, prepared, pretrained)


@contextmanager
def _explained(output: Path) -> Iterator[None]:
    """Turn what the user can fix, on the disk or with smaller batches, into a UserError."""
    advice = "lower data.max_length, training.batch_size (accumulate can make up for it), or the sizes in model"
    what = " for this model and one sentence pair, or for a process's share of a batch"
    try:
        with enough_memory(advice, what=what):
            yield
    except BrokenPipeError:
        raise
    except OSError as error:
        saved = "; what the run had saved is intact: fix this and continue with --resume" if has_state(output) else ""
        raise UserError(f"{error.filename or output}: {error.strerror or error}{saved}") from error


def _train(
    request: Request,
    folder: RunFolder,
    log: Log,
    processes: Processes,
    prepared: Prepared | None = None,
    pretrained: Pretrained | None = None,
) -> Trained | Interrupted:
    """Train in an open run folder as one of the processes, on data that may be `prepared` and vectors `pretrained`."""
    config, origin, device = request.config, request.origin, request.device
    threads = counted(torch.get_num_threads(), "thread")
    log(f"run folder {folder.path}, {device}, PyTorch {torch.__version__}, {threads}")
    state = saved_state(folder, processes, log)
    if state is None:
        if request.resume:
            log(f"nothing to resume: {folder.path.absolute()} has no saved state; training starts from the beginning")
        _warn(log, doubts_of_start(request))
    if processes.size > 1:
        log(f"{processes.size} processes, each with its share of every batch")
    log(f"training with {chosen_computing(config.training, device)}")
    if prepared is None:
        prepared = _prepare(request, log)
    processes.check_same("configuration", dump_config(config))
    config = folder.config or config
    processes.check_same("corpus", _fingerprint(prepared))
    processes.check_same("saved state", "none" if state is None else f"of update {state.numbers['progress']['update']}")
    if state is None:
        _warn(log, doubts_of_updates(request, prepared))
        pretrained = pretrained or read_pretrained(config.model, prepared.vocabularies)
        processes.check_same("pretrained embeddings", pretrained.fingerprint)
        for line in pretrained.report:
            log(line)
    model = _model(request, prepared, pretrained)
    for line in parameters(model):
        log(line)
    if origin is not None and state is None:
        log(f"starting from the weights of {origin.path}")
        _tell_vocabulary(request, prepared, log)
    states = SavedStates(
        folder=folder,
        config=config,
        model=model,
        optimizer=build_optimizer(model.parameters(), config.training, parts(model)),
        schedule=build_schedule(config.training),
        data=_fingerprint(prepared),
        processes=processes,
    )
    progress = states.start(state, log)
    saved = {} if state is None else state.numbers
    trainer = Trainer(
        states=states,
        corpus=prepared.train,
        vocabularies=prepared.vocabularies,
        progress=progress,
        records=Records(folder.path, config, saved, progress, log) if processes.is_first else None,
        validate=build_validation(config, prepared, device, processes),
        write_model=partial(_write_model, config, prepared.vocabularies, _longest_source(request, prepared)),
        log=log,
        progress_bar=partial(_progress_bar, shown=processes.is_first),
        candidates=build_candidates(config, prepared.vocabularies, device),
    )
    try:
        with nullcontext() if request.program is None else handled(leaving(request.program)):
            trainer.train()
    except Interrupted as interruption:
        with reporting():
            log(f"{interruption}; the state is saved, continue with --resume")
        return interruption
    finished, minutes = progress.finished or "", progress.seconds / 60
    log(f"finished: {finished}, {minutes:.1f} minutes; the best model is {folder.best_path}")
    validation: dict[str, float] = {}
    if processes.is_first:
        try:
            validation = load_model(folder.best_path).training["validation"]
        except UserError as error:  # such as weights of a training that diverged, and was not to be stopped for it
            log(f"warning: {error}")
    return Trained(folder.path, folder.best_path, validation, finished, minutes)


def _prepare(request: Request, log: Log) -> Prepared:
    is_new = request.origin is None or request.config.training.vocabulary == "new"
    vocabularies = None if request.origin is None or is_new else request.origin.vocabularies
    prepared = prepare(request.config, cache=request.cache, log=log, vocabularies=vocabularies)
    _warn(log, doubts_of_references(request.config, prepared.vocabularies.target))
    for line in mixture(request.config.data.train, prepared.train.sizes):
        log(line)
    return prepared


def _warn(log: Log, warnings: Sequence[str]) -> None:
    for warning in warnings:
        log(f"warning: {warning}")


def _fingerprint(prepared: Prepared) -> str:
    """What the data was made from: the cache names folders by corpus files, subword models and filters."""
    corpora = [prepared.train, prepared.valid, *(watched.ids for watched in prepared.watched)]
    return " ".join(corpus.folder.name for corpus in corpora)


def _model(request: Request, prepared: Prepared, pretrained: Pretrained | None) -> Seq2Seq:
    """The model to train: drawn from the seed and `pretrained`, or with the weights of the model to start from."""
    torch.manual_seed(request.config.seed)
    source, target = prepared.vocabularies
    model = build_model(request.config.model, source_size=source.size, target_size=target.size)
    if request.origin is not None:
        weights, known, vocabularies = request.origin.model.weights, request.origin.vocabularies, prepared.vocabularies
        if vocabularies is not known:
            weights = with_vocabularies(weights, known, vocabularies)
        model.load_state_dict(weights)
        freeze(model, request.config.training.freeze)
    if pretrained is not None:
        start_from(pretrained, model, request.config.model)
    freeze_pretrained(model, request.config.model)
    return model.to(request.device).train()


def _tell_vocabulary(request: Request, prepared: Prepared, log: Log) -> None:
    """Say how many pieces of another vocabulary than its own the model to start from knows."""
    if request.origin is not None and prepared.vocabularies is not request.origin.vocabularies:
        for line in vocabulary_report(request.origin.vocabularies, prepared.vocabularies):
            log(line)


def _longest_source(request: Request, prepared: Prepared) -> int:
    """The pieces of the longest source line that the model has been trained on, also before this run."""
    before = 0 if request.origin is None else longest_trained(request.origin.model)
    return max(before, int(prepared.train.source_lengths.max(initial=0)))


def _write_model(
    config: Config, vocabularies: Vocabularies, longest: int, path: Path, model: Seq2Seq, training: dict[str, Any]
) -> None:
    source, target = vocabularies
    sizes, training = (source.size, target.size), {**training, LONGEST_SOURCE: longest}
    save_model(path, ModelFile(config, model.state_dict(), source.model, target.model, sizes, training))


def _progress_bar(epoch: int, done: int, batches_in_all: int, *, shown: bool) -> "tqdm[Any]":
    """A bar on a terminal, nothing elsewhere."""
    hidden = None if shown and sys.stderr is not None else True  # None: where there is no terminal
    return tqdm(desc=f"epoch {epoch}", initial=done, total=batches_in_all, unit="batch", leave=False, disable=hidden)
