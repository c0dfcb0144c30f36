"""Checks between keys: combinations that contradict each other, and options that would have no effect.

Checks of a single key are constraints in `schema.py`. An option counts as having no effect only if its value differs
from the default. A resolved configuration, which spells out every key, therefore passes, and so does a file that
spells out a default which an override makes idle. The length of a run contradicts nothing: a trial run with
--set training.max_updates=20 must start with any configuration, even if its patience, warm-up or halving then never
comes into play.
"""

from collections.abc import Iterator

from nmt.config.problems import Problem, in_words
from nmt.config.schema import (
    MODELS,
    TRAINED_SUBWORDS,
    VOCABULARIES,
    Config,
    DecoderConfig,
    EncoderConfig,
    HalvingSchedule,
    ParallelFiles,
    PlateauSchedule,
    RateFactors,
    SubwordsConfig,
    changed,
    existing_models,
)
from nmt.config.yaml_text import KeyPath
from nmt.errors import counted
from nmt.symbols import PIECES


def contradictions(config: Config) -> Iterator[Problem]:
    """Every problem between keys."""
    subwords = (_existing_models, _trained_models, _sampling)
    model = (_tied_embeddings, _pretrained_embeddings, _directions, _residual, _dropout)
    training = (_length_of_training, _plateau, _updates, _word_replacement, _guided_alignment, _minimum_risk)
    for check in (_data, _watched, *subwords, *model, *training, _checkpoints, _rates, _fine_tuning, _decoding):
        yield from check(config)


def doubts(config: Config) -> Iterator[str]:
    """A warning for each combination that is possible, but can hardly be meant."""
    validation = config.training.validation
    if config.subwords.lowercase and not validation.lowercase:
        yield (
            "training.validation.lowercase is false with subwords.lowercase: what the model writes has no capital "
            "letters, which counts as wrong wherever the references have them"
        )
    pairs = _training_files(config)
    why = dict.fromkeys(pairs, "is trained on, so that its scores are no test of forgetting")
    why["data.valid"] = "chooses the checkpoints already"
    for key, watched in _watched_files(config).items():
        for name, pair in {**pairs, "data.valid": config.data.valid}.items():
            shared = [path for path in (watched.source, watched.target) if path in (pair.source, pair.target)]
            if shared:
                yield f"{key}: {shared[0]} is a file of {name}, too, which {why[name]}"
    if config.training.vocabulary == "new" and validation.retain is not None:
        yield (
            "training.validation.retain: with training.vocabulary: new, its limit is that of the model with its new "
            "vocabulary, before it learns; the more pieces are new, the less this protects, as the first validation "
            "shows"
        )


def _problem(key: str, message: str, *reads: str) -> Problem:
    """The problem at a key such as "data.train.0"; `reads` as in `Problem`."""
    return Problem(_path(key), message, tuple(map(_path, reads)))


def _path(key: str) -> KeyPath:
    return tuple(int(part) if part.isdecimal() else part for part in key.split("."))


def _training_files(config: Config) -> dict[str, ParallelFiles]:
    """The corpora of data.train, by their keys."""
    return {f"data.train.{index}": pair for index, pair in enumerate(config.data.train)}


def _watched_files(config: Config) -> dict[str, ParallelFiles]:
    """The corpora of data.watch, by their keys."""
    return {f"data.watch.{index}": pair for index, pair in enumerate(config.data.watch)}


def _data(config: Config) -> Iterator[Problem]:
    valid, train, watch = config.data.valid, _training_files(config), _watched_files(config)
    for key, pair in {"data.valid": valid, **train, **watch}.items():
        if pair.source == pair.target:
            message = f"source and target are the same file, {pair.source}"
            yield _problem(key, message, f"{key}.source", f"{key}.target")
    for key, pair in train.items():
        if (pair.source, pair.target) == (valid.source, valid.target):
            message = "these are the files of data.valid; validation needs sentences that are not trained on"
            yield _problem(key, message, key, "data.valid")
    for index, files in enumerate(config.data.train):
        if files.tag in PIECES:
            message = f"{files.tag} is one of the special symbols {', '.join(PIECES)}; choose another, such as <BT>"
            yield _problem(f"data.train.{index}.tag", message)
    most, ratio = config.data.max_length, config.data.max_length_ratio
    if ratio is not None and ratio >= most:  # that of a pair with one piece on one side
        less = f"use less than {most}, or remove it" if most > 1 else "remove it"
        message = f"{ratio:g} has no effect, for with data.max_length: {most} no pair has a larger ratio; {less}"
        yield _problem("data.max_length_ratio", message, "data.max_length")


