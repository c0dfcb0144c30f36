"""The model of the tests' other side: plain NumPy in float64, one sentence and one time step at a time, from the
formulas.

Written from Luong et al. (2015) and Bahdanau et al. (2014), not from the package; it shares only the names of the
weights.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = dict[str, Array]


def sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def gru(x: Array, h: Array, w: Array, u: Array, b: Array, c: Array) -> Array:
    size = len(h)
    gates = [slice(i * size, (i + 1) * size) for i in range(3)]
    r = sigmoid(w[gates[0]] @ x + b[gates[0]] + u[gates[0]] @ h + c[gates[0]])
    z = sigmoid(w[gates[1]] @ x + b[gates[1]] + u[gates[1]] @ h + c[gates[1]])
    n = np.tanh(w[gates[2]] @ x + b[gates[2]] + r * (u[gates[2]] @ h + c[gates[2]]))
    return np.asarray((1 - z) * n + z * h)


def lstm(x: Array, h: Array, cell: Array, w: Array, u: Array, b: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(w @ x + u @ h + b, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def encode(weights: Weights, source: list[int], *, cell: str, layers: int, directions: int) -> tuple[Array, list[Any]]:
    """Annotations (length, directions × size) and the last states of each layer, one a direction."""
    inputs = [weights["source_embedding.weight"][token] for token in source]
    finals = []
    for layer in range(layers):
        outputs, last = [], []
        for suffix in ("", "_reverse")[:directions]:
            w, u, b, c = (
                weights[f"encoder.network.{name}_l{layer}{suffix}"]
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h = k = np.zeros(u.shape[1])
            states = []
            for x in reversed(inputs) if suffix else inputs:
                if cell == "gru":
                    h = gru(x, h, w, u, b, c)
                else:
                    h, k = lstm(x, h, k, w, u, b + c)
                states.append(h)
            outputs.append(states[::-1] if suffix else states)
            last.append((h, k))
        inputs = [np.concatenate(parts) for parts in zip(*outputs, strict=True)]
        finals.append(last)
    return np.stack(inputs), finals


def first_states(
    weights: Weights, memory: Array, finals: list[Any], *, kind: str, layers: int, states: int, size: int
) -> list[list[Array]]:
    if kind == "zeros":
        return [[np.zeros(size)] * states for _ in range(layers)]
    if kind == "copy":
        return [[np.concatenate([direction[i] for direction in last]) for i in range(states)] for last in finals]
    summary = finals[-1][-1][0] if kind == "final" else memory.mean(0)
    flat = np.tanh(weights["initial_state.layer.weight"] @ summary + weights["initial_state.layer.bias"])
    parts = np.split(flat, layers * states)
    return [parts[i * states : (i + 1) * states] for i in range(layers)]


def attend(weights: Weights, query: Array, memory: Array) -> tuple[Array, Array]:
    w, u = weights["decoder.attention.score.query_layer.weight"], weights["decoder.attention.score.memory_layer.weight"]
    v, b = weights["decoder.attention.score.vector"], weights.get("decoder.attention.score.memory_layer.bias", 0.0)
    scores = np.array([v @ np.tanh(w @ query + u @ h + b) for h in memory])
    alphas = np.exp(scores) / np.exp(scores).sum()
    return alphas @ memory, alphas


def log_probabilities(
    weights: Weights,
    source: list[int],
    target_input: list[int],
    *,
    encoder_cell: str,
    encoder_layers: int,
    directions: int,
    decoder_cell: str,
    decoder_layers: int,
    size: int,
    input_feeding: bool,
    initial_state: str,
) -> tuple[Array, Array]:
    """log p (target_length, vocabulary) and attention weights (target_length, source_length) of one sentence pair."""
    memory, finals = encode(weights, source, cell=encoder_cell, layers=encoder_layers, directions=directions)
    count = 1 if decoder_cell == "gru" else 2
    states = first_states(weights, memory, finals, kind=initial_state, layers=decoder_layers, states=count, size=size)
    combine = weights["decoder.combine.weight"]
    fed = np.zeros(len(combine))
    embedding = weights.get("own_target_embedding.weight", weights["source_embedding.weight"])
    output = weights.get("output_layer.weight", embedding)
    rows, alphas = [], []
    for token in target_input:
        x = embedding[token]
        for layer in range(decoder_layers):
            cell = f"decoder.cells.{layer}"
            w, b = weights[f"{cell}.input_layer.weight"], weights[f"{cell}.input_layer.bias"]
            u = weights[f"{cell}.recurrent_layer.weight"]
            if layer == 0 and input_feeding:
                w, x = np.concatenate([w, weights["decoder.feed.weight"]], axis=1), np.concatenate([x, fed])
            if decoder_cell == "gru":
                states[layer] = [gru(x, states[layer][0], w, u, b, weights[f"{cell}.recurrent_layer.bias"])]
            else:
                states[layer] = list(lstm(x, states[layer][0], states[layer][1], w, u, b))
            x = states[layer][0]
        context, alpha = attend(weights, x, memory)
        fed = np.tanh(combine @ np.concatenate([context, x]))
        logits = output @ fed
        rows.append(logits - np.log(np.exp(logits).sum()))
        alphas.append(alpha)
    return np.stack(rows), np.stack(alphas)
