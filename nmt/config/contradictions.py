"""Checks between keys: combinations that contradict each other, and options that would have no effect.

Checks of a single key are constraints in `schema.py`, and these run only where all of them pass. An option counts as
having no effect only if its value differs from the default. A resolved configuration, which spells out every key,
therefore passes, and so does a file that spells out a default which an override makes idle. The length of a run
contradicts nothing: a trial run with --set training.max_updates=20 must start with any configuration, even if its
patience, warm-up or halving then never comes into play.
"""

from nmt.config.problems import Problem, in_words, problem_at
from nmt.config.schema import (
    MODELS,
    TRAINED_SUBWORDS,
    VOCABULARIES,
    Config,
    DecoderConfig,
    EncoderConfig,
    HalvingSchedule,
    LinearSchedule,
    ParallelFiles,
    PlateauSchedule,
    changed,
    existing_models,
)
from nmt.symbols import PIECES

Problems = list[Problem]


def contradictions(config: Config) -> list[Problem]:
    """Every problem between keys."""
    problems: list[Problem] = []
    subwords = (_existing_models, _trained_models, _sampling)
    model = (_tied_embeddings, _pretrained_embeddings, _layers, _dropout)
    training = (_length_of_training, _plateau, _updates, _guided_alignment, _minimum_risk, _checkpoints)
    for check in (_data, _watched, *subwords, *model, *training, _fine_tuning, _decoding):
        check(config, problems)
    return problems


def _training_files(config: Config) -> dict[str, ParallelFiles]:
    """The corpora of data.train, by their keys."""
    return {f"data.train.{index}": pair for index, pair in enumerate(config.data.train)}


def _watched_files(config: Config) -> dict[str, ParallelFiles]:
    """The corpora of data.watch, by their keys."""
    return {f"data.watch.{index}": pair for index, pair in enumerate(config.data.watch)}


def _data(config: Config, problems: Problems) -> None:
    valid, train = config.data.valid, _training_files(config)
    for key, pair in {"data.valid": valid, **train, **_watched_files(config)}.items():
        if pair.source == pair.target:
            problems.append(problem_at(key, f"source and target are the same file, {pair.source}"))
    for key, pair in train.items():
        if (pair.source, pair.target) == (valid.source, valid.target):
            message = "these are the files of data.valid; validation needs sentences that are not trained on"
            problems.append(problem_at(key, message))
    for index, files in enumerate(config.data.train):
        if files.tag in PIECES:
            message = f"{files.tag} is one of the special symbols {', '.join(PIECES)}; choose another, such as <BT>"
            problems.append(problem_at(f"data.train.{index}.tag", message))


def _watched(config: Config, problems: Problems) -> None:
    names = [files.name for files in config.data.watch]
    for index, name in enumerate(names):
        if name in names[:index]:
            message = f"{name} is the name of data.watch.{names.index(name)}, too; give each its own"
            problems.append(problem_at(f"data.watch.{index}.name", message))


_KEY_SETS = (("model",), ("source_model", "target_model"), ("vocabulary",), ("source_vocabulary", "target_vocabulary"))


def _existing_models(config: Config, problems: Problems) -> None:
    subwords = config.subwords
    keys = tuple(existing_models(subwords))
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


def _sampling(config: Config, problems: Problems) -> None:
    subwords, sampling = config.subwords, config.subwords.sampling
    if sampling is None:
        return
    keys = existing_models(subwords)
    kind = None if keys else subwords.type  # an existing model brings its own type
    if kind in ("char", "word") or set(keys) & set(VOCABULARIES):
        message = "has no effect on whole words or characters, which have one segmentation; use bpe or unigram"
        problems.append(problem_at("subwords.sampling", message))
    elif kind == "bpe" and changed(sampling, "nbest_size"):
        message = f"{sampling.nbest_size} has no effect for type: bpe, which is sampled by alpha alone; remove it"
        problems.append(problem_at("subwords.sampling.nbest_size", message))


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
        problems.append(problem_at("model.embeddings", "names no file; give source, target or both, or remove it"))
    if tie == "all" and source is not None and target is not None and source != target:
        message = f"contradicts source: {source}, for with tie_embeddings: all both are one; give one of the two"
        problems.append(problem_at("model.embeddings.target", message))
    is_output = tie == "all" or (tie == "target" and target is not None)
    if embeddings.freeze and is_output:
        message = f"true would freeze the output layer, which shares its weights (tie_embeddings: {tie}); set false"
        problems.append(problem_at("model.embeddings.freeze", message))


