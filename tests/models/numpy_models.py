"""The models of the tests' other side: plain NumPy in float64, one sentence and one time step at a time, from the
formulas.

Written from the papers (Bahdanau et al. 2014, Luong et al. 2015, Chorowski et al. 2015, Tu et al. 2016, Ba et al.
2016), not from the package, of which it imports nothing. It shares only the names of the weights and of the settings:
`weights` is a state_dict as arrays, `model` the `model` section of a configuration with every key. It knows nothing
about padding, batches or search.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = dict[str, Array]
Settings = dict[str, Any]


class Steps(NamedTuple):
    """What was computed at each target position, in order."""

    log_probabilities: Array  # (target_length, vocabulary)
    alphas: Array  # (target_length, source_length)
    contexts: Array  # (target_length, memory)
    states: list[list[list[Array]]]  # for each target position and layer: h, or h and c


class Past(NamedTuple):
    """What attention may know about the steps before this one."""

    step: int
    weights: Array  # those of the last step, 0 before the first
    coverage: Array  # the sum of the weights of all steps so far


def sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def softmax(scores: Array) -> Array:
    return np.asarray(np.exp(scores) / np.exp(scores).sum())


def normalised(weights: Weights, name: str, x: Array) -> Array:
    """Layer normalisation, where the model has one of that name."""
    if f"{name}.weight" not in weights:
        return x
    gain, bias, variance = weights[f"{name}.weight"], weights[f"{name}.bias"], ((x - x.mean()) ** 2).mean()
    return gain * (x - x.mean()) / np.sqrt(variance + 1e-5) + bias


# -------------------------------------------------------------------------------------------------------------- cells


def gru(from_input: Array, from_hidden: Array, h: Array) -> Array:
    xr, xz, xn = np.split(from_input, 3)
    hr, hz, hn = np.split(from_hidden, 3)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return np.asarray((1 - z) * np.tanh(xn + r * hn) + z * h)


def gru_reset_first(from_input: Array, gates: Array, candidate: Array, h: Array) -> Array:
    """`gates` has U_r and U_z one below the other, `candidate` is U."""
    xr, xz, xn = np.split(from_input, 3)
    hr, hz = np.split(gates @ h, 2)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return np.asarray((1 - z) * np.tanh(xn + candidate @ (r * h)) + z * h)


def lstm(from_input: Array, from_hidden: Array, cell: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(from_input + from_hidden, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def update(kind: str, from_input: Array, from_hidden: Array, state: list[Array]) -> list[Array]:
    if kind == "gru":
        return [gru(from_input, from_hidden, state[0])]
    return list(lstm(from_input, from_hidden, state[1]))


def decoder_cell(weights: Weights, name: str, kind: str, x: Array, state: list[Array], extra: Any = 0.0) -> list[Array]:
    """One step of the cell `name`; `extra` is what else is added to W x (the fed vector's or the context's part)."""
    from_input = weights[f"{name}.input_layer.weight"] @ x + weights[f"{name}.input_layer.bias"] + extra
    if kind == "gru_reset_first":
        matrices = (weights[f"{name}.{layer}_layer.weight"] for layer in ("recurrent", "candidate"))
        return [gru_reset_first(from_input, *matrices, state[0])]
    from_hidden = weights[f"{name}.recurrent_layer.weight"] @ state[0]
    from_hidden = from_hidden + weights.get(f"{name}.recurrent_layer.bias", np.zeros(1))
    from_input = normalised(weights, f"{name}.input_norm", from_input)
    return update(kind, from_input, normalised(weights, f"{name}.recurrent_norm", from_hidden), state)


# ------------------------------------------------------------------------------------------------------------ encoder


def encode(weights: Weights, model: Settings, source: list[int]) -> tuple[Array, list[list[list[Array]]]]:
    """Annotations (source_length, memory), and the last states of each layer and direction."""
    settings = model["encoder"]
    if settings["reverse_source"]:  # the last token is the end mark, and stays last
        source = [*source[:-1][::-1], source[-1]]
    inputs = [weights["source_embedding.weight"][token] for token in source]
    finals: list[list[list[Array]]] = []
    outputs: list[list[Array]] = []  # of each direction
    for layer in range(settings["layers"]):
        below, outputs, last = outputs, [], []
        for suffix in ("", "_reverse") if settings["bidirectional"] else ("",):
            w, u, b, c = (
                weights[f"encoder.network.{name}_l{layer}{suffix}"]
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            state = [np.zeros(u.shape[1])] * 2
            hidden = []
            for x in inputs[::-1] if suffix else inputs:
                if settings["cell"] == "gru_reset_first":
                    state = [gru_reset_first(w @ x + b + c, *np.split(u, [2 * len(c) // 3]), state[0])]
                else:
                    state = update(settings["cell"], w @ x + b, u @ state[0] + c, state)
                hidden.append(state[0])
            hidden = hidden[::-1] if suffix else hidden
            if settings["residual"] and layer:
                hidden = [h + x for h, x in zip(hidden, below[len(outputs)], strict=True)]
            outputs.append(hidden)
            last.append(state)
        finals.append(last)
        inputs = [np.concatenate(parts) for parts in zip(*outputs, strict=True)]
    annotations = [sum(parts) for parts in zip(*outputs, strict=True)] if settings["directions"] == "sum" else inputs
    annotations = [normalised(weights, "encoder.norm", np.asarray(h)) for h in annotations]
    if settings["reverse_source"]:
        annotations = [*annotations[:-1][::-1], annotations[-1]]
    return np.stack(annotations), finals


def first_states(weights: Weights, model: Settings, memory: Array, finals: list[Any]) -> list[list[Array]]:
    """s_0: for each layer of the decoder h, or h and c."""
    kind, layers, size = (model["decoder"][key] for key in ("initial_state", "layers", "hidden_size"))
    count = 2 if model["decoder"]["cell"] == "lstm" else 1
    if kind == "zeros":
        return [[np.zeros(size)] * count for _ in range(layers)]
    if kind == "copy":
        join: Any = sum if model["encoder"]["directions"] == "sum" else np.concatenate
        return [[join([direction[i] for direction in last]) for i in range(count)] for last in finals]
    last = [layer[-1][0] for layer in finals]
    summary = memory.mean(0) if kind == "mean" else np.sum(last, 0) if model["encoder"]["residual"] else last[-1]
    flat = np.tanh(weights["initial_state.layer.weight"] @ summary + weights["initial_state.layer.bias"])
    parts = np.split(flat, layers * count)
    return [parts[i * count : (i + 1) * count] for i in range(layers)]


# ---------------------------------------------------------------------------------------------------------- attention
# A score gives one number a source position: (score's weights, query, memory, past).


def hidden_layer(w: Weights, total: Array, past: Past) -> Array:
    """v · tanh(total [+ v_c C_j]), `total` (source_length, units)."""
    if "coverage_vector" in w:
        total = total + np.outer(past.coverage, w["coverage_vector"])
    return np.tanh(total) @ w["vector"]


def additive(w: Weights, query: Array, memory: Array, past: Past) -> Array:
    total = [w["query_layer.weight"] @ query + w["memory_layer.weight"] @ h for h in memory]
    return hidden_layer(w, np.stack(total) + w.get("memory_layer.bias", np.zeros(1)), past)


def concat(w: Weights, query: Array, memory: Array, past: Past) -> Array:
    return hidden_layer(w, np.stack([w["layer.weight"] @ np.concatenate([query, h]) for h in memory]), past)


def location(w: Weights, query: Array, memory: Array, past: Past) -> Array:
    """W_a h_t, cut to the sentence; positions that W_a does not have get no weight."""
    known = (w["layer.weight"] @ query)[: len(memory)]
    return np.concatenate([known, np.full(len(memory) - len(known), -np.inf)])


def location_sensitive(w: Weights, query: Array, memory: Array, past: Past) -> Array:
    filters = w["convolution.weight"][:, 0]
    width = filters.shape[1]
    padded = np.concatenate([np.zeros(width // 2), past.weights, np.zeros(width // 2)])
    total = [
        w["query_layer.weight"] @ query
        + w["memory_layer.weight"] @ h
        + w["filter_layer.weight"] @ (filters @ padded[j : j + width])
        for j, h in enumerate(memory)
    ]
    return hidden_layer(w, np.stack(total) + w.get("memory_layer.bias", np.zeros(1)), past)


SCORES: dict[str, Callable[[Weights, Array, Array, Past], Array] | None] = {
    "additive": additive,
    "concat": concat,
    "dot": lambda w, query, memory, past: np.array([query @ h for h in memory]),
    "scaled_dot": lambda w, query, memory, past: np.array([query @ h / len(query) ** 0.5 for h in memory]),
    "general": lambda w, query, memory, past: np.array([query @ w["layer.weight"] @ h for h in memory]),
    "cosine": lambda w, query, memory, past: np.array(
        [w["temperature"] * (query @ h) / ((query @ query) * (h @ h)) ** 0.5 for h in memory]
    ),
    "location": location,
    "location_sensitive": location_sensitive,
    "fixed": lambda w, query, memory, past: np.array([-np.inf] * (len(memory) - 1) + [0.0]),
    "none": None,  # no attention: no weights, and a context of no units
}


# A scope turns scores into weights: (scope's weights, attention's settings, scores, query, step).


def monotonic(w: Weights, settings: Settings, scores: Array, query: Array, step: int) -> Array:
    point = min(step, len(scores) - 1)
    weights = around(point, settings, scores)
    return weights * gaussian(point, settings, len(scores)) if settings["gaussian"] else weights


def predictive(w: Weights, settings: Settings, scores: Array, query: Array, step: int) -> Array:
    share = sigmoid(w["vector"] @ np.tanh(w["layer.weight"] @ query))
    scale = {"last_position": len(scores) - 1, "length": len(scores)}[settings["position_scale"]]
    point = float(scale * share)
    weights = around(point, settings, scores) * gaussian(point, settings, len(scores))
    return np.asarray(weights / weights.sum()) if settings["renormalise"] else weights


def gaussian(point: float, settings: Settings, length: int) -> Array:
    sigma = settings["half_width"] / 2
    return np.asarray(np.exp(-((np.arange(length) - point) ** 2) / (2 * sigma**2)))


def around(point: float, settings: Settings, scores: Array) -> Array:
    """Softmax over the positions not farther than D from `point`; 0 elsewhere."""
    inside = [s for s in range(len(scores)) if abs(s - point) <= settings["half_width"]]
    weights = np.zeros(len(scores))
    weights[inside] = softmax(scores[inside])
    return weights


SCOPES: dict[str, Callable[[Weights, Settings, Array, Array, int], Array]] = {
    "global": lambda w, settings, scores, query, step: softmax(scores),
    "local-m": monotonic,
    "local-p": predictive,
}


def below(weights: Weights, prefix: str) -> Weights:
    return {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}


def attend(weights: Weights, settings: Settings, memory: Array, past: Past, query: Array) -> tuple[Array, Array]:
    """Context and weights of one query; `weights` are those of the attention."""
    score = SCORES[settings["score"]]
    if score is None:
        return np.zeros(0), np.zeros(len(memory))
    fixed = {"temperature": np.asarray(settings["temperature"])}  # the learned one is among the weights
    scores = score({**fixed, **below(weights, "score.")}, query, memory, past)
    alphas = SCOPES[settings["scope"]](below(weights, "scope."), settings, scores, query, past.step)
    return alphas @ memory, alphas


# ----------------------------------------------------------------------------------------------------------- decoders
# One step: (weights, decoder's settings, E y_{i-1}, the states before, the vector for the output layer and the context
# of the last step, attend) → (new states, vector, context, weights). `attend` takes the query.

Attend = Callable[[Array], tuple[Array, Array]]
Step = tuple[list[list[Array]], Array, Array, Array]
Last = tuple[Array, Array]


def stack(weights: Weights, settings: Settings, states: list[list[Array]], first: list[Array]) -> list[list[Array]]:
    """The new states of all layers, `first` being layer 0's; each layer reads what the one below gives."""
    new = [first]
    for layer in range(1, settings["layers"]):
        below = top_of(settings, new)
        new.append(decoder_cell(weights, f"decoder.cells.{layer}", settings["cell"], below, states[layer]))
    return new