def _watched(config: Config) -> Iterator[Problem]:
    names = [files.name for files in config.data.watch]
    for index, files in enumerate(config.data.watch):
        if files.name in names[:index]:
            message = f"{files.name} is the name of data.watch.{names.index(files.name)}, too; give each its own"
            yield _problem(f"data.watch.{index}.name", message, "data.watch")
    retain = config.training.validation.retain
    if retain is not None and retain.corpus not in names:
        there = f"names there: {', '.join(names)}" if names else "data.watch is empty"
        message = f"no corpus in data.watch is named {retain.corpus}; {there}"
        yield _problem("training.validation.retain.corpus", message, "data.watch")


def _existing_models(config: Config) -> Iterator[Problem]:
    subwords = config.subwords
    keys = list(existing_models(subwords))
    if subwords.joiner is not None and not set(keys) & set(VOCABULARIES):
        message = (
            f"{in_words(subwords.joiner)} needs text that was cut beforehand and its vocabulary; give "
            "subwords.vocabulary, or remove it: sentencepiece's models join their pieces themselves"
        )
        yield _problem("subwords.joiner", message, *(f"subwords.{key}" for key in VOCABULARIES))
    if not keys:
        return
    models = [key for key in keys if key in MODELS]
    if models and len(models) < len(keys):
        message = f"contradicts subwords.{models[0]}; give either sentencepiece models or vocabularies"
        for key in keys[len(models) :]:
            yield _problem(f"subwords.{key}", message, *(f"subwords.{model}" for model in models))
        return
    yield from _sides(subwords, keys, *(MODELS if models else VOCABULARIES))
    for key in changed(subwords, *TRAINED_SUBWORDS):
        value = getattr(subwords, key)
        if not models and (key, value) == ("type", "word"):
            continue
        reason = "is already trained; remove one of them" if models else "has the words themselves; remove it"
        message = f"{in_words(value)} has no effect, because subwords.{keys[0]} {reason}"
        yield _problem(f"subwords.{key}", message, *(f"subwords.{model}" for model in keys))


def _sides(subwords: SubwordsConfig, keys: list[str], joint: str, source: str, target: str) -> Iterator[Problem]:
    """Of the keys of models, or of vocabularies, either the joint one or both others; the first of `keys` is there."""
    sides = [key for key in keys if key != joint]
    reads = [f"subwords.{key}" for key in keys]
    if joint in keys and sides:
        message = f"contradicts subwords.{joint}; give either {joint} (joint) or {source} and {target}"
        yield from (_problem(f"subwords.{key}", message, f"subwords.{joint}") for key in sides)
    elif len(sides) == 1:
        missing = f"subwords.{target if sides == [source] else source}"
        yield _problem(f"subwords.{sides[0]}", f"needs {missing} too", missing)
    elif sides and subwords.joint:
        message = f"true contradicts {source} and {target}, two vocabularies; set false, or give one {joint}"
        yield _problem("subwords.joint", message, *reads)
    elif not sides and not subwords.joint:
        message = f"false contradicts subwords.{joint}, one vocabulary; set true, or give {source} and {target}"
        yield _problem("subwords.joint", message, *reads)


