"""Checks between keys: combinations that contradict each other, and options that would have no effect.

Checks of a single key are constraints in `schema.py`, and these run only where all of them pass. Where an option has no
effect because of one other key, that is a line of IDLE; it counts only if its value differs from the default. A
resolved configuration, which spells out every key, therefore passes, and so does a file that spells out a default which
an override makes idle. The length of a run contradicts nothing: a trial run with --set training.max_updates=20 must
start with any configuration, even if its patience, warm-up or halving then never comes into play.
"""

from collections.abc import Sequence
from typing import Any, Final

from nmt.config.problems import Problem, in_words, problem_at
from nmt.config.schema import (
    MODELS,
    TRAINED_SUBWORDS,
    VOCABULARIES,
    Config,
    HalvingSchedule,
    LinearSchedule,
    PlateauSchedule,
    TrainingFiles,
    changed,
    existing_models,
)

Problems = list[Problem]

IDLE: Final[Sequence[tuple[str, str, object]]] = (
    ("model.encoder.directions", "model.encoder.bidirectional", False),
    ("model.encoder.residual", "model.encoder.layers", 1),
    ("model.decoder.residual", "model.decoder.layers", 1),
    ("model.decoder.fed_dropout", "model.decoder.input_feeding", False),
    ("training.optimizer.decayed", "training.optimizer.weight_decay", 0.0),
    ("training.precision", "training.kernels", "plain"),  # which compute in the type of the weights
    ("training.schedule.stop_below_minimum", "training.schedule.minimum_learning_rate", 0.0),
    ("training.minimum_risk.temperature", "training.minimum_risk.candidates", "n-best"),
    ("training.label_smoothing", "training.minimum_risk.cross_entropy", 0.0),
)
"""Keys that have no effect where another key has this value: the key, the other, and the value."""


def contradictions(config: Config) -> list[Problem]:
    """Every problem between keys."""
    problems: list[Problem] = []
    model = (_existing_models, _trained_models, _tied_embeddings, _pretrained_embeddings)
    for check in (_idle, _data, *model, _length_of_training, _plateau, _objectives, _fine_tuning):
        check(config, problems)
    return problems


def _idle(config: Config, problems: Problems) -> None:
    for key, other, value in IDLE:
        place, _, name = key.rpartition(".")
        section = _at(config, place)
        is_there = name in getattr(type(section), "model_fields", {})
        if is_there and _at(config, other) == value and changed(section, name):
            without = f"has no effect with {other}: {in_words(value)}"
            message = f"{in_words(getattr(section, name))} {without}; remove it, or change {other}"
            problems.append(problem_at(key, message))


def _at(config: Config, key: str) -> Any:
    """The value at a key such as training.schedule; None where a section on the way is null, or has no such key."""
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name, None)
    return value


def _data(config: Config, problems: Problems) -> None:
    valid = config.data.valid
    for key, pair in config.data.corpora().items():
        if pair.source == pair.target:
            problems.append(problem_at(key, f"source and target are the same file, {pair.source}"))
        if isinstance(pair, TrainingFiles) and (pair.source, pair.target) == (valid.source, valid.target):
            message = "these are the files of data.valid; validation needs sentences that are not trained on"
            problems.append(problem_at(key, message))
    names = [files.name for files in config.data.watch]
    for index, name in enumerate(names):
        if name in names[:index]:
            message = f"{name} is the name of data.watch.{names.index(name)}, too; give each its own"
            problems.append(problem_at(f"data.watch.{index}.name", message))


_KEY_SETS = (("model",), ("source_model", "target_model"), ("vocabulary",), ("source_vocabulary", "target_vocabulary"))


