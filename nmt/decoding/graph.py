"""A model as two ONNX graphs: `encoder` reads sentences, `step` says what may follow a token of each hypothesis.

They are traced from the model's own plain modules, so a new decoder, score, scope or cell needs nothing here. Only a
layer of the encoder, a loop over time, has operators of ONNX's own in its place.

    encoder: source (sentences, source_length), source_lengths (sentences,) → the tensors of the first state
    step:    tokens (rows,), wanted (), and the state → log_probabilities (rows, vocabulary); the `wanted` largest of
             each row, scores and ids (rows, wanted), of equal ones those with the smaller ids; weights (rows,
             source_length) where the model has attention; the tensors of the next state that have one row a
             hypothesis, NEXT before their names

`step` may instead be over some words: it then also reads columns (columns,), their ids, and barred (sentences,
columns), True where a sentence may not use one, and has columns in place of the vocabulary.

Of a state's tensors, those named in MEMORY have one row a sentence, STEPS is the number of tokens that have been read,
and the others have one row a hypothesis. What a model has no use for is absent.
"""

import copy
import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.decoding.graph_files import BARRED, BLOCK, COLUMNS, MEMORY, NEXT, STEPS, Graphs
from nmt.decoding.int8 import in_int8
from nmt.decoding.runtime import Engine
from nmt.decoding.scorer import Scorer
from nmt.decoding.shortlist import Columns
from nmt.models.decoder import DecoderState
from nmt.models.encoder import Encoder
from nmt.models.memory import Memory, Past
from nmt.models.seq2seq import SearchState, Seq2Seq
from nmt.ops.computing import computing
from nmt.ops.reset_first import ResetFirst
from nmt.symbols import BEGIN, END

OPSET = 17
CLOSE = 1e-3  # log-probabilities of the two engines may differ by this
ORDERS = {3: (1, 0, 2), 4: (0, 3, 1, 2)}
"""The gates in ONNX's order, z r n and i o f g, by their places in PyTorch's."""


def checked_export(model: Seq2Seq, precision: str, *, among: bool) -> Graphs | None:
    """The graphs of a model; None where it cannot be exported, or they would not compute what it does in float32.

    `precision`: float32 or int8. `among`: with a step over some words.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # it is little work, and in a process that was forked several would wait for ever
    try:
        graphs = export(model, among=among)
        if not _difference(graphs, model, among) < CLOSE:
            return None
        if precision == "int8":
            graphs = Graphs(*map(in_int8, graphs))
            return graphs if math.isfinite(_difference(graphs, model, among)) else None
        return graphs
    except Exception:  # whatever a part of somebody's own does that cannot be traced
        return None
    finally:
        torch.set_num_threads(threads)


def export(model: Seq2Seq, *, among: bool = False) -> Graphs:
    """The graphs of a model, in float32 on the CPU; `among`: with a step over some words.

    What cannot be exported raises what PyTorch or the model raises.
    """
    source, lengths = torch.full((3, 4), 3), torch.tensor([4, 3, 2])
    aligns = model.decoder.attention.score.aligns
    with torch.inference_mode(False), torch.no_grad(), computing(fused=False):
        model = copy.deepcopy(model).float().eval()
        model.encoder.__class__ = _ExportedEncoder
        state = model.start(source, lengths)
        names = [name for name, _ in named(state)]
        carried = [name for name in names if name not in (*MEMORY, STEPS)]
        start = _Called(model, lambda *inputs: tuple(part for _, part in named(model.start(*inputs))))
        encoder = _traced(start, {"source": source, "source_lengths": lengths}, names)
        state = state.select(torch.arange(3).repeat_interleave(2).view(3, 2))

        def step(tokens: Tensor, wanted: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            before = _state(state, dict(zip(names, parts[len(words) :], strict=True)))
            vectors, weights, after = model.advance(tokens, before)
            if among:
                log_probabilities = model.log_probabilities_among(parts[0], parts[1], vectors)
            else:
                log_probabilities = model.log_probabilities(vectors)
            attended = [weights] if aligns else []
            following = (part for name, part in named(after) if name in carried)
            return log_probabilities, *_largest(log_probabilities, wanted), *attended, *following

        some = {COLUMNS: torch.full((BLOCK,), 3), BARRED: torch.zeros(3, BLOCK, dtype=torch.bool)}
        words = some if among else {}
        inputs = {"tokens": torch.full((6,), 3), "wanted": torch.tensor(1), **words, **dict(named(state))}
        outputs = ["log_probabilities", "scores", "ids", *(["weights"] if aligns else [])]
        outputs += [NEXT + name for name in carried]
        return Graphs(encoder, _traced(_Called(model, step), inputs, outputs))


def named(state: SearchState) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a state with their names."""
    memory, (layers, past, fed) = state
    parts: list[tuple[str, Tensor | None]] = list(zip(MEMORY, memory, strict=True))
    for number, layer in enumerate(layers):
        parts += [(f"layer{number}.{place}", part) for place, part in enumerate(layer)]
    parts += [("past.weights", past.weights), ("past.coverage", past.coverage), ("fed", fed)]
    parts.append((STEPS, torch.as_tensor(past.steps)))
    return ((name, part) for name, part in parts if part is not None)