def _layers(config: Config, problems: Problems) -> None:
    encoder = config.model.encoder
    if encoder.directions != "concatenate" and not encoder.bidirectional:
        message = f"{encoder.directions} has no effect with bidirectional: false; remove it, or set bidirectional: true"
        problems.append(problem_at("model.encoder.directions", message))
    for name, part in (("encoder", encoder), ("decoder", config.model.decoder)):
        if part.residual and part.layers == 1:
            message = "true has no effect with layers: 1, for only layers above the first add what they read; remove it"
            problems.append(problem_at(f"model.{name}.residual", message))


def _dropout(config: Config, problems: Problems) -> None:
    encoder, decoder = config.model.encoder, config.model.decoder
    for name, part in (("encoder", encoder), ("decoder", decoder)):
        if part.locked_dropout and not any(_rates_of_masks(part)):
            message = f"true has no effect without dropout; remove it, or set model.{name}.dropout or output_dropout"
            problems.append(problem_at(f"model.{name}.locked_dropout", message))
    rates = [*_rates_of_masks(encoder), *_rates_of_masks(decoder), encoder.word_dropout, decoder.word_dropout]
    if config.training.r_drop is not None and not any(rates):
        message = "has no effect without dropout, for both passes are then the same; remove it, or set dropout"
        problems.append(problem_at("training.r_drop", message))
    if decoder.fed_dropout and not decoder.input_feeding:
        message = f"{decoder.fed_dropout} has no effect with input_feeding: false, which feeds nothing; remove it"
        problems.append(problem_at("model.decoder.fed_dropout", message))


def _rates_of_masks(part: EncoderConfig | DecoderConfig) -> list[float | None]:
    """The rates of dropout, except that of whole words."""
    others = [part.fed_dropout, part.attentional_dropout] if isinstance(part, DecoderConfig) else []
    return [part.dropout, part.output_dropout, *others]


def _length_of_training(config: Config, problems: Problems) -> None:
    training = config.training
    if training.max_epochs is None and training.max_updates is None:
        if training.early_stopping is None:
            message = (
                "null with neither max_epochs nor max_updates: training would never end; leave this out, or set one"
            )
            problems.append(problem_at("training.early_stopping", message))
        if isinstance(training.schedule, LinearSchedule):
            message = "linear needs max_epochs or max_updates, to fall to 0 where it ends training; set one"
            problems.append(problem_at("training.schedule", message))
    save, validate = training.save_every, training.validate_every
    if save and save.unit == validate.unit and save.count % validate.count == 0:
        message = f"{save} has no effect: every validation saves the state too (validate_every: {validate}); remove it"
        problems.append(problem_at("training.save_every", message))
    schedule = training.schedule
    if isinstance(schedule, HalvingSchedule) and schedule.after.unit != schedule.every.unit:
        message = f"{schedule.every} does not go with after: {schedule.after}; give both in epochs, or both in updates"
        problems.append(problem_at("training.schedule.every", message))


def _plateau(config: Config, problems: Problems) -> None:
    schedule, rate = config.training.schedule, config.training.optimizer.learning_rate
    if not isinstance(schedule, PlateauSchedule):
        return
    minimum = schedule.minimum_learning_rate
    if minimum >= rate:
        message = f"{minimum} is not below training.optimizer.learning_rate: {rate}, so the rate would never be cut"
        problems.append(problem_at("training.schedule.minimum_learning_rate", message))
    if schedule.stop_below_minimum and not minimum:
        message = "true has no effect with minimum_learning_rate: 0; set a minimum above 0, or remove it"
        problems.append(problem_at("training.schedule.stop_below_minimum", message))
    stopping = config.training.early_stopping
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


