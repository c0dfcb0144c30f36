"""Checks between keys: combinations that contradict each other, and options that would have no effect.

Checks of one key by itself are constraints in `schema.py`. An option counts as without effect only when its value
differs from the default, so that a resolved configuration, which spells out every key, passes, and so does a file that
names a default with an override that makes it idle. How long a run lasts is no contradiction to anything: a trial run
with --set training.max_updates=20 must start with any configuration, though its patience, warm-up or halving are then
never reached.
"""

from collections.abc import Iterator

from nmt.config.problems import Problem, in_words
from nmt.config.schema import Config, ParallelFiles, PlateauSchedule, TrainingConfig, changed
from nmt.config.yaml_text import KeyPath

_VALIDATE_EVERY: KeyPath = ("training", "validate_every")
_SCHEDULE: KeyPath = ("training", "schedule")
_DIRECTIONS: tuple[KeyPath, ...] = (("model", "encoder", "bidirectional"), ("model", "encoder", "directions"))


def contradictions(config: Config) -> Iterator[Problem]:
    """Every problem between keys."""
    yield from _data(config)
    yield from _subwords(config)
    yield from _tied_embeddings(config)
    yield from _directions(config)
    yield from _training(config.training)
    yield from _decoding(config)


def _data(config: Config) -> Iterator[Problem]:
    valid = config.data.valid
    pairs: list[tuple[KeyPath, ParallelFiles]] = [(("data", "valid"), valid)]
    pairs += [(("data", "train", index), pair) for index, pair in enumerate(config.data.train)]
    for path, pair in pairs:
        if pair.source == pair.target:
            reads: tuple[KeyPath, ...] = ((*path, "source"), (*path, "target"))
            yield Problem(path, f"source and target are the same file, {pair.source}", reads)
        if path != ("data", "valid") and pair == valid:
            message = "these are the files of data.valid; validation needs sentences that are not trained on"
            yield Problem(path, message, (path, ("data", "valid")))


def _subwords(config: Config) -> Iterator[Problem]:
    """Combinations that sentencepiece refuses or that have no effect."""
    yield from _given_models(config)
    yield from _trained_models(config)
    yield from _sampling(config)


def _given_models(config: Config) -> Iterator[Problem]:
    subwords = config.subwords
    joint: KeyPath = ("subwords", "joint")
    sides = [key for key in ("source_model", "target_model") if getattr(subwords, key) is not None]
    given = (["model"] if subwords.model is not None else []) + sides
    reads = tuple(("subwords", key) for key in given)
    if not given:
        return
    if subwords.model is not None and sides:
        message = "contradicts subwords.model; give either model (joint) or source_model and target_model"
        yield from (Problem(("subwords", key), message, (("subwords", "model"),)) for key in sides)
    elif len(sides) == 1:
        other = "target_model" if sides == ["source_model"] else "source_model"
        yield Problem(("subwords", sides[0]), f"needs subwords.{other} too", (("subwords", other),))
    elif sides and subwords.joint:
        message = (
            "true contradicts source_model and target_model, two vocabularies; set joint: false, or give one model"
        )
        yield Problem(joint, message, reads)
    elif not sides and not subwords.joint:
        message = (
            "false contradicts subwords.model, one vocabulary; set joint: true, or give source_model and target_model"
        )
        yield Problem(joint, message, reads)
    settings = ("type", "size", "lowercase", "normalisation", "character_coverage", "byte_fallback")
    for key in changed(subwords, *settings):
        value = in_words(getattr(subwords, key))
        message = f"{value} has no effect, because subwords.{given[0]} is already trained; remove one of them"
        yield Problem(("subwords", key), message, reads)


def _trained_models(config: Config) -> Iterator[Problem]:
    subwords = config.subwords
    if subwords.model or subwords.source_model or subwords.target_model:
        return
    if subwords.lowercase and subwords.normalisation == "identity":
        message = "true contradicts normalisation: identity, which changes no character; use nfkc or nmt_nfkc"
        yield Problem(("subwords", "lowercase"), message, (("subwords", "normalisation"),))
    if subwords.byte_fallback and subwords.size <= 260:
        message = (
            f"{subwords.size} is too small for byte_fallback: 256 bytes and 4 special symbols leave no piece for text"
        )
        yield Problem(("subwords", "size"), message, (("subwords", "byte_fallback"),))


def _sampling(config: Config) -> Iterator[Problem]:
    subwords, sampling = config.subwords, config.subwords.sampling
    path: KeyPath = ("subwords", "sampling")
    given = subwords.model or subwords.source_model or subwords.target_model
    kind = None if given else subwords.type  # only a model that is given knows its type
    if sampling and kind in ("char", "word"):
        message = f"has no effect for type: {kind}, which cuts in one way only; use bpe or unigram, or remove it"
        yield Problem(path, message, (("subwords", "type"),))
    elif sampling and kind == "bpe" and changed(sampling, "nbest_size"):
        message = f"{sampling.nbest_size} has no effect for type: bpe, which is sampled by alpha alone; remove it"
        yield Problem((*path, "nbest_size"), message, (("subwords", "type"),))
    elif sampling and sampling.nbest_size in (0, 1):
        message = f"{sampling.nbest_size} leaves nothing to sample from; allowed: -1 (all segmentations), or 2 and more"
        yield Problem((*path, "nbest_size"), message)