def _trained_models(config: Config) -> Iterator[Problem]:
    """Combinations that sentencepiece refuses to train, or that make a model which does not give back its text."""
    subwords = config.subwords
    if existing_models(subwords):
        return
    if subwords.lowercase and subwords.normalisation == "identity":
        message = "true contradicts normalisation: identity, which changes no character; use nfkc or nmt_nfkc"
        yield _problem("subwords.lowercase", message, "subwords.normalisation")
    if subwords.byte_fallback and subwords.type == "word":
        message = (
            "true contradicts type: word, of which sentencepiece makes a model that writes every unknown word with a ▁ "
            "in front; set false, or use bpe, unigram or char"
        )
        yield _problem("subwords.byte_fallback", message, "subwords.type")
    elif subwords.byte_fallback and subwords.size <= 260:
        message = f"{subwords.size} is too small: 256 bytes and 4 special symbols leave no piece for text"
        yield _problem("subwords.size", message, "subwords.byte_fallback")


def _sampling(config: Config) -> Iterator[Problem]:
    subwords, sampling = config.subwords, config.subwords.sampling
    if sampling is None:
        return
    keys = existing_models(subwords)
    words = next((key for key in keys if key in VOCABULARIES), None)
    kind = None if keys else subwords.type  # an existing model brings its own type
    if words is not None:
        message = f"has no effect with {words}, whose words have only one segmentation; remove it"
        yield _problem("subwords.sampling", message, f"subwords.{words}")
    elif kind in ("char", "word"):
        message = f"has no effect for type: {kind}, which has only one segmentation; use bpe or unigram, or remove it"
        yield _problem("subwords.sampling", message, "subwords.type")
    elif kind == "bpe" and changed(sampling, "nbest_size"):
        message = f"{sampling.nbest_size} has no effect for type: bpe, which is sampled by alpha alone; remove it"
        yield _problem("subwords.sampling.nbest_size", message, "subwords.type")
    elif sampling.nbest_size in (0, 1):
        message = f"{sampling.nbest_size} leaves nothing to sample from; allowed: -1 (all segmentations), or 2 and more"
        yield _problem("subwords.sampling.nbest_size", message)


def _tied_embeddings(config: Config) -> Iterator[Problem]:
    model, decoder, tie = config.model, config.model.decoder, config.model.tie_embeddings
    if tie == "none":
        return
    if tie == "all" and not config.subwords.joint:
        message = (
            "all needs one vocabulary for both languages, but subwords.joint is false; set subwords.joint: true, or "
            "tie_embeddings: target for a new model"
        )
        yield _problem("model.tie_embeddings", message, "subwords.joint")
    key = "hidden_size" if decoder.output_size is None else "output_size"
    size = decoder.output_size or decoder.hidden_size
    if size != model.embedding_size:
        message = (
            f"{tie} needs the output layer to read vectors as large as an embedding, but model.decoder.{key} is {size} "
            f"and model.embedding_size is {model.embedding_size}; set model.decoder.output_size: "
            f"{model.embedding_size}, or model.embedding_size: {size}"
        )
        reads = ("model.embedding_size", "model.decoder.output_size", "model.decoder.hidden_size")
        yield _problem("model.tie_embeddings", message, *reads)


def _pretrained_embeddings(config: Config) -> Iterator[Problem]:
    embeddings, tie = config.model.embeddings, config.model.tie_embeddings
    if embeddings is None:
        return
    source, target = embeddings.source, embeddings.target
    if source is None and target is None:
        yield _problem("model.embeddings", "names no file; give source, target or both, or remove it")
    if tie == "all" and source is not None and target is not None and source != target:
        message = f"contradicts source: {source}, for with tie_embeddings: all both are one; give one of the two"
        yield _problem("model.embeddings.target", message, "model.embeddings.source", "model.tie_embeddings")
    is_output = tie == "all" or (tie == "target" and target is not None)
    if embeddings.freeze and is_output:
        message = (
            f"true would keep the output layer as it is too, which shares its weights (tie_embeddings: {tie}) and must "
            "learn; set false, or tie_embeddings: none"
        )
        yield _problem("model.embeddings.freeze", message, "model.tie_embeddings", "model.embeddings.target")


