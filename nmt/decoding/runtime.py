"""ONNX Runtime as the engine of search and forced decoding on a CPU, from the graphs of `graph`; see `engines`.

It needs no PyTorch where the graphs are kept (`graph_files`); they are made from the model where they are not.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from pathlib import Path
from threading import Event, RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmt.config.schema import EnsembleName
from nmt.data.padding import padded_with_end
from nmt.decoding.engines import AnyScorer, Ids, check_ensemble
from nmt.decoding.graph_files import BARRED, BLOCK, COLUMNS, MEMORY, NEXT, STEPS, Graphs, keep_graphs, kept_graphs
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.threads import MOST, number
from nmt.errors import UserError
from nmt.symbols import BEGIN

if TYPE_CHECKING:
    from nmt.decoding.scorer import Scorer
    from nmt.decoding.shortlist import Columns
    from nmt.models.seq2seq import Seq2Seq


WEIGHTS = "session.optimized_model_external_initializers"  # the beginning of ONNX Runtime's names of two options


class ModelState(NamedTuple):
    """Where a batch of hypotheses stands in one model: the tensors of `graph`, and what a coverage penalty reads."""

    memory: dict[str, Array]  # one row a sentence
    rows: dict[str, Array]  # one row a hypothesis
    steps: int  # tokens read so far
    weights: Array | None = None  # (rows, source_length), of the last step, where they are asked for
    coverage: Array | None = None  # their sum over all steps
    ids: Array | None = None  # (columns,), the words that the step is over; None: all

    def select(self, rows: Array, beam: int) -> "ModelState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`; `beam`: rows of a sentence so far."""
        memory, flat = self.memory, rows.ravel()
        if len(rows) != len(memory["values"]):
            sentences = rows[:, 0] // beam
            memory = {name: part[sentences] for name, part in memory.items()}
        selected = {name: part[flat] for name, part in self.rows.items()}
        weights, coverage = (None if part is None else part[flat] for part in (self.weights, self.coverage))
        return self._replace(memory=memory, rows=selected, weights=weights, coverage=coverage)


class RuntimeState(NamedTuple):
    """Where a batch of hypotheses stands in each model."""

    engines: "list[Engine]"
    models: tuple[ModelState, ...]
    beam: int  # hypotheses of a sentence

    def select(self, rows: Array) -> "RuntimeState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`."""
        selected = tuple(one.select(rows, self.beam) for one in self.models)
        return RuntimeState(self.engines, selected, rows.shape[1])

    def covered(self) -> tuple[Array, Array | None]:
        """See `CoveringState`."""
        coverage = mean([one.coverage for one in self.models if one.coverage is not None])
        return coverage, np.any([one.memory["mask"] for one in self.models], axis=0)

    @property
    def attended(self) -> Array:
        """The weights of the last step (rows, source_length), the mean of the models'."""
        return mean([one.weights for one in self.models if one.weights is not None])


class Engine:
    """One model in ONNX Runtime. Several threads may compute with it."""

    def __init__(self, graphs: Graphs | Path, threads: int) -> None:
        """`threads`: of the processor, for each product. Raises what ONNX Runtime raises
        for damaged graphs."""
        self.encoder, self.stepper = _sessions(graphs, threads)
        outputs = {one.name: one.shape for one in self.stepper.get_outputs()}
        self.vocabulary, self.aligns = outputs["log_probabilities"][1], "weights" in outputs
        self.first = [output.name for output in self.encoder.get_outputs()]
        self.reads = {one.name for one in self.stepper.get_inputs()}
        self.carried = [name for name in outputs if _is_carried(name)]

    def start(self, source: Array, lengths: Array, *, coverage: bool, columns: "Columns | None" = None) -> ModelState:
        """The state before the first token of each sentence; `columns`: for a step over some words."""
        parts = _run(self.encoder, self.first, {"source": source, "source_lengths": lengths})
        memory = {name: part for name, part in parts.items() if name in MEMORY}
        rows = {name: part for name, part in parts.items() if name not in (*MEMORY, STEPS)}
        nothing = np.zeros(source.shape, dtype=np.float32) if coverage else None
        state = ModelState(memory, rows, 0, nothing, nothing)
        return state if columns is None else state._replace(memory={**memory, BARRED: columns.barred}, ids=columns.ids)

    def step(self, tokens: Array, state: ModelState, wanted: int | None) -> tuple[Scores, ModelState]:
        """The log-probabilities of what may follow `tokens` (rows,), and the next state; see `Step`."""
        results = ["log_probabilities"] if wanted is None else ["scores", "ids"]
        outputs = [*results, *self.carried, *([] if state.coverage is None else ["weights"])]
        numbers = {STEPS: np.array(state.steps), "wanted": np.array(wanted or 1)}
        words = {"tokens": tokens} if state.ids is None else {"tokens": state.ids[tokens], COLUMNS: state.ids}
        inputs = {**state.memory, **state.rows, **numbers, **words}
        values = _run(self.stepper, outputs, {name: part for name, part in inputs.items() if name in self.reads})
        rows = {name.removeprefix(NEXT): values[name] for name in self.carried}
        following = state._replace(rows=rows, steps=state.steps + 1)
        if state.coverage is not None:
            weights = values["weights"]
            following = following._replace(weights=weights, coverage=state.coverage + weights)
        return Scores(*(values[name] for name in results)), following