def _existing_models(config: Config, problems: Problems) -> None:
    subwords = config.subwords
    keys = tuple(existing_models(subwords))
    has_one = subwords.type in ("char", "word") and not keys  # an existing model brings its own type
    if subwords.sampling is not None and (has_one or set(keys) & set(VOCABULARIES)):
        message = "has no effect on whole words or characters, which have one segmentation; use bpe or unigram"
        problems.append(problem_at("subwords.sampling", message))
    if subwords.joiner is not None and not set(keys) & set(VOCABULARIES):
        message = f"{in_words(subwords.joiner)} has no effect without subwords.vocabulary, of text that is cut already"
        problems.append(problem_at("subwords.joiner", message))
    if not keys:
        return
    if keys not in _KEY_SETS:
        sets = ", or ".join(" and ".join(names) for names in _KEY_SETS)
        problems.append(problem_at(f"subwords.{keys[-1]}", f"given: {' and '.join(keys)}; allowed: {sets}"))
    elif subwords.joint != (len(keys) == 1):
        message = f"{in_words(subwords.joint)} contradicts {' and '.join(keys)}; set {in_words(not subwords.joint)}"
        problems.append(problem_at("subwords.joint", message))
    for key in changed(subwords, *TRAINED_SUBWORDS):
        value = getattr(subwords, key)
        if keys[0] in MODELS or (key, value) != ("type", "word"):
            message = f"{in_words(value)} has no effect on the pieces of subwords.{keys[0]}, which exist; remove it"
            problems.append(problem_at(f"subwords.{key}", message))


def _trained_models(config: Config, problems: Problems) -> None:
    """Combinations that sentencepiece refuses to train, or that make a model which does not give back its text."""
    subwords = config.subwords
    if existing_models(subwords):
        return
    if subwords.lowercase and subwords.normalization == "identity":
        message = "true contradicts normalization: identity, which changes no character; use nfkc or nmt_nfkc"
        problems.append(problem_at("subwords.lowercase", message))
    if subwords.byte_fallback and subwords.type == "word":
        message = "true contradicts type: word, where a ▁ would precede unknown words; use bpe, unigram or char"
        problems.append(problem_at("subwords.byte_fallback", message))
    elif subwords.byte_fallback and subwords.size <= 260:
        message = f"{subwords.size} is too small: 256 bytes and 4 special symbols leave no piece for text"
        problems.append(problem_at("subwords.size", message))


def _tied_embeddings(config: Config, problems: Problems) -> None:
    model, decoder, tie = config.model, config.model.decoder, config.model.tie_embeddings
    if tie == "none":
        return
    if tie == "all" and not config.subwords.joint:
        message = "all needs one vocabulary for both languages: set subwords.joint: true, or tie_embeddings: target"
        problems.append(problem_at("model.tie_embeddings", message))
    key = "hidden_size" if decoder.output_size is None else "output_size"
    size = decoder.output_size or decoder.hidden_size
    if size != model.embedding_size:
        message = (
            f"{tie} needs the output layer to read vectors as large as an embedding, but model.decoder.{key} is {size} "
            f"and model.embedding_size is {model.embedding_size}; set model.decoder.output_size: {model.embedding_size}"
        )
        problems.append(problem_at("model.tie_embeddings", message))


def _pretrained_embeddings(config: Config, problems: Problems) -> None:
    embeddings, tie = config.model.embeddings, config.model.tie_embeddings
    if embeddings is None:
        return
    source, target = embeddings.source, embeddings.target
    if source is None and target is None:
        problems.append(problem_at("model.embeddings", "names no file; give source, target, or both, or leave it out"))
    if tie == "all" and source is not None and target is not None and source != target:
        message = f"contradicts source: {source}, for with tie_embeddings: all both are one; give one of the two"
        problems.append(problem_at("model.embeddings.target", message))
    is_output = tie == "all" or (tie == "target" and target is not None)
    if embeddings.freeze and is_output:
        message = f"true would freeze the output layer, which shares its weights (tie_embeddings: {tie}); set false"
        problems.append(problem_at("model.embeddings.freeze", message))