def _directions(config: Config) -> Iterator[Problem]:
    encoder = config.model.encoder
    if encoder.directions != "concatenate" and not encoder.bidirectional:
        message = f"{encoder.directions} has no effect with bidirectional: false; remove it, or set bidirectional: true"
        yield _problem("model.encoder.directions", message, "model.encoder.bidirectional", "model.encoder.directions")


def _residual(config: Config) -> Iterator[Problem]:
    for name, part in (("encoder", config.model.encoder), ("decoder", config.model.decoder)):
        if part.residual and part.layers == 1:
            message = "true has no effect with layers: 1, for only layers above the first add what they read; remove it"
            yield _problem(f"model.{name}.residual", message, f"model.{name}.layers")


def _dropout(config: Config) -> Iterator[Problem]:
    decoder = config.model.decoder
    for name, part in (("encoder", config.model.encoder), ("decoder", decoder)):
        others = (decoder.fed_dropout, decoder.attentional_dropout) if part is decoder else ()
        if part.locked_dropout and not any((part.dropout, part.output_dropout, *others)):
            keys = [f"model.{name}.dropout", f"model.{name}.output_dropout"]
            message = f"true has no effect without dropout; remove it, or set {' or '.join(keys)}"
            yield _problem(f"model.{name}.locked_dropout", message, *keys)
    if config.training.r_drop is not None and not (_drops(config.model.encoder) or _drops(decoder)):
        message = "has no effect without dropout, for both passes are then the same; remove it, or set dropout"
        yield _problem("training.r_drop", message, "model.encoder", "model.decoder")
    if decoder.fed_dropout and not decoder.input_feeding:
        message = f"{decoder.fed_dropout} has no effect with input_feeding: false, which feeds nothing; remove it"
        yield _problem("model.decoder.fed_dropout", message, "model.decoder.input_feeding")


def _drops(part: EncoderConfig | DecoderConfig) -> bool:
    others = (part.fed_dropout, part.attentional_dropout) if isinstance(part, DecoderConfig) else ()
    return any((part.dropout, part.output_dropout, part.word_dropout, *others))


def _length_of_training(config: Config) -> Iterator[Problem]:
    training = config.training
    if training.max_epochs is None and training.max_updates is None:
        message = "neither this nor max_updates is set, so training would never end; set one or both"
        yield _problem("training.max_epochs", message, "training.max_updates")
    save, validate = training.save_every, training.validate_every
    if save and save.unit == validate.unit and save.count % validate.count == 0:
        message = (
            f"{save} has no effect, because every validation saves the state too (validate_every: {validate}); "
            "use a shorter interval, or remove it"
        )
        yield _problem("training.save_every", message, "training.validate_every")
    schedule = training.schedule
    if isinstance(schedule, HalvingSchedule) and schedule.after.unit != schedule.every.unit:
        message = f"{schedule.every} does not go with after: {schedule.after}; give both in epochs, or both in updates"
        yield _problem("training.schedule.every", message, "training.schedule.after", "training.schedule.every")


def _plateau(config: Config) -> Iterator[Problem]:
    schedule, rate = config.training.schedule, config.training.optimizer.learning_rate
    if not isinstance(schedule, PlateauSchedule):
        return
    if schedule.minimum_learning_rate >= rate:
        message = (
            f"{schedule.minimum_learning_rate} is not below training.optimizer.learning_rate: {rate}, so the rate "
            "would never be cut"
        )
        yield _problem("training.schedule.minimum_learning_rate", message, "training.optimizer")
    if schedule.stop_below_minimum and not schedule.minimum_learning_rate:
        message = (
            "true has no effect with minimum_learning_rate: 0, for no rate is below 0; set a minimum above 0, or "
            "remove it"
        )
        yield _problem("training.schedule.stop_below_minimum", message, "training.schedule.minimum_learning_rate")
    # With `retain`, early stopping has other best values than the schedule, which then may act before.
    stopping, retain = config.training.early_stopping, config.training.validation.retain
    if stopping is None or retain is not None or stopping.metric != schedule.metric:
        return
    if stopping.patience < schedule.patience + 2:  # the validation that cuts the rate, and one with the new rate
        less = f"less than {stopping.patience - 1}, or " if stopping.patience > 1 else ""
        message = (
            f"{schedule.patience} has no effect: without a better {schedule.metric}, training ends after "
            f"{counted(stopping.patience, 'validation')} (training.early_stopping.patience), and the rate would be cut "
            f"after {counted(schedule.patience + 1, 'validation')}; use {less}early_stopping.patience: "
            f"{schedule.patience + 2} or more"
        )
        reads = ("training.early_stopping", "training.schedule.metric", "training.validation.retain")
        yield _problem("training.schedule.patience", message, *reads)


