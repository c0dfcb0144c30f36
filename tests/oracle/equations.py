"""The oracle: every model of the toolkit in plain NumPy, one sentence and one step at a time, as its paper writes it.

It was written from docs/models.md and the papers, apart from the package, of which it imports nothing; it shares the
keys of a configuration and the names and shapes of weights. It knows nothing about batches, padding, masks, caches or
speed. Whoever asks what an option means finds the equation here.

    oracle = Model(weights, settings)        a state_dict as arrays, and the section `model` with all its keys
    oracle.forced(source, target)            ids with END; what the model says at each step

Weights may be complex: with w + ih·d, h = 1e-30, the imaginary part of any result over h is its derivative in the
direction d, without rounding (Squire & Trapp 1998, "Using complex variables to estimate derivatives of real
functions"). So nothing here takes an absolute value or a maximum of what is differentiated; where a choice is made, the
real parts are compared.

Sources, with the numbers of their equations and sections. B is Bahdanau, Cho & Bengio 2014 (arXiv 1409.0473), GH their
code (GroundHog, experiments/nmt/encdec.py), L Luong, Pham & Manning 2015 (1508.04025), C Cho et al. 2014 (1406.1078):

    encoder               B 3.2, A.2.1 (two directions); L 3, figure 2 (one)
    reversed source       Sutskever et al. 2014 (1409.3215), 3.3
    residual connections  Wu et al. 2016 (1609.08144), 3.1
    layer normalization   Ba et al. 2016 (1607.06450), 4
    gru_reset_first       C 5 to 8; B A.1.1
    gru                   the same with the reset gate after U, as cuDNN has it
    lstm                  Graves 2013 (1308.0850), 7 to 11, without peepholes
    initial states        B A.2.2 (final); dl4mt, docs/cgru.tex (mean); Luong's code (copy)
    luong                 L 5, 6; 3.3 (input feeding)
    bahdanau              B 4 to 6, A.2.2 (order: paper, and the maxout layer); GH (order: authors)
    conditional_gru       dl4mt, docs/cgru.tex
    weights and context   B 5, 6; L 7
    additive              B A.1.2
    dot, general, concat  L 3.1
    scaled_dot            Vaswani et al. 2017 (1706.03762), 1; scaled_general: general with the same divisor
    cosine                Graves et al. 2014 (1410.5401), 5, 6, with one temperature for all steps
    location              L 8
    location_sensitive    Chorowski et al. 2015 (1506.07503), 8, 9
    coverage              Tu et al. 2016 (1601.04811), 3.1
    fixed                 B A.2.2, RNNencdec
    local-m, local-p      L 3.2, 9, 10

Counted from 0 here: source positions j, target steps t, layers.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Vector = np.ndarray[Any, Any]  # float64, or complex128 where a derivative is taken
Weights = dict[str, Vector]
Settings = dict[str, Any]


def sigmoid(x: Vector) -> Vector:
    return 1.0 / (1.0 + np.exp(-x))


def log_softmax(x: Vector) -> Vector:
    return x - np.log(np.exp(x).sum())


def normalized(x: Vector, gain: Vector, bias: Vector) -> Vector:
    """Ba et al., equation 4; 1e-5 keeps a vector of equal numbers from dividing by 0."""
    centered = x - x.sum() / len(x)
    return gain * centered / np.sqrt(centered @ centered / len(x) + 1e-5) + bias


def joined(*vectors: Vector) -> Vector:
    return np.concatenate(vectors)


def parts(vector: Vector, number: int) -> Vector:
    """So many parts of equal size."""
    return vector.reshape(number, -1)


# -------------------------------------------------------------------------------------------------------------- cells
# A state is (h,), or (h, c) of an LSTM. `wx` is the input's part of all gates, `uh` the function U · + b of a state.


def gru(wx: Vector, u: Callable[[Vector], Vector], h: Vector) -> tuple[Vector]:
    wx_r, wx_z, wx_g = parts(wx, 3)
    uh_r, uh_z, uh_g = parts(u(h), 3)
    r, z = sigmoid(wx_r + uh_r), sigmoid(wx_z + uh_z)
    g = np.tanh(wx_g + r * uh_g)
    return ((1 - z) * g + z * h,)


def gru_reset_first(wx: Vector, u: Callable[[Vector], Vector], h: Vector) -> tuple[Vector]:
    wx_r, wx_z, wx_g = parts(wx, 3)
    uh_r, uh_z, _ = parts(u(h), 3)
    r, z = sigmoid(wx_r + uh_r), sigmoid(wx_z + uh_z)
    _, _, urh_g = parts(u(r * h), 3)
    g = np.tanh(wx_g + urh_g)
    return ((1 - z) * g + z * h,)


def lstm(wx: Vector, u: Callable[[Vector], Vector], h: Vector, c: Vector) -> tuple[Vector, Vector]:
    i, f, g, o = parts(wx + u(h), 4)
    new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new_c), new_c


CELLS: dict[str, Callable[..., tuple[Vector, ...]]] = {"gru": gru, "gru_reset_first": gru_reset_first, "lstm": lstm}
State = tuple[Vector, ...]
States = tuple[State, ...]  # of the layers, from the bottom


# ----------------------------------------------------------------------------------------------------------- attention


class Source(NamedTuple):
    """What the encoder made of a sentence."""

    annotations: list[Vector]  # h_j, one for each position
    read_last: int  # the position of the token that is read last
    last: list[State]  # of each layer the last states, its directions joined as in h_j
    final: Vector  # the last state of the top layer's backward direction, or of its only one
    single: list[list[State]]  # of each layer the last states, direction by direction


class Past(NamedTuple):
    """What attention may know about the steps before."""

    step: int
    weights: Vector  # of the step before, (S,); 0 before the first
    coverage: Vector  # their sum over all steps before


class Asked(NamedTuple):
    """What a score may read."""

    query: Vector
    annotations: list[Vector]
    past: Past
    settings: Settings  # model.attention
    weight: Callable[[str], Vector]  # of the score, by its name
    read_last: int  # as in Source


def additive(asked: Asked, j: int, more: Vector | float = 0.0) -> Vector:
    inside = asked.weight("query_layer.weight") @ asked.query
    inside = inside + asked.weight("memory_layer.weight") @ asked.annotations[j] + more
    if asked.settings["bias"]:
        inside = inside + asked.weight("memory_layer.bias")
    if asked.settings["coverage"]:
        inside = inside + asked.weight("coverage_vector") * asked.past.coverage[j]
    return asked.weight("vector") @ np.tanh(inside)


def location_sensitive(asked: Asked, j: int) -> Vector:
    filters = asked.weight("convolution.weight")[:, 0]  # (filters, width), the middle of the width on position j
    width = filters.shape[1]
    features = np.zeros(len(filters))
    for place in range(width):
        position = j + place - width // 2
        if 0 <= position < len(asked.annotations):
            features = features + filters[:, place] * asked.past.weights[position]
    return additive(asked, j, asked.weight("filter_layer.weight") @ features)


def concat(asked: Asked, j: int) -> Vector:
    inside = asked.weight("layer.weight") @ joined(asked.query, asked.annotations[j])
    if asked.settings["coverage"]:
        inside = inside + asked.weight("coverage_vector") * asked.past.coverage[j]
    return asked.weight("vector") @ np.tanh(inside)


def dot(asked: Asked, j: int) -> Vector:
    return asked.query @ asked.annotations[j]


def scaled_dot(asked: Asked, j: int) -> Vector:
    return dot(asked, j) / np.sqrt(len(asked.query))


def general(asked: Asked, j: int) -> Vector:
    return asked.query @ asked.weight("layer.weight") @ asked.annotations[j]


def scaled_general(asked: Asked, j: int) -> Vector:
    return general(asked, j) / np.sqrt(len(asked.query))


def cosine(asked: Asked, j: int) -> Vector | float:
    h, temperature = asked.annotations[j], asked.settings["temperature"]
    if not np.any(asked.query):  # of bahdanau in the paper's order, before the first word, if s_0 = 0
        return 0.0
    if temperature == "learned":
        temperature = asked.weight("temperature")
    return temperature * dot(asked, j) / (np.sqrt(asked.query @ asked.query) * np.sqrt(h @ h))


def location(asked: Asked, j: int) -> Vector | None:
    scores = asked.weight("layer.weight") @ asked.query
    return scores[j] if j < asked.settings["positions"] else None


def fixed(asked: Asked, j: int) -> float | None:
    """All attention on the annotation of the token that is read last."""
    return 0.0 if j == asked.read_last else None


def none(asked: Asked, j: int) -> None:
    return None


SCORES: dict[str, Callable[[Asked, int], Vector | float | None]] = {  # None: no attention for this position
    "additive": additive,
    "concat": concat,
    "dot": dot,
    "scaled_dot": scaled_dot,
    "general": general,
    "scaled_general": scaled_general,
    "cosine": cosine,
    "location": location,
    "location_sensitive": location_sensitive,
    "fixed": fixed,
    "none": none,
}


class Window(NamedTuple):
    """The positions that a step may attend to, and what their weights are multiplied by."""

    center: Vector | float | None  # p_t; None: every position is inside
    gaussian: bool = False
    renormalize: bool = False


def whole(asked: Asked, weight: Callable[[str], Vector]) -> Window:
    return Window(None)


def local_m(asked: Asked, weight: Callable[[str], Vector]) -> Window:
    return Window(min(asked.past.step, len(asked.annotations) - 1), asked.settings["gaussian"])


def local_p(asked: Asked, weight: Callable[[str], Vector]) -> Window:
    logit = weight("vector") @ np.tanh(weight("layer.weight") @ asked.query)
    share = sigmoid(logit / {"scaled": len(asked.query) ** 0.5, "unscaled": 1}[asked.settings["position_logit"]])
    length = len(asked.annotations)
    scale = {"last_position": length - 1, "length": length}[asked.settings["position_scale"]]
    return Window(scale * share, True, asked.settings["renormalize"])


SCOPES: dict[str, Callable[[Asked, Callable[[str], Vector]], Window]] = {
    "global": whole,
    "local-m": local_m,
    "local-p": local_p,
}


# --------------------------------------------------------------------------------------------------------------- model


class Memory(NamedTuple):
    """What a decoder carries from step to step."""

    states: States
    fed: Vector  # h̃_{t-1} of luong, c_{t-1} of bahdanau; 0 before the first step
    past: Past


class Step(NamedTuple):
    """What a model says at one step."""

    log_probabilities: Vector  # (vocabulary,)
    weights: Vector  # a_t, (S,)
    context: Vector  # c_t
    states: States  # s_t


class Model:
    """A model with its weights."""

    def __init__(self, weights: Weights, settings: Settings) -> None:
        self.weights = weights
        self.encoder, self.attention = settings["encoder"], settings["attention"]
        self.decoder, self.tied = settings["decoder"], settings["tie_embeddings"]

    # ---------------------------------------------------------------------------------------------------- embeddings

    def source_embedding(self) -> Vector:
        return self.weights["source_embedding.weight"]

    def target_embedding(self) -> Vector:
        return self.source_embedding() if self.tied == "all" else self.weights["own_target_embedding.weight"]

    def output_weight(self) -> Vector:
        return self.weights["output_layer.weight"] if self.tied == "none" else self.target_embedding()

    # ------------------------------------------------------------------------------------------------------- encoder

    def encode(self, words: Sequence[int], kept: Sequence[float] | None = None) -> Source:
        """The annotations of a sentence that ends with END; `kept` is what the embedding of each word is times."""
        number = len(words) - 1  # of the words before END
        if not self.encoder["end_mark"] and number:
            words = words[:-1]
        length = len(words)
        order = list(range(length))
        if self.encoder["reverse_source"]:
            order = [*reversed(order[:number]), *order[number:]]  # END stays last
        kept = [1.0] * length if kept is None else kept
        outputs = [self.source_embedding()[words[j]] * kept[j] for j in order]
        last, single = [], []
        for layer in range(self.encoder["layers"]):
            inputs = outputs
            forward = self._read(inputs, layer, "")
            outputs = [state[0] for state in forward]
            ends = [forward[-1]]
            if self.encoder["bidirectional"]:
                backward = self._read(inputs[::-1], layer, "_reverse")[::-1]
                outputs = [joined(one[0], other[0]) for one, other in zip(forward, backward, strict=True)]
                ends.append(backward[0])
            if self.encoder["residual"] and layer > 0:
                outputs = [output + below for output, below in zip(outputs, inputs, strict=True)]
            last.append(tuple(self._of_both(*of_both) for of_both in zip(*ends, strict=True)))
            single.append(ends)
        annotations = [output for _, output in sorted(zip(order, outputs, strict=True), key=lambda pair: pair[0])]
        if self.encoder["bidirectional"]:
            final = parts(outputs[0], 2)[1]
            annotations = [self._of_both(*parts(h, 2)) for h in annotations]
        else:
            final = outputs[-1]
        if self.encoder["layer_normalization"]:
            gain, bias = self.weights["encoder.norm.weight"], self.weights["encoder.norm.bias"]
            annotations = [normalized(h, gain, bias) for h in annotations]
        return Source(annotations, order[-1], last, final, single)

    def _of_both(self, forward: Vector, backward: Vector | None = None) -> Vector:
        if backward is None:
            return forward
        return {"concatenate": joined, "sum": np.add}[self.encoder["directions"]](forward, backward)

    def _read(self, inputs: Sequence[Vector], layer: int, direction: str) -> list[State]:
        """The states of one layer in one direction, which reads `inputs` from the first to the last."""
        w, u, b_w, b_u = (
            self.weights[f"encoder.network.{name}_l{layer}{direction}"]
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        kind, size = self.encoder["cell"], self.encoder["hidden_size"]
        state: State = (np.zeros(size),) * (2 if kind == "lstm" else 1)
        states = []
        for x in inputs:
            state = CELLS[kind](w @ x + b_w, lambda h: u @ h + b_u, *state)
            states.append(state)
        return states

    # ------------------------------------------------------------------------------------------------- initial state

    def start(self, source: Source) -> Memory:
        vectors = 2 if self.decoder["cell"] == "lstm" else 1  # of a state
        layers = self.decoder["layers"]
        kind = self.decoder["initial_state"]
        if kind in ("final", "mean"):
            read = source.final if kind == "final" else sum(source.annotations) / len(source.annotations)
            w, b = self.weights["initial_state.layer.weight"], self.weights["initial_state.layer.bias"]
            flat = parts(np.tanh(w @ read + b), layers * vectors)
            states = tuple(tuple(flat[vectors * layer : vectors * layer + vectors]) for layer in range(layers))
        else:
            zero = (np.zeros(self.decoder["hidden_size"]),) * vectors
            states = {
                "copy": tuple(source.last),
                "forward": ((source.single[-1][0][0],) * vectors,) * layers,
                "alternate": tuple(state for layer in source.single for state in layer),
                "zeros": (zero,) * layers,
            }[kind]
        nothing = np.zeros(len(source.annotations))
        first = self.output_size() if self.decoder["type"] == "luong" else len(source.annotations[0])
        return Memory(states, np.zeros(first), Past(0, nothing, nothing))

    def output_size(self) -> int:
        size: int = self.decoder["output_size"] or self.decoder["hidden_size"]
        return size

    # ----------------------------------------------------------------------------------------------------- attention

    def attend(self, query: Vector, source: Source, past: Past) -> tuple[Vector, Vector]:
        """a_t and c_t."""
        length, half = len(source.annotations), self.attention["half_width"]
        asked = Asked(query, source.annotations, past, self.attention, self._of("score"), source.read_last)
        window = SCOPES[self.attention["scope"]](asked, self._of("scope"))
        inside = [j for j in range(length) if window.center is None or abs(j - np.real(window.center)) <= half]
        every = {j: SCORES[self.attention["score"]](asked, j) for j in inside}
        scores = {j: e for j, e in every.items() if e is not None}
        total = sum(np.exp(e) for e in scores.values())
        a = {j: np.exp(e) / total for j, e in scores.items()}
        if window.gaussian:
            a = {j: weight * np.exp(-((j - window.center) ** 2) / (2 * (half / 2) ** 2)) for j, weight in a.items()}
        if window.renormalize:
            total = sum(a.values())
            a = {j: weight / total for j, weight in a.items()}
        context = sum(weight * source.annotations[j] for j, weight in a.items()) if a else np.zeros(0)
        return np.array([a.get(j, 0.0) for j in range(length)]), context

    def _of(self, part: str) -> Callable[[str], Vector]:
        return lambda name: self.weights[f"decoder.attention.{part}.{name}"]

    # ------------------------------------------------------------------------------------------------------- decoder

    def step(self, word: int, memory: Memory, source: Source, kept: float = 1.0) -> tuple[Step, Memory]:
        """One step that reads the word before; `kept` is what its embedding is times."""
        y = self.target_embedding()[word] * kept
        vector, states, fed, weights, context = DECODERS[self.decoder["type"]](self, y, memory, source)
        past = Past(memory.past.step + 1, weights, memory.past.coverage + weights)
        said = Step(log_softmax(self.output_weight() @ vector), weights, context, states)
        return said, Memory(states, fed, past)

    def cell(self, name: str, x: Vector, state: State, *, added: Vector | float = 0.0) -> State:
        """RNN(x, state), where `added` is the product of U or C with what is read besides x."""
        weights, kind, is_normalized = self.weights, self.decoder["cell"], self.decoder["layer_normalization"]
        wx = weights[f"{name}.input_layer.weight"] @ x + weights[f"{name}.input_layer.bias"] + added
        if is_normalized:
            wx = normalized(wx, weights[f"{name}.input_norm.weight"], weights[f"{name}.input_norm.bias"])
        u = weights[f"{name}.recurrent_layer.weight"]
        if kind == "gru_reset_first":
            u = np.concatenate([u, weights[f"{name}.candidate_layer.weight"]])  # the gates r and z, then g
        b = weights[f"{name}.recurrent_layer.bias"] if kind == "gru" else 0.0

        def of_state(h: Vector) -> Vector:
            uh = u @ h + b
            if is_normalized:
                uh = normalized(uh, weights[f"{name}.recurrent_norm.weight"], weights[f"{name}.recurrent_norm.bias"])
            return uh

        return CELLS[kind](wx, of_state, *state)

    def layers_above(self, first: State, states: States) -> tuple[States, Vector]:
        """The new states of all layers, the first of which is known, and what the top one gives."""
        output, new = first[0], [first]
        for layer, state in enumerate(states[1:], start=1):
            new.append(self.cell(f"decoder.cells.{layer}", output, state))
            output = new[-1][0] + output if self.decoder["residual"] else new[-1][0]
        return tuple(new), output

    def top(self, states: States) -> Vector:
        """What the top layer gives in these states."""
        return sum(state[0] for state in states) if self.decoder["residual"] else states[-1][0]

    # -------------------------------------------------------------------------------------------------------- forced

    def forced(
        self,
        source: Sequence[int],
        inputs: Sequence[int],
        *,
        kept_source: Sequence[float] | None = None,
        kept_target: Sequence[float] | None = None,
    ) -> list[Step]:
        """What the model says at each step when it reads `inputs`, BEGIN first, whatever it would have written."""
        encoded = self.encode(source, kept_source)
        memory, said = self.start(encoded), []
        for t, word in enumerate(inputs):
            step, memory = self.step(word, memory, encoded, 1.0 if kept_target is None else kept_target[t])
            said.append(step)
        return said


# ------------------------------------------------------------------------------------------------------------ decoders
# Each gives v_t, the new states, what is fed to the next step, a_t and c_t.

Decoded = tuple[Vector, States, Vector, Vector, Vector]


def luong(model: Model, y: Vector, memory: Memory, source: Source) -> Decoded:
    feed = model.weights["decoder.feed.weight"] @ memory.fed if model.decoder["input_feeding"] else 0.0
    first = model.cell("decoder.cells.0", y, memory.states[0], added=feed)
    states, s = model.layers_above(first, memory.states)
    weights, context = model.attend(s, source, memory.past)
    vector = model.weights["decoder.combine.weight"] @ joined(context, s)
    if model.decoder["attentional_activation"] == "tanh":
        vector = np.tanh(vector)
    return vector, states, vector, weights, context


def bahdanau(model: Model, y: Vector, memory: Memory, source: Source) -> Decoded:
    def read(context: Vector) -> tuple[States, Vector]:
        c = model.weights["decoder.context_layer.weight"] @ context if len(context) else 0.0
        first = model.cell("decoder.cells.0", y, memory.states[0], added=c)
        return model.layers_above(first, memory.states)

    # Where no state attends, c_t waits for none, and there is only one order.
    if model.decoder["order"] == "paper" or model.attention["score"] in ("fixed", "none"):
        weights, context = model.attend(model.top(memory.states), source, memory.past)
        states, s = read(context)
    else:
        states, s = read(memory.fed)
        weights, context = model.attend(s, source, memory.past)
    readout = model.weights["decoder.readout.weight"] @ joined(s, y, context) + model.weights["decoder.readout.bias"]
    vector = np.array([one if one.real >= other.real else other for one, other in readout.reshape(-1, 2)])
    return vector, states, context, weights, context


def conditional_gru(model: Model, y: Vector, memory: Memory, source: Source) -> Decoded:
    between = model.cell("decoder.cells.0", y, memory.states[0])
    weights, context = model.attend(between[0], source, memory.past)
    first = model.cell("decoder.context_cell", context, between)
    states, s = model.layers_above(first, memory.states)
    readout = model.weights["decoder.readout.weight"] @ joined(s, y, context) + model.weights["decoder.readout.bias"]
    return np.tanh(readout), states, context, weights, context


DECODERS: dict[str, Callable[[Model, Vector, Memory, Source], Decoded]] = {
    "luong": luong,
    "bahdanau": bahdanau,
    "conditional_gru": conditional_gru,
}