def _tied_embeddings(config: Config) -> Iterator[Problem]:
    model, path = config.model, ("model", "tie_embeddings")
    tie, decoder = model.tie_embeddings, model.decoder
    if tie == "none":
        return
    if tie == "all" and not config.subwords.joint:
        message = (
            "all needs one vocabulary for both languages, but subwords.joint is false; use target, or set joint: true"
        )
        yield Problem(path, message, (("subwords", "joint"),))
    key = "hidden_size" if decoder.output_size is None else "output_size"
    size = decoder.output_size or decoder.hidden_size
    if size != model.embedding_size:
        reads: tuple[KeyPath, ...] = (
            ("model", "embedding_size"),
            ("model", "decoder", "output_size"),
            ("model", "decoder", "hidden_size"),
        )
        message = (
            f"{tie} needs the output layer to read vectors as large as an embedding, but model.decoder.{key} is {size} "
            f"and model.embedding_size is {model.embedding_size}; set model.decoder.output_size: "
            f"{model.embedding_size}, or model.embedding_size: {size}"
        )
        yield Problem(path, message, reads)


def _directions(config: Config) -> Iterator[Problem]:
    encoder = config.model.encoder
    if encoder.directions != "concatenate" and not encoder.bidirectional:
        message = (
            f"{encoder.directions} has no effect with bidirectional: false, which has one direction; remove it, or set "
            "bidirectional: true"
        )
        yield Problem(("model", "encoder", "directions"), message, _DIRECTIONS)


def _training(training: TrainingConfig) -> Iterator[Problem]:
    """Training without an end, and keys that have no effect beside the others."""
    yield from _precision(training)
    yield from _sorting(training)
    yield from _end(training)
    yield from _intervals(training)
    yield from _schedule(training)
    yield from _checkpoints(training)


def _precision(training: TrainingConfig) -> Iterator[Problem]:
    """The plain twins compute in the type of the weights."""
    if training.kernels == "plain" and training.precision != "float32":
        keys: tuple[KeyPath, ...] = (("training", "kernels"), ("training", "precision"))
        message = (
            f"{training.precision} has no effect with training.kernels: plain, which computes in float32; remove it"
        )
        yield Problem(("training", "precision"), message, keys)


def _sorting(training: TrainingConfig) -> Iterator[Problem]:
    """Batches of sentences are all full but the last; batches of tokens are never quite full."""
    pairs, size = training.sort_pairs, training.batch_size
    if pairs and training.batch_by == "sentences" and pairs % size:
        below = pairs // size * size
        near = [multiple for multiple in (below, below + size) if multiple]
        message = (
            f"{pairs} is not a multiple of training.batch_size: {size}, so that of every {pairs} pairs the last batch "
            f"would be smaller; use {' or '.join(map(str, near))}"
        )
        yield Problem(("training", "sort_pairs"), message, (("training", "batch_size"), ("training", "batch_by")))


def _end(training: TrainingConfig) -> Iterator[Problem]:
    if training.max_epochs is None and training.max_updates is None:
        message = "neither this nor max_updates is set, so training has no end; set one or both"
        yield Problem(("training", "max_epochs"), message, (("training", "max_updates"),))


def _intervals(training: TrainingConfig) -> Iterator[Problem]:
    save, validate = training.save_every, training.validate_every
    if save and save.unit == validate.unit and save.count % validate.count == 0:
        message = (
            f"{save} has no effect, because every validation saves the state too (validate_every: {validate}); "
            "use a shorter interval, or remove it"
        )
        yield Problem(("training", "save_every"), message, (_VALIDATE_EVERY,))


def _schedule(training: TrainingConfig) -> Iterator[Problem]:
    schedule, rate = training.schedule, training.optimizer.learning_rate
    if isinstance(schedule, PlateauSchedule) and schedule.minimum_learning_rate >= rate:
        message = (
            f"{schedule.minimum_learning_rate} is not below training.optimizer.learning_rate: {rate}, so the rate "
            "would never be cut"
        )
        yield Problem((*_SCHEDULE, "minimum_learning_rate"), message, (("training", "optimizer"),))


def _checkpoints(training: TrainingConfig) -> Iterator[Problem]:
    average, path = training.average_best, ("training", "average_best")
    if average == 1:
        yield Problem(path, "1 has no effect: one checkpoint has no average; allowed: 0 (off), or 2 to keep_best")
    elif average > training.keep_best:
        message = f"{average} checkpoints are to be averaged, but keep_best: {training.keep_best} keeps fewer"
        yield Problem(path, message, (("training", "keep_best"),))
    repeated = sorted({part for part in training.freeze if training.freeze.count(part) > 1})
    if repeated:
        yield Problem(("training", "freeze"), f"{', '.join(repeated)} is given more than once")


def _decoding(config: Config) -> Iterator[Problem]:
    beam_sizes: tuple[KeyPath, ...] = (("decoding", "beam_size"), ("training", "validation", "beam_size"))
    greedy = config.decoding.beam_size == 1 and config.training.validation.beam_size == 1
    if greedy and changed(config.decoding, "length_penalty"):
        message = (
            f"{config.decoding.length_penalty} has no effect on greedy search, which has one hypothesis to choose from "
            "(decoding.beam_size and training.validation.beam_size are 1); use a larger beam, or remove it"
        )
        yield Problem(("decoding", "length_penalty"), message, beam_sizes)
    if config.decoding.coverage_penalty and config.model.attention.score == "none":
        message = f"{config.decoding.coverage_penalty} needs attention, and model.attention.score is none; remove it"
        yield Problem(("decoding", "coverage_penalty"), message, (("model", "attention", "score"),))
