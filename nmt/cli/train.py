"""nmt-train: one configuration file → a trained model in a run folder."""

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli.common import choose_device, run
from nmt.config import Config, json_schema, load_config
from nmt.data.batching import batches, plan_batches
from nmt.data.corpus import read_lines
from nmt.data.preparation import Prepared, prepare
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.metrics import check_tokenizer, corpus_scores
from nmt.files import written_atomically
from nmt.models.attention import SCORES
from nmt.models.checks import model_problems
from nmt.models.model_file import ModelFile, load_model, model_path, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.checkpoint import read_state
from nmt.training.dry_run import describe
from nmt.training.finetuning import freeze, inherited
from nmt.training.interruption import Interrupted
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.run_folder import RunFolder
from nmt.training.trainer import Trainer, Validate
from nmt.training.validation import corpus_loss

PROGRAM = "nmt-train"
ORIGIN = "init_from.json"
_logger = logging.getLogger("nmt")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    return run(PROGRAM, lambda: _train(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Train a translation model from one configuration file.",
        epilog="Exit codes: 0 trained (or nothing left to do), 2 a mistake in what was given, 130 or 143 stopped by a "
        "signal with the state saved, 1 a failure of the program.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration, a YAML file")
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
        "--init-from",
        type=Path,
        metavar="MODEL",
        help="fine-tune: start from the weights of a model file or run folder",
    )
    parser.add_argument("--dry-run", action="store_true", help="read everything, report, and train nothing")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")
    parser.add_argument(
        "--print-schema", action="store_true", help="print the JSON schema of the configuration and leave"
    )
    return parser


def _train(options: argparse.Namespace) -> int | None:
    if options.print_schema:
        print(json.dumps(json_schema(list(SCORES)), indent=2))
        return None
    if options.config is None:
        raise UserError("--config FILE is missing; configs/ has examples")
    config = load_config(options.config, options.overrides, checks=[model_problems])
    check_tokenizer(config.training.validation.tokenize)
    device = choose_device(options.device)
    output = options.output or Path("runs") / config.name
    origin_path = options.init_from
    if origin_path is None and options.resume:
        origin_path = _recorded_origin(output)
    if config.training.freeze and origin_path is None:
        raise UserError("training.freeze: needs --init-from; freezing weights that were never trained is of no use")
    origin = None if origin_path is None else load_model(origin_path)
    if origin is not None:
        config = inherited(config, origin)
    cache = config.data.cache_folder or output.parent / ".cache"
    if options.dry_run:
        _dry_run(config, cache, origin, device)
        return None
    folder = RunFolder.open(output, config, resume=options.resume)
    try:
        _start_logging(folder.log_path)
        if origin_path is not None:
            _record_origin(output, origin_path)
        return _run(config, cache, folder, origin, device)
    finally:
        folder.close()
        logging.shutdown()


def _run(config: Config, cache: Path, folder: RunFolder, origin: ModelFile | None, device: torch.device) -> int:
    """Train in an open run folder."""
    state = read_state(folder.state_path) if folder.state_path.exists() else None
    _logger.info(
        "run folder %s, %s, PyTorch %s, %d threads", folder.path, device, torch.__version__, torch.get_num_threads()
    )
    prepared = _prepare(config, cache, origin, _logger.info)
    model = _model(config, prepared, origin, device)
    _logger.info("%s parameters", f"{sum(each.numel() for each in model.parameters()):,}")
    trainer = Trainer(
        config=config,
        model=model,
        optimizer=build_optimizer(model.parameters(), config.training),
        schedule=build_schedule(config.training),
        corpus=prepared.train,
        vocabularies=prepared.vocabularies,
        folder=folder,
        state=state,
        validate=_validation(config, prepared, model, device),
        write_model=_model_writer(config, prepared.vocabularies),
        log=_logger.info,
        progress_bar=_progress_bar,
    )
    if state is not None:
        _logger.info("resuming after update %s", f"{trainer.progress.update:,}")
    try:
        progress = trainer.train()
    except Interrupted as interruption:
        _logger.info("%s; the state is saved, continue with --resume", interruption)
        return interruption.exit_code
    minutes = progress.seconds / 60
    _logger.info("finished: %s, %.1f minutes; the best model is %s", progress.finished, minutes, folder.best_path)
    return 0