def _updates(config: Config) -> Iterator[Problem]:
    training = config.training
    if changed(training.optimizer, "decayed") and not training.optimizer.weight_decay:
        message = f"{training.optimizer.decayed} has no effect with weight_decay: 0; remove it, or set weight_decay"
        yield _problem("training.optimizer.decayed", message, "training.optimizer")
    # The plain operations compute in the type of the weights.
    if training.kernels == "plain" and training.precision != "float32":
        message = f"{training.precision} has no effect with training.kernels: plain, which uses float32; remove it"
        yield _problem("training.precision", message, "training.kernels", "training.precision")
    # Batches of sentences are all full except the last; batches of tokens are never quite full anyway.
    pairs, size = training.sort_pairs, training.batch_size
    if pairs and training.batch_by == "sentences" and pairs % size:
        below = pairs // size * size
        multiples = " or ".join(str(multiple) for multiple in (below, below + size) if multiple)
        message = (
            f"{pairs} is not a multiple of training.batch_size: {size}, so the last batch of every {pairs} pairs "
            f"would be smaller; use {multiples}"
        )
        yield _problem("training.sort_pairs", message, "training.batch_size", "training.batch_by")
    if training.batch_order == "shuffled_by_part" and pairs is None:
        message = (
            "shuffled_by_part has no effect without training.sort_pairs, which makes the parts; set it, or shuffled"
        )
        yield _problem("training.batch_order", message, "training.sort_pairs")


def _word_replacement(config: Config) -> Iterator[Problem]:
    rates, key = config.training.word_replacement, "training.word_replacement"
    if rates is not None and not (rates.source or rates.target):
        message = "replaces nothing; set source, target or both, or remove it"
        yield _problem(key, message, f"{key}.source", f"{key}.target")


def _guided_alignment(config: Config) -> Iterator[Problem]:
    pairs = _training_files(config)
    corpora = {**pairs, "data.valid": config.data.valid, **_watched_files(config)}
    aligned = [key for key, pair in corpora.items() if pair.alignments is not None]
    guided = "training.guided_alignment"
    if config.training.guided_alignment is None:
        message = f"has no effect, because {guided} is null; set it, such as to {{weight: 1.0}}, or remove this"
        yield from (_problem(f"{key}.alignments", message, guided) for key in aligned)
        return
    if not pairs.keys() & set(aligned):
        yield _problem(guided, "has no effect without alignments; give them in data.train, or remove it", "data.train")
    if config.subwords.sampling is not None:
        message = (
            "needs one segmentation, whose pieces the alignments are for, but subwords.sampling gives another one in "
            "every epoch; remove one of them"
        )
        yield _problem(guided, message, "subwords.sampling")


def _minimum_risk(config: Config) -> Iterator[Problem]:
    training, risk, key = config.training, config.training.minimum_risk, "training.minimum_risk"
    if risk is None:
        return
    for other in ("guided_alignment", "r_drop", "word_replacement", "scheduled_sampling"):
        if getattr(training, other) is not None:
            message = "has no effect with training.minimum_risk, which minimizes something else; remove one of them"
            yield _problem(f"training.{other}", message, key)
    if training.label_smoothing and not risk.cross_entropy:
        message = (
            f"{training.label_smoothing} has no effect with training.minimum_risk, unless its cross_entropy is above "
            "0; set 0, or set that"
        )
        yield _problem("training.label_smoothing", message, key)
    if risk.candidates == "n-best" and changed(risk, "temperature"):
        message = f"{risk.temperature} has no effect with candidates: n-best, which are not sampled; remove it"
        yield _problem(f"{key}.temperature", message, f"{key}.candidates")
    if risk.size == 1 and not risk.include_reference:
        message = "1 without the reference leaves nothing to compare; use a larger size, or include_reference: true"
        yield _problem(f"{key}.size", message, f"{key}.include_reference")