def _state(like: SearchState, parts: Mapping[str, Tensor]) -> SearchState:
    """The state that has these tensors, and the layers of another."""
    layers = tuple(
        tuple(parts[f"layer{number}.{place}"] for place in range(len(layer)))
        for number, layer in enumerate(like.decoder.layers)
    )
    past = Past(parts[STEPS], parts.get("past.weights"), parts.get("past.coverage"))
    memory = Memory(parts["values"], parts["keys"], parts["lengths"], parts.get("mask"))
    return SearchState(memory, DecoderState(layers, past, parts.get("fed")))


def _largest(values: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """The `count` largest values of each row, and their places: (rows, count); of equal ones the first.

    `count` is a tensor, so that the graph has it as an input. The columns are traced as they are, or a multiple of
    BLOCK.

    They are in the `count` blocks with the largest maxima, so only these are sorted.
    """
    missing = -int(values.size(1)) % BLOCK
    filled = functional.pad(values, (0, missing), value=-torch.inf) if missing else values
    maxima = filled.unflatten(1, (-1, BLOCK)).amax(dim=2)
    blocks = maxima.topk(count, dim=1).indices.topk(count, dim=1, largest=False).values
    places = (blocks.unsqueeze(2) * BLOCK + torch.arange(BLOCK)).flatten(1)
    largest, order = filled.gather(1, places).topk(count, dim=1)
    return largest, places.gather(1, order)


class _ExportedEncoder(Encoder):
    """An encoder whose layers are ONNX's operators."""

    def _goes_by_layer(self, embedded: Tensor) -> bool:
        return True

    def _one_layer(self, inputs: Tensor, real: Tensor, layer: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        ways = [self.network.all_weights[layer * self.directions + way] for way in range(self.directions)]
        weights, recurrent, bias, recurrent_bias = (
            torch.stack([_reordered(of_way[part], self.kind.gates) for of_way in ways]) for part in range(4)
        )
        if reset_first := isinstance(self.kind, ResetFirst):
            bias, recurrent_bias = bias + recurrent_bias, torch.zeros_like(recurrent_bias)
        lengths = real[:, 0, :, 0].sum(0).int()
        biases = torch.cat((bias, recurrent_bias), dim=1)
        outputs, *state = _Layer.apply(inputs, weights, recurrent, biases, lengths, self.kind.states, reset_first)
        if self.directions == 2:  # `Encoder` has the second in reversed time
            outputs = torch.stack((outputs[:, 0], outputs[:, 1].flip(0)), dim=1)
        return outputs, tuple(state)


def _reordered(weight: Tensor, gates: int) -> Tensor:
    parts = weight.detach().chunk(gates)
    return torch.cat([parts[place] for place in ORDERS[gates]])


class _Layer(torch.autograd.Function):
    """ONNX's GRU or LSTM in both directions; PyTorch, which only has to know the shapes, gives zeros."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, _: Tensor, recurrent: Tensor, biases: Tensor, lengths: Tensor, states: int, __: bool
    ) -> tuple[Tensor, ...]:
        shape = len(recurrent), inputs.size(1), recurrent.size(2)
        return inputs.new_zeros(len(inputs), *shape), *(inputs.new_zeros(shape) for _ in range(states))

    @staticmethod
    def symbolic(graph: Any, *arguments: Any) -> Any:
        *inputs, states, reset_first = arguments
        directions, _, size = inputs[2].type().sizes()
        attributes = {"hidden_size_i": size, "direction_s": "bidirectional" if directions == 2 else "forward"}
        if states == 2:
            return graph.op("LSTM", *inputs, **attributes, outputs=3)
        return graph.op("GRU", *inputs, **attributes, linear_before_reset_i=int(not reset_first), outputs=2)


class _Called(nn.Module):
    """A function of a model as a module, which is what PyTorch traces."""

    def __init__(self, model: Seq2Seq, function: Callable[..., tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.function(*inputs)


def _traced(called: _Called, inputs: Mapping[str, Tensor], outputs: Sequence[str]) -> bytes:
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a size which it has seen becomes a constant, and that it is the old one
        torch.onnx.export(
            called,
            tuple(inputs.values()),
            written,  # type: ignore[arg-type]  # the old exporter, which needs no onnxscript, writes to a file
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: _axes(name.removeprefix(NEXT), COLUMNS in inputs) for name in (*inputs, *outputs)},
            opset_version=OPSET,
            dynamo=False,
        )
    return written.getvalue()


def _axes(name: str, among: bool) -> dict[int, str]:
    """Which axes of an input or output differ from batch to batch; `among`: of a step over some words."""
    if name in ("wanted", STEPS):
        return {}
    if name == COLUMNS:
        return {0: COLUMNS}
    axes = {0: "sentences" if name in ("source", "source_lengths", BARRED, *MEMORY) else "rows"}
    if name == BARRED or (among and name == "log_probabilities"):
        axes[1] = COLUMNS
    if name in ("source", "values", "keys", "mask", "weights", "past.weights", "past.coverage"):
        axes[1] = "source_length"
    return {**axes, 1: "wanted"} if name in ("scores", "ids") else axes


def _difference(graphs: Graphs, model: Seq2Seq, among: bool) -> float:
    """The largest between their log-probabilities and the model's, over other sizes than those it was traced with."""
    engine = Engine(graphs, 1)
    pieces = np.arange(1, 10) % min(model.source_embedding.num_embeddings, len(model.output_weight))
    source, lengths = np.stack([pieces, pieces[::-1]]), np.array([9, 6])
    source[0, -1] = source[1, 5] = END
    rows, beam, differences = np.array([[0, 0, 0], [1, 1, 1]]), 1, []
    ids = np.arange(2 * BLOCK) % len(model.output_weight)
    columns = Columns(ids, np.zeros((2, len(ids)), dtype=np.bool_)) if among else None
    scorer = Scorer([model])
    with torch.inference_mode():
        theirs = scorer.start(source, lengths, columns=columns)
        ours = engine.start(source, lengths, coverage=False, columns=columns)
        for tokens in (np.array([BEGIN, BEGIN]), pieces[:6], pieces[3:]):
            expected, theirs = scorer.step(tokens, theirs)
            found, ours = engine.step(tokens, ours, None)
            differences.append(np.abs(found.values - expected.values).max())
            theirs, ours = theirs.select(rows), ours.select(rows, beam)
            rows, beam = np.array([[2, 0, 1], [3, 5, 4]]), 3
    return float(max(differences))