def top_of(settings: Settings, states: list[list[Array]]) -> Array:
    """What the last of these layers gives: its hidden state, and with residual connections what it has read as well."""
    if settings["residual"] and len(states) > 1:
        return states[-1][0] + top_of(settings, states[:-1])
    return states[-1][0]


def luong(weights: Weights, settings: Settings, x: Array, states: Any, last: Last, attend: Attend) -> Step:
    feed = weights["decoder.feed.weight"] @ last[0] if settings["input_feeding"] else 0.0
    first = decoder_cell(weights, "decoder.cells.0", settings["cell"], x, states[0], feed)
    states = stack(weights, settings, states, first)
    top = top_of(settings, states)
    context, alphas = attend(top)
    vector = np.tanh(weights["decoder.combine.weight"] @ np.concatenate([context, top]))
    return states, vector, context, alphas


def readout(weights: Weights, *parts: Array) -> Array:
    return np.asarray(weights["decoder.readout.weight"] @ np.concatenate(parts) + weights["decoder.readout.bias"])


def bahdanau(weights: Weights, settings: Settings, x: Array, states: Any, last: Last, attend: Attend) -> Step:
    """In the paper's order attention comes before the cell; in the authors' after it, which reads the last context."""
    if settings["order"] == "paper":
        context, alphas = attend(top_of(settings, states))
        states = read_with_context(weights, settings, x, states, context)
    else:
        states = read_with_context(weights, settings, x, states, last[1])
        context, alphas = attend(top_of(settings, states))
    pairs = readout(weights, top_of(settings, states), x, context).reshape(-1, 2)
    return states, pairs.max(1), context, alphas