def _length_of_training(config: Config, problems: Problems) -> None:
    training = config.training
    average, kept = training.average_best, training.keep_best
    if average > kept:
        message = f"{average} checkpoints are to be averaged, but keep_best: {kept} keeps fewer"
        problems.append(problem_at("training.average_best", message))
    if training.max_epochs is None and training.max_updates is None:
        if training.early_stopping is None:
            message = (
                "null with neither max_epochs nor max_updates: training would never end; leave this out, or set one"
            )
            problems.append(problem_at("training.early_stopping", message))
        if isinstance(training.schedule, LinearSchedule):
            message = "linear needs max_epochs or max_updates, to fall to 0 where it ends training; set one"
            problems.append(problem_at("training.schedule", message))
    schedule = training.schedule
    if isinstance(schedule, HalvingSchedule) and schedule.after.unit != schedule.every.unit:
        message = f"{schedule.every} does not go with after: {schedule.after}; give both in epochs, or both in updates"
        problems.append(problem_at("training.schedule.every", message))


def _plateau(config: Config, problems: Problems) -> None:
    schedule, stopping = config.training.schedule, config.training.early_stopping
    if not isinstance(schedule, PlateauSchedule):
        return
    minimum, rate = schedule.minimum_learning_rate, config.training.optimizer.learning_rate
    if minimum >= rate:
        message = f"{minimum} is not below training.optimizer.learning_rate: {rate}, so the rate would never be cut"
        problems.append(problem_at("training.schedule.minimum_learning_rate", message))
    if stopping is None or stopping.metric != schedule.metric:
        return
    if stopping.patience < schedule.patience + 2:  # the validation that cuts the rate, and one with the new rate
        default = "" if "patience" in stopping.model_fields_set else ", its default,"
        message = (
            f"{schedule.patience} has no effect: training.early_stopping.patience: {stopping.patience}{default} ends "
            f"training before the rate would be cut; set that to {schedule.patience + 2} or more, or use a smaller one "
            "here"
        )
        problems.append(problem_at("training.schedule.patience", message))


def _objectives(config: Config, problems: Problems) -> None:
    training = config.training
    if training.minimum_risk is not None:
        for other in ("guided_alignment", "r_drop", "word_replacement", "scheduled_sampling"):
            if getattr(training, other) is not None:
                message = "has no effect with training.minimum_risk, which minimizes something else; remove one of them"
                problems.append(problem_at(f"training.{other}", message))
    encoder, decoder = config.model.encoder, config.model.decoder
    others = (decoder.fed_dropout, decoder.attentional_dropout)
    rates = [rate for part in (encoder, decoder) for rate in (part.dropout, part.output_dropout, part.word_dropout)]
    if training.r_drop is not None and not any((*rates, *others)):
        message = "has no effect without dropout, for both passes are then the same; remove it, or set dropout"
        problems.append(problem_at("training.r_drop", message))
    replaced = training.word_replacement
    if replaced is not None and not replaced.source and not replaced.target:
        message = "has no effect with source and target: 0; give one of them, such as target: 0.1, or remove it"
        problems.append(problem_at("training.word_replacement", message))
    aligned = [key for key, pair in config.data.corpora().items() if pair.alignments is not None]
    guided = "training.guided_alignment"
    if training.guided_alignment is None:
        message = f"has no effect, because {guided} is null; set it, such as to {{weight: 1.0}}, or remove this"
        problems += [problem_at(f"{key}.alignments", message) for key in aligned]
    elif not any(key.startswith("data.train") for key in aligned):
        message = "has no effect without alignments; give them in data.train (nmt-align learns some), or remove it"
        problems.append(problem_at(guided, message))


def _fine_tuning(config: Config, problems: Problems) -> None:
    training = config.training
    has_symbols = bool(config.subwords.symbols)
    is_new = training.vocabulary == "new" or (training.vocabulary == "extended" and has_symbols)  # that of the target
    if training.vocabulary in ("extended", "new") and "embeddings" in training.freeze:
        message = f"{training.vocabulary} contradicts training.freeze: embeddings, for new pieces have to learn theirs"
        problems.append(problem_at("training.vocabulary", message))
    elif is_new and config.model.tie_embeddings == "none" and "decoder" in training.freeze:
        learns = "whose output layer has to learn the new pieces"
        message = f"{training.vocabulary} contradicts training.freeze: decoder, {learns}"
        problems.append(problem_at("training.vocabulary", message))
    if set(training.freeze) == {"embeddings", "encoder", "decoder"}:
        message = "names every part, so nothing is left to train; leave out one of them"
        problems.append(problem_at("training.freeze", message))