def _sessions(graphs: Graphs | Path, threads: int, save: Path | None = None) -> list[Any]:
    """ONNX Runtime's sessions for these graphs, or those that were saved in a folder; `save`: write them there."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it would report to Microsoft, and reads this when it is imported
    import onnxruntime

    sessions = []
    for name in Graphs._fields:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 4  # it raises what it would log
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if save is not None:
            options.optimized_model_filepath = str(save / f"{name}.onnx")
            options.add_session_config_entry(f"{WEIGHTS}_file_name", f"{name}.weights")
            options.add_session_config_entry(f"{WEIGHTS}_min_size_in_bytes", "1024")
        if isinstance(graphs, Path):
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        source = str(graphs / f"{name}.onnx") if isinstance(graphs, Path) else getattr(graphs, name)
        sessions.append(onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"]))
    return sessions


def _is_carried(name: str) -> bool:
    return name.startswith(NEXT) and name.removeprefix(NEXT) not in (*MEMORY, STEPS)


def _run(session: Any, outputs: Sequence[str], inputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs by name. Raises MemoryError for a failed allocation, for which ONNX Runtime has no class."""
    try:
        values = session.run(outputs, inputs)
    except Exception as error:
        if "alloc" in str(error):
            raise MemoryError(str(error)) from error
        raise
    return dict(zip(outputs, values, strict=True))


