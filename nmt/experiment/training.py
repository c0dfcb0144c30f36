"""A training from its request to the best model: run folder → corpora → model → trainer.

The doubts of the request come first; nothing of a former run is removed before the new one has all that it needs.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from nmt.config.loading import dump_config
from nmt.config.schema import Config
from nmt.data.cache import Log
from nmt.data.planning import mixture
from nmt.data.prepare import Prepared, prepare
from nmt.errors import UserError, counted
from nmt.experiment.candidates import build_candidates
from nmt.experiment.request import Request, doubts_of_references, doubts_of_start
from nmt.experiment.validation import build_validation
from nmt.files import open_refusing_links
from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.memory import enough_memory
from nmt.processes import ALONE, Processes, joined
from nmt.protected import LEARNED, learned_by
from nmt.signals import Interrupted, handled, leaving, reporting
from nmt.text_form import FORMS, disagreements, source_form
from nmt.training.dry_run import describe, parameters
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.records import Records
from nmt.training.run_folder import RunFolder, has_state
from nmt.training.starting_weights import Origin, read_pretrained, starting_model, vocabulary_report
from nmt.training.states import SavedStates, State, saved_state
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
    program = request.program or "nmt.train"
    with (
        _explained(request.output),
        joined(str(request.device), program=program, patience=request.patience) as (processes, own_device),
    ):
        request = replace(request, device=torch.device(own_device))
        with _run_folder(request, processes) as (folder, log):
            trained = _train(request, folder, log, processes)
        processes.wait()  # a process that leaves early takes its connections with it
    if isinstance(trained, Interrupted):
        raise trained
    return trained


def dry_run(request: Request, log: Log) -> Iterator[str]:
    """What the training would be, line by line; warnings go to `log`. Raises UserError like `train`."""
    with _explained(request.output):
        _warn(log, doubts_of_start(request))
        prepared = _prepare(request, log)
        _report_vocabulary(request, prepared, log)
        model = _model(request, prepared, log)
        folder = RunFolder.follow(request.output)  # in which nothing is written
        yield from describe(prepared, _trainer(request, folder, lambda _: None, ALONE, prepared, model, None))


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


@contextmanager
def _run_folder(request: Request, processes: Processes) -> Iterator[tuple[RunFolder, Log]]:
    """The run folder, which the first process opens, locks, and writes in, and the log, which is that process's."""
    if not processes.is_first:
        processes.wait_until_prepared()
        with RunFolder.follow(request.output) as folder:
            yield folder, lambda _: None
        return
    with (
        RunFolder.open(
            request.output,
            request.config,
            resume=request.resume,
            overwrite=request.overwrite,
            config_file=request.config_path,
            origin=request.origin and request.origin.path,
        ) as folder,
        logging_to(folder.log_path) as log,
    ):
        _warn(log, folder.warnings)
        yield folder, log


def _train(request: Request, folder: RunFolder, log: Log, processes: Processes) -> Trained | Interrupted:
    """Train in an open run folder as one of the processes.

    A former run is overwritten, and the other processes begin, once the first has all that the run needs.
    """
    threads = counted(torch.get_num_threads(), "thread")
    log(f"run folder {folder.path}, {request.device}, PyTorch {torch.__version__}, {threads}")
    is_new = folder.replaces or not has_state(folder.path)
    if is_new:
        if request.resume:
            log(f"nothing to resume: {folder.path.absolute()} has no saved state; training starts from the beginning")
        _warn(log, doubts_of_start(request))
    if processes.size > 1:
        log(f"{processes.size} processes, each with its share of every batch")
    log(f"training with {chosen_computing(request.config.training, request.device)}")
    state = None if folder.replaces else saved_state(folder, processes, log)  # first: it may be damaged
    prepared = _prepare(request, log)
    model = _model(request, prepared, log, is_new=is_new)  # which may not fit into the memory
    if processes.is_first:
        if (replaced := folder.overwrite()) is not None:
            log(replaced)
        processes.tell_prepared()
    if processes.size > 1:
        processes.check_same("configuration", dump_config(request.config))
        processes.check_same("corpus", _fingerprint(prepared))
        processes.check_same("saved state", "none" if state is None else f"of update {state.update}")
    for line in parameters(model):
        log(line)
    if request.origin is not None and state is None:
        log(f"starting from the weights of {request.origin.path}")
        _report_vocabulary(request, prepared, log)
    trainer = _trainer(request, folder, log, processes, prepared, model, state)
    if processes.is_first:
        trainer.records = Records(folder.path, {} if state is None else state.numbers, trainer.progress, log)
    try:
        with nullcontext() if request.program is None else handled(leaving(request.program)):
            trainer.train()
    except Interrupted as interruption:
        with reporting():
            log(f"{interruption}; the state is saved, continue with --resume")
        return interruption
    return _trained(trainer, log)


