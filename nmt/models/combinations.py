"""Which members of the model families go together, and which options they take: checks of a configuration.

Each family's classes say what they take; nothing is listed here twice.
"""

import inspect
from collections.abc import Mapping

from torch import nn

from nmt.config.allowed import Families
from nmt.config.problems import Problem, problem_at
from nmt.config.schema import Config, ModelConfig, Section, TrainingConfig, changed, memory_size
from nmt.errors import counted
from nmt.models.cells import CELLS
from nmt.models.decoders import DECODERS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.initialization import usual_range
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.ops.recurrence import LSTM
from nmt.ops.reset_first import ResetFirst

FAMILIES: Families = {
    "cell": CELLS,
    "score": SCORES,
    "scope": SCOPES,
    "decoder": DECODERS,
    "initial state": INITIAL_STATES,
}
"""The names that a configuration may give, by the families of its schema; to be passed to `read_config`."""


Members = Mapping[str, type[nn.Module]]


def options(member: type[nn.Module]) -> frozenset[str]:
    """The keys of its section that a member takes, and others may not: the keyword arguments of its constructor."""
    parameters = inspect.signature(member).parameters.values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def model_problems(config: Config) -> list[Problem]:
    """Which parts of `config.model`, whose names are all in FAMILIES, do not go together."""
    model = config.model
    problems: list[Problem] = []
    _options(model.attention, "model.attention", "score", SCORES, problems)
    _options(model.attention, "model.attention", "scope", SCOPES, problems)
    _options(model.decoder, "model.decoder", "type", DECODERS, problems)
    for check in (_cells, _copied_state, _sizes, _without_context):
        check(model, problems)
    _attention(config, problems)
    return problems


def _options(section: Section, path: str, family: str, members: Members, problems: list[Problem]) -> None:
    """Options of a section that the chosen member of a family does not take, but others do.

    An option that has its default counts as absent where the member is named: a resolved configuration spells out every
    key, and an override may make one of them idle. Who writes half_width: 10 alone has forgotten the scope.
    """
    chosen: str = getattr(section, family)
    others = set().union(*map(options, members.values())) - options(members[chosen])
    is_named = family in section.model_fields_set
    for key in sorted(others & section.model_fields_set):
        if changed(section, key) or (getattr(section, key) and not is_named):
            takers = [name for name, member in members.items() if key in options(member)]
            message = f"has no effect with {family}: {chosen}; leave it out, or use {' or '.join(takers)}"
            problems.append(problem_at(f"{path}.{key}", message))


def _cells(model: ModelConfig, problems: list[Problem]) -> None:
    decoder, names = model.decoder, DECODERS[model.decoder.type].cell_names
    if decoder.cell not in names:
        message = f"{decoder.cell} is not for type: {decoder.type}; allowed: {', '.join(names)}"
        problems.append(problem_at("model.decoder.cell", message))
    if decoder.layer_normalization and isinstance(CELLS[decoder.cell], ResetFirst):
        message = f"true is not for cell: {decoder.cell}, whose form Ba et al. (2016) do not normalize; use gru or lstm"
        problems.append(problem_at("model.decoder.layer_normalization", message))
    bias = model.initialization.forget_bias
    if bias and LSTM not in (CELLS[model.encoder.cell], CELLS[decoder.cell]):
        message = f"{bias:g} has no effect: neither model.encoder.cell nor model.decoder.cell is lstm; remove it"
        problems.append(problem_at("model.initialization.forget_bias", message))


def _copied_state(model: ModelConfig, problems: list[Problem]) -> None:
    """States that are taken from the encoder as they are."""
    encoder, decoder, state = model.encoder, model.decoder, model.decoder.initial_state
    if state == "copy":
        needed = {"cell": encoder.cell, "layers": encoder.layers, "hidden_size": memory_size(model)}
    elif state == "alternate":
        needed = {"cell": encoder.cell, "layers": 2 * encoder.layers, "hidden_size": encoder.hidden_size}
    elif state == "forward":
        needed = {"hidden_size": encoder.hidden_size}
    else:
        return
    if state == "alternate" and not encoder.bidirectional:
        message = "false does not go with decoder.initial_state: alternate, which needs two directions; use copy"
        problems.append(problem_at("model.encoder.bidirectional", message))
    if state != "copy" and encoder.bidirectional and encoder.directions == "sum":
        message = f"sum does not go with decoder.initial_state: {state}; use copy"
        problems.append(problem_at("model.encoder.directions", message))
    ways = [
        f"model.decoder.{key}: {value} (now {getattr(decoder, key)})"
        for key, value in needed.items()
        if getattr(decoder, key) != value
    ]
    if ways:
        message = f"{state} takes the encoder's states as they are: set {', '.join(ways)}, or use final, mean or zeros"
        problems.append(problem_at("model.decoder.initial_state", message))