class RuntimeScorer(AnyScorer):
    """Models on the CPU. Where one of them cannot be exported, all is PyTorch's, and where somebody has been given the
    models, who may change them.

    With `precision` int8 the products of the steps are those of `int8`, except over the columns of a shortlist; what
    reads the source is float32. It always computes with the weights as the files have them.
    """

    most_batches = MOST
    columns: "Columns | None" = None

    def __init__(
        self,
        load: "Callable[[], Scorer]",
        keys: Sequence[str | None],
        *,
        precision: str = "float32",
        ensemble: EnsembleName | None = None,
    ) -> None:
        """`load`: the same models in PyTorch, for which it is asked when they are needed. `keys`: what tells the graphs
        of each from others (see `graph_key`); with None they are not kept."""
        check_ensemble(ensemble, len(keys))
        self.ensemble = ensemble
        self.together = ENSEMBLES[ensemble or "log-probabilities"]
        self.keys, self.precision = tuple(keys), precision
        self._load, self._loaded = load, list["Scorer"]()
        self._making, self._given = RLock(), Event()
        self._graphs: dict[tuple[int, bool], Graphs | Path | None] = {}  # of each model; None: it cannot be exported
        self._engines: dict[tuple[int, int, bool], list[Engine]] = {}

    def among(self, columns: "Columns") -> "RuntimeScorer":
        same = copy(self)
        same.columns = columns
        return same

    @property
    def pytorch(self) -> "Scorer":
        """The models in PyTorch."""
        with self._making:
            if not self._loaded:
                self._loaded.append(self._load())
            scorer = self._loaded[0]
        return scorer if self.columns is None else scorer.among(self.columns)

    @property
    def models(self) -> "tuple[Seq2Seq, ...]":
        self._given.set()
        return self.pytorch.models

    def are_kept(self, *, among: bool) -> bool:
        """Whether the graphs of all models are; `among`: those for steps over some words."""
        return all(self._at_hand(place, among) for place in range(len(self.keys)))

    def _at_hand(self, place: int, among: bool) -> bool:
        """Whether it is known what the graphs of a model are; they are looked for where it is not."""
        name = None if (place, among) in self._graphs else self._name(place, among)
        if name is not None and (kept := kept_graphs(name)) is not None:
            self._graphs[place, among] = kept
        return (place, among) in self._graphs

    def _name(self, place: int, among: bool) -> str | None:
        """By which the graphs of a model are kept."""
        return None if self.keys[place] is None else f"{self.keys[place]}-{self.precision}{'.among' if among else ''}"

    def engines(self) -> list[Engine]:
        """One for each model, with as many threads as there are here; none where PyTorch is to compute.

        Raises UserError where there is none for int8, which PyTorch does not compute here.
        """
        among = self.columns is not None
        here = os.getpid(), number(), among  # a process that was forked has none of its parent's threads
        if self._given.is_set() and self.precision == "float32":
            return []
        with self._making:
            if here not in self._engines:
                made = [self._engine(place, here[1]) for place in range(len(self.keys))]
                exported = [one for one in made if one is not None]
                self._engines[here] = exported if len(exported) == len(made) else []
                if self._engines[here] and not self._given.is_set():
                    self._loaded.clear()  # PyTorch's models are not needed any more
            if self.precision == "int8" and not self._engines[here]:
                raise UserError("precision int8: ONNX Runtime cannot compute this model; choose float32")
            return self._engines[here]

    def _engine(self, place: int, threads: int) -> Engine | None:
        """The engine of a model; its graphs are looked for, or made, once."""
        among = self.columns is not None
        if not self._at_hand(place, among):
            self._graphs[place, among] = self._exported(place, self._name(place, among))
        try:
            graphs = self._graphs[place, among]
            return None if graphs is None else Engine(graphs, threads)
        except Exception:  # what was kept is gone, or another ONNX Runtime wrote it
            graphs = self._graphs[place, among] = self._exported(place, None)
            return None if graphs is None else Engine(graphs, threads)

    def _exported(self, place: int, name: str | None) -> Graphs | Path | None:
        """The graphs of a model as its file has it, kept under this name if they can be."""
        from nmt.decoding.graph import checked_export

        scorer = self._load() if self._given.is_set() else self.pytorch
        with self.pytorch.inference():  # which refuses to compute where threads do not work
            graphs = checked_export(scorer.models[place], self.precision, among=self.columns is not None)
        if graphs is None or name is None:
            return graphs
        return keep_graphs(name, partial(_sessions, graphs, 1)) or graphs

    @property
    def without_attention(self) -> str | None:
        engines = self.engines()
        return None if engines and all(one.aligns for one in engines) else self.pytorch.without_attention

    def inference(self) -> AbstractContextManager[None]:
        return nullcontext()

    def start(self, source: Array, source_lengths: Array, *, coverage: bool = False) -> Any:
        if not (engines := self.engines()):
            with self.pytorch.inference():
                return self.pytorch.start(source, source_lengths, coverage=coverage)
        given: dict[str, Any] = {"coverage": coverage, "columns": self.columns}
        return RuntimeState(engines, tuple(one.start(source, source_lengths, **given) for one in engines), 1)

    def step(self, tokens: Array, state: Any, wanted: int | None = None) -> tuple[Scores, Any]:
        if not isinstance(state, RuntimeState):
            with self.pytorch.inference():
                return self.pytorch.step(tokens, state, wanted)
        words = state.engines[0].vocabulary if self.columns is None else len(self.columns.ids)
        if len(state.engines) > 1 or (wanted or 0) * BLOCK > words:
            wanted = None
        steps = [engine.step(tokens, one, wanted) for engine, one in zip(state.engines, state.models, strict=True)]
        scores, following = zip(*steps, strict=True)
        after = RuntimeState(state.engines, following, state.beam)
        return scores[0] if len(steps) == 1 else Scores(self.together([one.values for one in scores])), after

    def forced(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, attention: bool, stepwise: bool
    ) -> tuple[list[float], Iterable[Array | None]]:
        """One step after the other, as in a search."""
        if not self.engines():
            with self.pytorch.inference():
                return self.pytorch.forced(sources, targets, attention=attention, stepwise=stepwise)
        (source, source_lengths), (target, lengths) = padded_with_end(sources), padded_with_end(targets)
        state = self.start(source, source_lengths, coverage=attention)
        totals, rows, weights = np.zeros(len(target)), np.arange(len(target)), []
        tokens = np.full(len(target), BEGIN)
        for position, following in enumerate(target.T):
            scores, state = self.step(tokens, state)
            totals += np.where(position < lengths, scores.values[rows, following], 0.0)
            weights += [state.attended] if attention else []
            tokens = following
        return totals.tolist(), np.stack(weights, axis=1) if attention else [None] * len(target)


def mean(parts: Sequence[Array]) -> Array:
    """The mean of arrays of one shape: one array is its own mean, and two equal ones have exactly that mean."""
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0) / np.float32(len(parts))


def mean_of_probabilities(parts: Sequence[Array]) -> Array:
    """The logarithm of the mean of probabilities, from their logarithms."""
    total: Array = np.logaddexp.reduce(parts)
    return total - np.float32(math.log(len(parts)))


def mean_of_logits(parts: Sequence[Array]) -> Array:
    """What the mean of logits gives, from log-probabilities (…, vocabulary), which are logits too."""
    logits = mean(parts)
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


ENSEMBLES: dict[EnsembleName, Callable[[Sequence[Array]], Array]] = {
    "log-probabilities": mean,
    "probabilities": mean_of_probabilities,
    "logits": mean_of_logits,
}
"""From the log-probabilities (…, vocabulary) of each model to theirs together."""
