"""nmt-train: one configuration file → a trained model in a run folder.

Wiring only: configuration → data → model → trainer, in a run folder that is locked and logged to.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.train())

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli.common import enough_memory, run
from nmt.cli.logs import logging_to
from nmt.cli.outputs import STANDARD, write_text
from nmt.cli.parsers.parser import say
from nmt.cli.parsers.train import PROGRAM, parser
from nmt.cli.training_candidates import build_candidates
from nmt.cli.training_request import Request, read_request
from nmt.cli.validation_metrics import build_validation
from nmt.config import Config, dump_config, json_schema
from nmt.config.contradictions import doubts
from nmt.data.batching import unfilled
from nmt.data.corpus import read_lines
from nmt.data.mixing import mixture
from nmt.data.preparation import Log, Prepared, prepare
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import ToldElsewhere, UserError, checked, counted
from nmt.evaluation.text_warnings import format_warnings, normalized_warning
from nmt.jobs.stopping import Interrupted, handled, is_heard, leaving, telling
from nmt.jobs.team import told_by_the_first
from nmt.jobs.torchrun import job
from nmt.models.combinations import FAMILIES, start_warnings
from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model, longest_trained, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.symbols import UNKNOWN
from nmt.training.distributed import LostProcess, Processes, joined
from nmt.training.dry_run import describe, parameters
from nmt.training.finetuning import freeze, language_warning, parts
from nmt.training.new_vocabulary import vocabulary_report, with_vocabularies
from nmt.training.optim import build_optimizer, build_schedule, steering_metrics
from nmt.training.pretrained import Pretrained, freeze_pretrained, read_pretrained, start_from
from nmt.training.records import Records
from nmt.training.run_folder import RunFolder, has_state
from nmt.training.scheduled_sampling import late
from nmt.training.states import SavedStates, saved_state
from nmt.training.trainer import Trainer
from nmt.training.update import chosen_computing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    return run(PROGRAM, partial(_command, arguments), several=True)


def _command(arguments: Sequence[str] | None) -> int | None:
    with told_by_the_first():
        options = parser().parse_args(arguments)
    if options.print_schema:
        schema = json_schema({**FAMILIES, "metric": steering_metrics()})
        if is_heard():
            say(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
        return None
    try:
        if options.config is None:
            raise UserError("--config FILE is missing; --list-configs lists examples")
        request = checked(read_request(options))
        with _explained(request.output):
            if not request.dry_run:
                return _train(request)
            if is_heard():
                _dry_run(request)
            return None
    except UserError as error:
        if is_heard() or isinstance(error, LostProcess):
            raise
        raise ToldElsewhere(*error.messages) from error


def _dry_run(request: Request) -> None:
    def log(message: str) -> None:
        print(message, file=sys.stderr)

    _warn_of_start(request, log)
    prepared = _prepare(request, log)
    _warn_of_updates(request, prepared, log)
    _tell_vocabulary(request, prepared, log)
    pretrained = read_pretrained(request.config.model, prepared.vocabularies)
    for line in pretrained.report:
        log(line)
    candidates = build_candidates(request.config, prepared.vocabularies, request.device)
    for line in describe(request.config, prepared, _model(request, prepared, pretrained), candidates):
        write_text(STANDARD, f"{line}\n")


def _train(request: Request) -> int:
    """Open the run folder and train in it as one of the processes."""
    with joined(request.device, program=PROGRAM, patience=request.patience) as (processes, device):
        request = replace(request, device=device)
        if not processes.is_first:
            processes.wait_until_prepared()
            with RunFolder.follow(request.output) as folder:
                return _run(request, folder, lambda _: None, processes)
        with (
            RunFolder.open(
                request.output,
                request.config,
                resume=request.resume,
                overwrite=request.overwrite,
                config_file=request.config_path,
                origin=request.origin and request.origin.path,
                job=job(),
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
            return _run(request, folder, log, processes, prepared, pretrained)


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


def _run(
    request: Request,
    folder: RunFolder,
    log: Log,
    processes: Processes,
    prepared: Prepared | None = None,
    pretrained: Pretrained | None = None,
) -> int:
    """Train in an open run folder as one of the processes, on data that may be `prepared` and vectors `pretrained`."""
    config, origin, device = request.config, request.origin, request.device
    threads = counted(torch.get_num_threads(), "thread")
    log(f"run folder {folder.path}, {device}, PyTorch {torch.__version__}, {threads}")
    state = saved_state(folder, processes, log)
    if state is None:
        if request.resume:
            log(f"nothing to resume: {folder.path.absolute()} has no saved state; training starts from the beginning")
        _warn_of_start(request, log)
    if processes.size > 1:
        log(f"{processes.size} processes, each with its share of every batch")
    log(f"training with {chosen_computing(config.training, device)}")
    if prepared is None:
        prepared = _prepare(request, log)
    processes.check_same("configuration", dump_config(config))
    config = folder.as_begun(config)
    processes.check_same("corpus", _fingerprint(prepared))
    processes.check_same("saved state", "none" if state is None else f"of update {state.numbers['progress']['update']}")
    if state is None:
        _warn_of_updates(request, prepared, log)
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
        records=Records(folder.path, config, saved, progress.is_after, log) if processes.is_first else None,
        validate=build_validation(config, prepared, device, processes),
        write_model=partial(_write_model, config, prepared.vocabularies, _longest_source(request, prepared)),
        log=log,
        progress_bar=partial(_progress_bar, shown=processes.is_first),
        candidates=build_candidates(config, prepared.vocabularies, device),
    )
    try:
        with handled(leaving(PROGRAM)):
            trainer.train()
    except Interrupted as interruption:
        with telling():
            log(f"{interruption}; the state is saved, continue with --resume")
        return interruption.exit_code
    log(f"finished: {progress.finished}, {progress.seconds / 60:.1f} minutes; the best model is {folder.best_path}")
    if processes.is_first:
        try:
            load_model(folder.best_path)
        except UserError as error:  # such as weights of a training that diverged, and was not to be stopped for it
            log(f"warning: {error}")
    return 0


def _prepare(request: Request, log: Log) -> Prepared:
    is_new = request.origin is None or request.config.training.vocabulary == "new"
    vocabularies = None if request.origin is None or is_new else request.origin.vocabularies
    prepared = prepare(request.config, cache=request.cache, log=log, vocabularies=vocabularies)
    for warning in (*_format_warnings(request.config, prepared.vocabularies.target), *_alignment_warnings(prepared)):
        log(f"warning: {warning}")
    for line in mixture(request.config.data.train, prepared.train.sizes):
        log(line)
    return prepared


def _format_warnings(config: Config, target: Subwords) -> Iterator[str]:
    """Messages about references that BLEU, as validation computes it, cannot take apart as it should, or that no model
    with these subwords can write."""
    tokenize = config.training.validation.tokenize
    corpora = {"validation references": config.data.valid}
    corpora |= {f"references of {watched.name}": watched for watched in config.data.watch}
    for name, files in corpora.items():
        lines = [target.whole_words(line) for line in islice(read_lines(files.target), 1000)]
        encoded = [target.encode(line) for line in lines]
        known = [place for place, ids in enumerate(encoded) if UNKNOWN not in ids]
        written = {place: target.decode(encoded[place]) for place in known}
        yield from normalized_warning(
            name, lines, [written.get(place, line) for place, line in enumerate(lines)], tokenize
        )
        yield from format_warnings(
            name,
            lines,
            tokenize,
            option="training.validation.tokenize",
            cure="set subwords.joiner, or join the pieces",
        )


def _alignment_warnings(prepared: Prepared) -> Iterator[str]:
    """Messages about alignments that may be those of another corpus, or none: no pair has a link."""
    effects = {
        "data.train": (prepared.train, "training.guided_alignment has no effect"),
        "data.valid": (prepared.valid, "there is no guided loss to measure"),
    }
    for key, (corpus, effect) in effects.items():
        if corpus.report.aligned == 0:
            yield f"{key}: the alignments have no link for any pair that is kept: {effect}; align the text again"


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


def _warn_of_start(request: Request, log: Log) -> None:
    """Warn of what can hardly be meant, and of weights from which a model hardly learns; those of another model have
    learned."""
    for warning in doubts(request.config):
        log(f"warning: {warning}")
    if request.origin is not None:
        if (other := language_warning(request.config, request.origin)) is not None:
            log(f"warning: {other}")
    else:
        for warning in start_warnings(request.config.model, request.config.training):
            log(f"warning: {warning}")
        if request.config.training.minimum_risk is not None:
            log(
                "warning: training.minimum_risk learns from translations of the model, which mean nothing at first; "
                "give a trained model with --init-from"
            )


def _warn_of_updates(request: Request, prepared: Prepared, log: Log) -> None:
    """Warn of what only the corpus shows: batches that stay small, and a run too short for scheduled sampling."""
    for warning in (unfilled(prepared.train, request.config), late(request.config, prepared.train)):
        if warning is not None:
            log(f"warning: {warning}")


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
    hidden = None if shown else True  # None: where there is no terminal
    return tqdm(desc=f"epoch {epoch}", initial=done, total=batches_in_all, unit="batch", leave=False, disable=hidden)