def _sizes(model: ModelConfig, problems: list[Problem]) -> None:
    query, memory, name = model.decoder.hidden_size, memory_size(model), model.attention.score
    if SCORES[name].same_size and query != memory:
        message = (
            f"{name} needs a decoder's state ({counted(query, 'unit')}) as large as the encoder's memory "
            f"({counted(memory, 'unit')}); set model.decoder.hidden_size: {memory}, or use score: general"
        )
        problems.append(problem_at("model.attention.score", message))


def _attention(config: Config, problems: list[Problem]) -> None:
    """Scores of positions alone, and those that no state of the decoder has a say in."""
    model, name = config.model, config.model.attention.score
    score, scope = SCORES[name], model.attention.scope
    if score.positional and scope != "global":
        others = ", ".join(other for other, kind in SCORES.items() if not kind.positional)
        message = f"{scope} does not go with score: {name}, which looks at no words; use global, or one of {others}"
        problems.append(problem_at("model.attention.scope", message))
    if score.aligns:
        return
    decoder = model.decoder
    idle = {
        "decoding.coverage_penalty": config.decoding.coverage_penalty != 0.0,
        "training.guided_alignment": config.training.guided_alignment is not None,
        "model.decoder.order": "order" in options(DECODERS[decoder.type]) and bool(changed(decoder, "order")),
    }
    message = f"has no effect with attention.score: {name}, where no state attends; remove it"
    problems += [problem_at(key, message) for key, is_given in idle.items() if is_given]
    if score.context and model.encoder.bidirectional:
        message = f"true does not go with attention.score: {name}, whose context has read one direction only; use false"
        problems.append(problem_at("model.encoder.bidirectional", message))


def _without_context(model: ModelConfig, problems: list[Problem]) -> None:
    """A decoder without context knows the source from its first state only."""
    name, encoder, state = model.attention.score, model.encoder, model.decoder.initial_state
    if SCORES[name].context:
        return
    if state == "zeros":
        message = f"zeros with attention.score: {name} hides the source; use final, mean or copy"
        problems.append(problem_at("model.decoder.initial_state", message))
    if not DECODERS[model.decoder.type].without_context:
        message = f"{model.decoder.type} needs a context, which score: {name} has not; use luong or bahdanau"
        problems.append(problem_at("model.decoder.type", message))
    one_direction = state in ("final", "forward") and encoder.bidirectional and encoder.layers == 1
    if one_direction:  # with more layers those below the top need both
        message = f"true has no effect with attention.score: {name} and initial_state: {state}; use false, mean or copy"
        problems.append(problem_at("model.encoder.bidirectional", message))
    readers = {"mean": ("output_dropout", "layer_normalization", "directions"), "copy": ("directions",)}
    for key in changed(encoder, "output_dropout", "layer_normalization", "directions"):
        if key not in readers.get(state, ()) and not (one_direction and key == "directions"):
            message = f"has no effect with attention.score: {name} and initial_state: {state}, for nothing reads it"
            problems.append(problem_at(f"model.encoder.{key}", message))


def start_warnings(model: ModelConfig, training: TrainingConfig) -> list[str]:
    """Why a new model that is trained so may learn slowly or not at all."""
    warnings: list[str] = []
    decoder, start = model.decoder, model.initialization
    blind = model.attention.score in ("dot", "general") and decoder.type == "luong" and decoder.input_feeding
    given = start.range if start.name == "uniform" else None
    if blind and given is not None and given <= 0.1 < usual_range(decoder.hidden_size):
        units, limit = counted(decoder.hidden_size, "unit"), f"{given:g}"
        warnings.append(
            f"score: {model.attention.score} with input feeding, {units}, and weights drawn from [-{limit}, {limit}] "
            "may learn slowly or not at all: attention may settle on one place, and be ignored. Leave "
            "model.initialization.range out, or set model.decoder.input_feeding: false (see research/results.md, on "
            "the initialization of small models)"
        )
    is_scaled = model.attention.scope == "local-p" and model.attention.position_logit == "scaled"
    if is_scaled and training.optimizer.name == "sgd":
        warnings.append(
            f"model.attention.position_logit: scaled moves {decoder.hidden_size:,} times more slowly than "
            "unscaled with training.optimizer.name: sgd, so that predicted positions stay near the middle of each "
            "sentence for a long time; set unscaled, or use adam"
        )
    return warnings