def _updates(config: Config, problems: Problems) -> None:
    training = config.training
    if changed(training.optimizer, "decayed") and not training.optimizer.weight_decay:
        message = f"{training.optimizer.decayed} has no effect with weight_decay: 0; remove it, or set weight_decay"
        problems.append(problem_at("training.optimizer.decayed", message))
    # The plain operations compute in the type of the weights.
    if training.kernels == "plain" and training.precision != "float32":
        message = f"{training.precision} has no effect with training.kernels: plain, which uses float32; remove it"
        problems.append(problem_at("training.precision", message))
    if training.batch_order == "shuffled_by_part" and training.sort_pairs is None:
        message = "shuffled_by_part has no effect without training.sort_pairs, which makes the parts; set it"
        problems.append(problem_at("training.batch_order", message))
    replaced = training.word_replacement
    if replaced is not None and not (replaced.source or replaced.target):
        message = "replaces nothing; set source, target or both, or remove it"
        problems.append(problem_at("training.word_replacement", message))


def _guided_alignment(config: Config, problems: Problems) -> None:
    pairs = _training_files(config)
    corpora = {**pairs, "data.valid": config.data.valid, **_watched_files(config)}
    aligned = [key for key, pair in corpora.items() if pair.alignments is not None]
    guided = "training.guided_alignment"
    if config.training.guided_alignment is None:
        message = f"has no effect, because {guided} is null; set it, such as to {{weight: 1.0}}, or remove this"
        problems += [problem_at(f"{key}.alignments", message) for key in aligned]
        return
    if not pairs.keys() & set(aligned):
        message = "has no effect without alignments; give them in data.train (nmt-align learns some), or remove it"
        problems.append(problem_at(guided, message))


def _minimum_risk(config: Config, problems: Problems) -> None:
    training, risk, key = config.training, config.training.minimum_risk, "training.minimum_risk"
    if risk is None:
        return
    for other in ("guided_alignment", "r_drop", "word_replacement", "scheduled_sampling"):
        if getattr(training, other) is not None:
            message = "has no effect with training.minimum_risk, which minimizes something else; remove one of them"
            problems.append(problem_at(f"training.{other}", message))
    if training.label_smoothing and not risk.cross_entropy:
        message = f"{training.label_smoothing} has no effect with training.minimum_risk without its cross_entropy"
        problems.append(problem_at("training.label_smoothing", message))
    if risk.candidates == "n-best" and changed(risk, "temperature"):
        message = f"{risk.temperature} has no effect with candidates: n-best, which are not sampled; remove it"
        problems.append(problem_at(f"{key}.temperature", message))
    if risk.size == 1 and not risk.include_reference:
        message = "1 without the reference leaves nothing to compare; use a larger size, or include_reference: true"
        problems.append(problem_at(f"{key}.size", message))


def _checkpoints(config: Config, problems: Problems) -> None:
    average, kept = config.training.average_best, config.training.keep_best
    if average > kept:
        message = f"{average} checkpoints are to be averaged, but keep_best: {kept} keeps fewer"
        problems.append(problem_at("training.average_best", message))


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
    if training.vocabulary == "extended" and not has_symbols and not any(files.tag for files in config.data.train):
        message = "extended has no effect without what it adds, a tag in data.train or subwords.symbols; remove it"
        problems.append(problem_at("training.vocabulary", message))
    if set(training.freeze) == {"embeddings", "encoder", "decoder"}:
        message = "names every part, so nothing is left to train; leave out one of them"
        problems.append(problem_at("training.freeze", message))


def _decoding(config: Config, problems: Problems) -> None:
    decoding, risk = config.decoding, config.training.minimum_risk
    beams = [decoding.beam_size, config.training.validation.beam_size]
    if risk is not None and risk.candidates == "n-best":
        beams.append(risk.size)
    if max(beams) == 1:
        for key in changed(decoding, "length_penalty", "coverage_penalty"):
            message = f"{getattr(decoding, key)} has no effect on greedy search; use a larger beam, or remove it"
            problems.append(problem_at(f"decoding.{key}", message))
    extra = decoding.max_length_extra
    if decoding.max_length_ratio == 0.0 and extra < 2:  # the end mark is counted
        message = f"{extra} with max_length_ratio: 0 has no effect: a piece and the end mark always fit; use at least 2"
        problems.append(problem_at("decoding.max_length_extra", message))