def _prepare(config: Config, cache: Path, origin: ModelFile | None, log: Callable[[str], None]) -> Prepared:
    vocabularies = None
    if origin is not None:
        source = Subwords.from_bytes(origin.source_subwords)
        joint = origin.target_subwords == origin.source_subwords
        vocabularies = Vocabularies(source, source if joint else Subwords.from_bytes(origin.target_subwords))
    return prepare(config, cache=cache, log=log, vocabularies=vocabularies)


def _model(config: Config, prepared: Prepared, origin: ModelFile | None, device: torch.device) -> Seq2Seq:
    """The model to train: drawn from the seed, or with the weights of `origin`."""
    torch.manual_seed(config.seed)
    source, target = prepared.vocabularies
    model = build_model(config.model, source_size=source.size, target_size=target.size)
    if origin is not None:
        model.load_state_dict(origin.weights)
        freeze(model, list(config.training.freeze))
    return model.to(device).train()


def _validation(config: Config, prepared: Prepared, model: Seq2Seq, device: torch.device) -> Validate:
    """The function that scores the model on the validation corpus: loss, perplexity and BLEU."""
    settings = config.training.validation
    sources = list(read_lines(config.data.valid.source))
    references = list(read_lines(config.data.valid.target))
    valid = prepared.valid
    plan = plan_batches(
        valid.source_lengths,
        valid.target_lengths,
        batch_size=config.training.batch_size,
        batch_by=config.training.batch_by,
        seed=0,
        epoch=0,
    )
    translator = Translator(model, prepared.vocabularies, decoding=config.decoding, device=device)

    def validate(model: Seq2Seq) -> dict[str, float]:
        metrics = corpus_loss(model, batches(valid, plan))
        hypotheses = [best.text for best, *_ in translator.translate(sources, beam_size=settings.beam_size)]
        scores = corpus_scores(
            hypotheses, references, tokenize=settings.tokenize, lowercase=settings.lowercase, metrics=("bleu",)
        )
        return {**metrics, "bleu": scores["bleu"].score}

    return validate


def _model_writer(config: Config, vocabularies: Vocabularies) -> Callable[[Path, Seq2Seq, dict[str, Any]], None]:
    def write(path: Path, model: Seq2Seq, training: dict[str, Any]) -> None:
        source, target = vocabularies
        sizes = (source.size, target.size)
        save_model(path, ModelFile(config, model.state_dict(), source.model, target.model, sizes, training))

    return write


def _progress_bar(epoch: int, done: int, batches_in_all: int) -> "tqdm[Any]":
    """A bar on a terminal, nothing elsewhere."""
    return tqdm(desc=f"epoch {epoch}", initial=done, total=batches_in_all, unit="batch", leave=False, disable=None)


def _dry_run(config: Config, cache: Path, origin: ModelFile | None, device: torch.device) -> None:
    prepared = _prepare(config, cache, origin, lambda message: print(message, file=sys.stderr))
    for line in describe(config, prepared, _model(config, prepared, origin, device)):
        print(line)


class _ConsoleHandler(logging.Handler):
    """Log lines on stderr, above the progress bar instead of through it."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


def _start_logging(path: Path) -> None:
    """Log to the run's train.log, with the time, and to the terminal."""
    for handler in list(_logger.handlers):
        _logger.removeHandler(handler)
    to_file = logging.FileHandler(path, encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    _logger.addHandler(to_file)
    _logger.addHandler(_ConsoleHandler())
    _logger.setLevel(logging.INFO)
    _logger.propagate = False


def _recorded_origin(output: Path) -> Path | None:
    """The model that the run in `output` started from. Raises UserError when that file has changed since."""
    try:
        record = json.loads((output / ORIGIN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    path = Path(record["path"])
    if not path.exists() or _digest(path) != record["sha256"]:
        raise UserError(
            f"{path}: this run started from it, but it is gone or has changed since; put the file back to resume"
        )
    return path


def _record_origin(output: Path, origin: Path) -> None:
    path = model_path(origin).resolve()
    with written_atomically(output / ORIGIN) as file:
        json.dump({"path": str(path), "sha256": _digest(path)}, file)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