def _checkpoints(config: Config) -> Iterator[Problem]:
    training, average = config.training, config.training.average_best
    if average == 1:
        message = "1 has no effect: one checkpoint has no average; allowed: 0 (off), or 2 to keep_best"
        yield _problem("training.average_best", message)
    elif average > training.keep_best:
        message = f"{average} checkpoints are to be averaged, but keep_best: {training.keep_best} keeps fewer"
        yield _problem("training.average_best", message, "training.keep_best")


def _rates(config: Config) -> Iterator[Problem]:
    vectors = config.model.embeddings
    are_frozen = vectors is not None and vectors.freeze and vectors.source is not None and vectors.target is not None
    for part, factor in config.training.rate_factors:
        key, no_effect = f"training.rate_factors.{part}", f"{factor:g} has no effect, because"
        if factor != 1.0 and part in config.training.freeze:
            message = f"{no_effect} training.freeze names {part}; remove one of them"
            yield _problem(key, message, "training.freeze")
        elif factor != 1.0 and part == "embeddings" and are_frozen:
            message = f"{no_effect} model.embeddings.freeze keeps both tables as they are; remove one of them"
            yield _problem(key, message, "model.embeddings")


def _fine_tuning(config: Config) -> Iterator[Problem]:
    training = config.training
    is_new = training.vocabulary == "new"  # where it is extended, only tags are new, which no target has
    if training.vocabulary != "same" and "embeddings" in training.freeze:
        message = f"{training.vocabulary} contradicts training.freeze: embeddings, for new pieces have to learn theirs"
        yield _problem("training.vocabulary", message, "training.freeze")
    elif is_new and config.model.tie_embeddings == "none" and "decoder" in training.freeze:
        message = (
            "new contradicts training.freeze: decoder, which has the output layer: new pieces would keep the mean that "
            "they start from there"
        )
        yield _problem("training.vocabulary", message, "training.freeze", "model.tie_embeddings")
    if training.vocabulary == "extended" and not any(files.tag for files in config.data.train):
        message = "extended has no effect without a tag in data.train, which is what it adds; remove it"
        yield _problem("training.vocabulary", message, "data.train")
    repeated = sorted({part for part in training.freeze if training.freeze.count(part) > 1})
    if repeated:
        yield _problem("training.freeze", f"{', '.join(repeated)} is given more than once")
    if set(training.freeze) == set(RateFactors.model_fields):  # the same parts
        yield _problem("training.freeze", "names every part, so nothing is left to train; leave out one of them")


def _decoding(config: Config) -> Iterator[Problem]:
    decoding, risk = config.decoding, config.training.minimum_risk
    beams = [decoding.beam_size, config.training.validation.beam_size]
    if risk is not None and risk.candidates == "n-best":
        beams.append(risk.size)
    for key in ("length_penalty", "coverage_penalty"):
        if max(beams) == 1 and changed(decoding, key):
            message = (
                f"{getattr(decoding, key)} has no effect on greedy search, which has one hypothesis to choose from "
                "(decoding.beam_size and training.validation.beam_size are 1); use a larger beam, or remove it"
            )
            reads = ("decoding.beam_size", "training.validation.beam_size", "training.minimum_risk")
            yield _problem(f"decoding.{key}", message, *reads)
    extra = decoding.max_length_extra
    if decoding.max_length_ratio == 0.0 and extra < 2:  # the end mark is counted
        message = f"{extra} with max_length_ratio: 0 has no effect: a piece and the end mark always fit; use at least 2"
        yield _problem("decoding.max_length_extra", message, "decoding.max_length_ratio")
