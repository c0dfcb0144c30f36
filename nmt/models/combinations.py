"""Which members of the model families go together, and which options they take: checks of a configuration.

Each family's classes say what they take; nothing is listed here twice.
"""

from collections.abc import Iterator
from itertools import chain

from nmt.config import Config, Problem, unknown_names
from nmt.config.allowed import Families
from nmt.config.schema import AttentionConfig, DecodingConfig, ModelConfig, TrainingConfig, changed, memory_size
from nmt.errors import counted
from nmt.models.cells import CELLS
from nmt.models.decoders import DECODERS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.ops.recurrence import LSTM
from nmt.ops.reset_first import ResetFirst

_SCORE = ("model", "attention", "score")
_SCOPE = ("model", "attention", "scope")
_TYPE = ("model", "decoder", "type")
_STATE = ("model", "decoder", "initial_state")
_BIDIRECTIONAL = ("model", "encoder", "bidirectional")
_DIRECTIONS = (_BIDIRECTIONAL, ("model", "encoder", "directions"))


FAMILIES: Families = {
    "cell": CELLS,
    "score": SCORES,
    "scope": SCOPES,
    "decoder": DECODERS,
    "initial state": INITIAL_STATES,
}
"""The names that a configuration may give, by the families of its schema."""


def model_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with `config.model` in the light of FAMILIES; to be passed to `load_config`.

    Where a name is unknown, the other checks assume the default, and problems that follow from it are left out.
    """
    problems = list(unknown_names(config.model, FAMILIES, ("model",)))
    yield from problems
    model, unknown = config.model, {problem.path for problem in problems}
    for _, part, key in (map(str, path) for path in unknown):
        section = getattr(model, part)
        known = section.model_copy(update={key: type(section).model_fields[key].default})
        model = model.model_copy(update={part: known})
    checks = (
        _decoder,
        _copied_state,
        _forget_bias,
        _attention_options,
        _sizes,
        _scope,
        _without_context,
        _without_attention,
    )
    others = (_coverage_penalty(config.decoding, model), _guided_alignment(config.training, model))
    for problem in chain(*(check(model) for check in checks), *others):
        if not unknown & {problem.path, *problem.reads}:
            yield problem


def _decoder(model: ModelConfig) -> Iterator[Problem]:
    decoder, kind, given = model.decoder, DECODERS[model.decoder.type], model.decoder.model_fields_set
    if decoder.cell not in kind.cell_names:
        message = f"{decoder.cell} is not for type: {decoder.type}; allowed: {', '.join(kind.cell_names)}"
        yield Problem(("model", "decoder", "cell"), message, (_TYPE,))
    if decoder.layer_normalisation and isinstance(CELLS[decoder.cell], ResetFirst):
        message = (
            f"true is not for cell: {decoder.cell}, as Ba et al. (2016) normalize the other form; leave it out, or use "
            "gru or lstm"
        )
        yield Problem(("model", "decoder", "layer_normalisation"), message, (("model", "decoder", "cell"),))
    for name in sorted(set().union(*(other.options for other in DECODERS.values())) - kind.options):
        is_meant = name in given and "type" not in given and getattr(decoder, name)  # for a type that was forgotten
        if changed(decoder, name) or is_meant:
            takers = [other for other, decoder_type in DECODERS.items() if name in decoder_type.options]
            message = f"has no effect with type: {decoder.type}; leave it out, or use {' or '.join(takers)}"
            yield Problem(("model", "decoder", name), message, (_TYPE,))


def _attention_options(model: ModelConfig) -> Iterator[Problem]:
    """Options that neither the score nor the scope takes."""
    attention = model.attention
    score, scope = SCORES[attention.score], SCOPES[attention.scope]
    for name in _given(attention):
        if name in ("score", "scope") or name in score.options | scope.options:
            continue
        scores = [other for other, score_type in SCORES.items() if name in score_type.options]
        scopes = [other for other, scope_type in SCOPES.items() if name in scope_type.options]
        family, path, takers = ("scope", _SCOPE, scopes) if scopes else ("score", _SCORE, scores)
        message = (
            f"has no effect with {family}: {getattr(attention, family)}; leave it out, or choose a {family} that takes "
            f"it: {', '.join(takers)}"
        )
        yield Problem(("model", "attention", name), message, (path,))


def _given(attention: AttentionConfig) -> list[str]:
    """The options given: those that differ from the default, and all whose score or scope was not given.

    A user who writes half_width: 10 and forgets the scope would train global attention. Where the scope is given, a
    default counts as absent: a resolved configuration spells out every key, and an override may make one of them idle.
    """
    keys, names = attention.model_fields_set, list(AttentionConfig.model_fields)
    of_scopes = set().union(*(scope.options for scope in SCOPES.values()))
    alone = [name for name in keys if ("scope" if name in of_scopes else "score") not in keys]
    idle = [name for name in alone if getattr(attention, name) not in (None, False)]
    return [name for name in names if name in {*idle, *changed(attention, *names)}]


def _copied_state(model: ModelConfig) -> Iterator[Problem]:
    """States that are taken from the encoder as they are."""
    encoder, decoder = model.encoder, model.decoder
    concatenated = encoder.bidirectional and encoder.directions == "concatenate"
    if decoder.initial_state == "copy":
        needed = {"cell": encoder.cell, "layers": encoder.layers, "hidden_size": memory_size(model)}
    elif decoder.initial_state == "alternate":
        needed = {"cell": encoder.cell, "layers": 2 * encoder.layers, "hidden_size": encoder.hidden_size}
        if not encoder.bidirectional:
            message = "false does not go with decoder.initial_state: alternate, which needs two directions; use copy"
            yield Problem(_BIDIRECTIONAL, message, (_STATE,))
    elif decoder.initial_state == "forward":
        needed = {"hidden_size": encoder.hidden_size}
    else:
        return
    if decoder.initial_state != "copy" and encoder.bidirectional and not concatenated:
        message = f"{encoder.directions} does not go with decoder.initial_state: {decoder.initial_state}; use copy"
        yield Problem(("model", "encoder", "directions"), message, (_STATE, _BIDIRECTIONAL))
    for key, value in needed.items():
        present = getattr(decoder, key)
        if present != value:
            together = decoder.initial_state == "copy" and key == "hidden_size" and concatenated
            both = " (its two directions together)" if together else ""
            way = f"model.decoder.{key}: {value} (now {present})"
            if key == "cell" and value not in DECODERS[decoder.type].cell_names:
                way = f"model.encoder.cell: {present} (now {value})"
            message = (
                f"{decoder.initial_state} needs decoder states like the encoder's{both}: set {way}, or use final, mean "
                "or zeros"
            )
            reads = (("model", "decoder", key), ("model", "encoder", key), _TYPE, *_DIRECTIONS)
            yield Problem(_STATE, message, reads)


def _forget_bias(model: ModelConfig) -> Iterator[Problem]:
    bias = model.initialisation.forget_bias
    if bias and LSTM not in (CELLS[model.encoder.cell], CELLS[model.decoder.cell]):
        cells = (("model", "encoder", "cell"), ("model", "decoder", "cell"))
        message = f"{bias:g} has no effect: neither model.encoder.cell nor model.decoder.cell is lstm; remove it"
        yield Problem(("model", "initialisation", "forget_bias"), message, cells)


def _sizes(model: ModelConfig) -> Iterator[Problem]:
    query, memory, encoder = model.decoder.hidden_size, memory_size(model), model.encoder
    if not SCORES[model.attention.score].same_size or query == memory:
        return
    ways = [f"set model.decoder.hidden_size: {memory}"]
    if encoder.bidirectional and encoder.directions == "concatenate":
        if query % 2 == 0:
            ways.append(f"halve the directions (model.encoder.hidden_size: {query // 2})")
        same = "" if encoder.hidden_size == query else f" and hidden_size: {query}"
        ways.append(f"sum them (model.encoder.directions: sum{same})")
    else:
        ways.append(f"set model.encoder.hidden_size: {query}")
    message = (
        f"{model.attention.score} compares the decoder's state ({counted(query, 'unit')}) with the memory "
        f"({counted(memory, 'unit')}), which must be of one size; {', '.join(ways)}, or use score: general"
    )
    encoder_keys = (("model", "encoder", key) for key in ("hidden_size", "bidirectional", "directions"))
    yield Problem(_SCORE, message, (("model", "decoder", "hidden_size"), *encoder_keys))


def _scope(model: ModelConfig) -> Iterator[Problem]:
    attention, score = model.attention, SCORES[model.attention.score]
    if attention.scope == "global" or not score.positional:
        return
    reason = "scores positions by their number already" if score.aligns else "chooses no positions"
    others = ", ".join(name for name, other in SCORES.items() if not other.positional)
    message = (
        f"{attention.scope} does not go with score: {attention.score}, which {reason}; use global, or one of {others}"
    )
    yield Problem(_SCOPE, message, (_SCORE,))


def _without_attention(model: ModelConfig) -> Iterator[Problem]:
    """No context, or one that is the same at every step."""
    name, score = model.attention.score, SCORES[model.attention.score]
    if score.aligns:
        return
    if changed(model.decoder, "order") and "order" in DECODERS[model.decoder.type].options:
        message = f"{model.decoder.order} has no effect with attention.score: {name}: no state attends; remove it"
        yield Problem(("model", "decoder", "order"), message, (_SCORE, _TYPE))
    if score.context and model.encoder.bidirectional:
        message = (
            f"true does not go with attention.score: {name}, whose context is the last annotation: there the backward "
            "direction has read </s> only; use false"
        )
        yield Problem(_BIDIRECTIONAL, message, (_SCORE,))


def _coverage_penalty(decoding: DecodingConfig, model: ModelConfig) -> Iterator[Problem]:
    penalty, score = decoding.coverage_penalty, model.attention.score
    if penalty and not SCORES[score].aligns:
        message = f"{penalty} needs attention, and model.attention.score is {score}; remove it"
        yield Problem(("decoding", "coverage_penalty"), message, (_SCORE,))


def _guided_alignment(training: TrainingConfig, model: ModelConfig) -> Iterator[Problem]:
    score = model.attention.score
    if training.guided_alignment is not None and not SCORES[score].aligns:
        message = f"needs attention to guide, and model.attention.score is {score}; remove it"
        yield Problem(("training", "guided_alignment"), message, (_SCORE,))


def _without_context(model: ModelConfig) -> Iterator[Problem]:
    """A decoder without context knows the source from its first state only."""
    if SCORES[model.attention.score].context:
        return
    if model.decoder.initial_state == "zeros":
        message = f"zeros with attention.score: {model.attention.score} hides the source; use final, mean or copy"
        yield Problem(_STATE, message, (_SCORE,))
    if not DECODERS[model.decoder.type].without_context:
        message = (
            f"{model.decoder.type} needs a context for its second cell, and score: {model.attention.score} has none"
        )
        yield Problem(_TYPE, f"{message}; use luong or bahdanau", (_SCORE,))
    state, one_layer = model.decoder.initial_state, model.encoder.layers == 1
    one_direction = state in ("final", "forward") and model.encoder.bidirectional and one_layer
    if one_direction:  # with more layers those below the top need both
        message = (
            f"true has no effect with attention.score: {model.attention.score} and initial_state: {state}, which reads "
            f"the {'backward' if state == 'final' else state} direction only; use false, or initial_state: mean or copy"
        )
        yield Problem(_BIDIRECTIONAL, message, (_SCORE, _STATE, ("model", "encoder", "layers")))
    readers = {"mean": ("output_dropout", "layer_normalisation", "directions"), "copy": ("directions",)}
    for key in changed(model.encoder, "output_dropout", "layer_normalisation", "directions"):
        if key not in readers.get(state, ()) and not (one_direction and key == "directions"):
            message = (
                f"has no effect with attention.score: {model.attention.score} and initial_state: {state}, for nothing "
                "reads it"
            )
            yield Problem(("model", "encoder", key), message, (_SCORE, _STATE))


FEW_UNITS = 500
"""With fewer, W_a in [-0.1, 0.1] makes scores of nearly 0. Their standard deviation within a sentence, untrained: 0.02
with 256 GRU units, 0.3 with 512, 1.5 with 1,000, as many as Luong et al. have; LSTM units give a tenth of that."""


def start_warnings(model: ModelConfig, training: TrainingConfig) -> Iterator[str]:
    """Why a new model that is trained so may learn slowly or not at all."""
    decoder, start = model.decoder, model.initialisation
    blind = model.attention.score == "general" and decoder.type == "luong" and decoder.input_feeding
    if blind and start.name == "uniform" and start.range <= 0.1 and decoder.hidden_size < FEW_UNITS:
        units, limit = counted(decoder.hidden_size, "unit"), f"{start.range:g}"
        yield (
            f"score: general with input feeding, {units}, and weights drawn from [-{limit}, {limit}] may learn "
            f"slowly or not at all: with fewer than about {FEW_UNITS} units, attention may settle on one place, and "
            "be ignored. Set model.attention.score: scaled_general, model.initialisation.range: 0.2, or "
            "model.decoder.input_feeding: false (see research/results.md, on the initialization of small models)"
        )
    is_scaled = model.attention.scope == "local-p" and model.attention.position_logit == "scaled"
    if is_scaled and training.optimizer.name == "sgd":
        yield (
            f"model.attention.position_logit: scaled moves {decoder.hidden_size:,} times more slowly than unscaled "
            "with training.optimizer.name: sgd, so that predicted positions stay near the middle of each sentence for "
            "a long time; set unscaled, or use adam"
        )