def _trainer(
    request: Request,
    folder: RunFolder,
    log: Log,
    processes: Processes,
    prepared: Prepared,
    model: Seq2Seq,
    state: State | None,
) -> Trainer:
    """The trainer of the model, from the saved state on."""
    config = folder.config or request.config  # that the run began with, whose files may be elsewhere now
    states = SavedStates(
        folder=folder,
        config=config,
        model=model,
        optimizer=build_optimizer(model.parameters(), config.training),
        schedule=build_schedule(config.training),
        data=_fingerprint(prepared),
        processes=processes,
    )
    progress = states.start(state, log)
    return Trainer(
        states=states,
        corpus=prepared.train,
        vocabularies=prepared.vocabularies,
        progress=progress,
        records=None,
        validate=build_validation(request.config, prepared, request.device, processes),
        write_model=partial(_write_model, config, prepared, request.origin),
        log=log,
        progress_bar=partial(progress_bar, is_shown=processes.is_first),
        candidates=build_candidates(config, prepared.vocabularies),
        begins_trained=request.origin is not None and config.training.vocabulary != "new",
    )


def _trained(trainer: Trainer, log: Log) -> Trained:
    """What a training that has ended was, also in the log."""
    progress, folder = trainer.progress, trainer.folder
    finished, minutes = progress.finished or "", progress.seconds / 60
    log(f"finished: {finished}, {minutes:.1f} minutes; the best model is {folder.best_path}")
    validation: dict[str, float] = {}
    if trainer.processes.is_first:
        try:
            best = load_model(folder.best_path).training
            validation = best["validation"]
            if not best["updates"] and progress.update:
                log("warning: no validation was better than that of the model it started from, which is the best one")
        except UserError as error:  # such as weights of a training that diverged, and was not to be stopped for it
            log(f"warning: {error}")
    return Trained(folder.path, folder.best_path, validation, finished, minutes)


def _prepare(request: Request, log: Log) -> Prepared:
    is_new = request.origin is None or request.config.training.vocabulary == "new"
    vocabularies = None if request.origin is None or is_new else request.origin.vocabularies
    prepared = prepare(request.config, cache=request.cache, log=log, vocabularies=vocabularies)
    _warn(log, doubts_of_references(request.config, prepared.vocabularies.target))
    if request.origin is not None:
        before = request.origin.model.training
        if (form := source_form(before)) is not None:
            _warn(log, [*disagreements(prepared.forms[0], form).values()])
        prepared = prepared._replace(learned=learned_by(before, {LEARNED: prepared.learned}))
    for line in mixture(request.config.data.train, prepared.train.sizes, prepared.train.weights):
        log(line)
    return prepared


def _warn(log: Log, warnings: Sequence[str]) -> None:
    for warning in warnings:
        log(f"warning: {warning}")


def _fingerprint(prepared: Prepared) -> str:
    """What the data was made from: the cache names folders by corpus files, subword models and filters."""
    corpora = [prepared.train, prepared.valid, *prepared.watched.values()]
    return " ".join(corpus.folder.name for corpus in corpora)


def _model(request: Request, prepared: Prepared, log: Log, *, is_new: bool = True) -> Seq2Seq:
    """The model on its device; a new one has the pretrained embeddings, which are read for no other."""
    pretrained = read_pretrained(request.config.model, prepared.vocabularies) if is_new else []
    for table in pretrained:
        log(table.report)
    model = starting_model(request.config, prepared.vocabularies, request.origin, pretrained)
    return model.to(request.device).train()


def _report_vocabulary(request: Request, prepared: Prepared, log: Log) -> None:
    """Say how many pieces of another vocabulary than its own the model to start from knows."""
    if request.origin is not None and prepared.vocabularies != request.origin.vocabularies:
        for line in vocabulary_report(request.origin.vocabularies, prepared.vocabularies):
            log(line)


def _write_model(
    config: Config, prepared: Prepared, origin: Origin | None, path: Path, model: Seq2Seq, training: dict[str, Any]
) -> None:
    """Before its first update, a model has learned from the text of `origin` alone."""
    source, target = prepared.vocabularies
    if origin is not None and not training["updates"]:
        corpus = {key: origin.model.training.get(key) for key in (LONGEST_SOURCE, FORMS, LEARNED)}
    else:
        before = 0 if origin is None else longest_trained(origin.model)
        longest = max(before, int(prepared.train.source_lengths.max(initial=0)))
        corpus = {LONGEST_SOURCE: longest, FORMS: [form.counts for form in prepared.forms], LEARNED: prepared.learned}
    sizes, training = (source.size, target.size), {**training, **corpus}
    save_model(path, ModelFile(config, model.state_dict(), source.model, target.model, sizes, training))


# ------------------------------------------------------------------------------------------------------------ the log


@contextmanager
def logging_to(path: Path) -> Iterator[Log]:
    """A function that appends a line to the file, unless it is a link, and writes it to stderr above a progress bar.

    It raises OSError if the file cannot be written, as on a full disk. A terminal that has gone away (a closed
    session, `| head`) does not end the training: the file has every line.
    """
    with open_refusing_links(path, "a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:

        def log(message: str) -> None:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")
            file.flush()
            if sys.stderr is not None:
                with suppress(OSError, ValueError):
                    tqdm.write(message, file=sys.stderr)

        yield log


def progress_bar(epoch: int, done: int, batches: int, *, is_shown: bool) -> "tqdm[Any]":
    """A line on a terminal that shows how far the epoch is; nothing elsewhere."""
    hidden = None if is_shown and sys.stderr is not None else True  # None: where there is no terminal
    return tqdm(
        desc=f"epoch {epoch}",
        initial=done,
        total=batches,
        leave=False,
        disable=hidden,
        dynamic_ncols=True,
        bar_format="{desc}: {percentage:3.0f}% of {total_fmt} batches, {remaining} left{postfix}",
    )