def read_with_context(weights: Weights, settings: Settings, x: Array, states: Any, context: Array) -> list[list[Array]]:
    extra = weights["decoder.context_layer.weight"] @ context if len(context) else 0.0
    first = decoder_cell(weights, "decoder.cells.0", settings["cell"], x, states[0], extra)
    return stack(weights, settings, states, first)


def conditional_gru(weights: Weights, settings: Settings, x: Array, states: Any, last: Last, attend: Attend) -> Step:
    between = decoder_cell(weights, "decoder.cells.0", settings["cell"], x, states[0])
    context, alphas = attend(between[0])
    first = decoder_cell(weights, "decoder.context_cell", settings["cell"], context, between)
    states = stack(weights, settings, states, first)
    return states, np.tanh(readout(weights, top_of(settings, states), x, context)), context, alphas


DECODERS = {"luong": luong, "bahdanau": bahdanau, "conditional_gru": conditional_gru}


def run(weights: Weights, model: Settings, source: list[int], target_input: list[int]) -> Steps:
    """Everything about one sentence pair; `target_input` begins with the mark of the beginning."""
    memory, finals = encode(weights, model, source)
    states = first_states(weights, model, memory, finals)
    embedding = weights.get("own_target_embedding.weight", weights["source_embedding.weight"])
    output = weights.get("output_layer.weight", embedding)
    past = Past(0, np.zeros(len(memory)), np.zeros(len(memory)))
    vector, context = np.zeros(output.shape[1]), np.zeros(memory.shape[1])
    attention, settings = below(weights, "decoder.attention."), model["attention"]
    of_decoder = model["decoder"]
    if settings["score"] in ("none", "fixed"):  # no state attends, so there are no two orders
        of_decoder = {**of_decoder, "order": "paper"}
    decoder, rows = DECODERS[of_decoder["type"]], []
    for token in target_input:
        look = partial(attend, attention, settings, memory, past)
        last = (vector, context)
        states, vector, context, alphas = decoder(weights, of_decoder, embedding[token], states, last, look)
        past = Past(past.step + 1, alphas, past.coverage + alphas)
        logits = output @ vector
        rows.append((logits - np.log(np.exp(logits).sum()), alphas, context, states))
    log_probabilities, all_alphas, contexts, all_states = (list(column) for column in zip(*rows, strict=True))
    return Steps(np.stack(log_probabilities), np.stack(all_alphas), np.stack(contexts), all_states)
