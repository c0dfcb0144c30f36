"""ONNX Runtime as the engine of search and forced decoding on a CPU, from the graphs of `graph`; see `engines`.

It needs no PyTorch where the graphs are kept (`graph_files`), or those of an export; others are made from the model.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmt.config.schema import EnsembleName
from nmt.data.padding import padded_with_end
from nmt.decoding.engines import AnyScorer, Ids, distinct, mean
from nmt.decoding.graph_files import BARRED, BLOCK, COLUMNS, MEMORY, NEXT, STEPS, Graphs, keep_graphs, kept_graphs
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.threads import MOST, number
from nmt.symbols import BEGIN

if TYPE_CHECKING:
    from nmt.decoding.shortlist import Columns

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
        coverage = mean(np, [one.coverage for one in self.models if one.coverage is not None])
        return coverage, np.any([one.memory["mask"] for one in self.models], axis=0)

    @property
    def attended(self) -> Array:
        """The weights of the last step (rows, source_length), the mean of the models'."""
        return mean(np, [one.weights for one in self.models if one.weights is not None])


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
        self.carried = [name for name in outputs if name.startswith(NEXT)]

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
        else:  # those of a stranger's export may name files to read
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
        source = str(graphs / f"{name}.onnx") if isinstance(graphs, Path) else getattr(graphs, name)
        sessions.append(onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"]))
    return sessions


def _run(session: Any, outputs: Sequence[str], inputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs by name. Raises MemoryError for a failed allocation, for which ONNX Runtime has no class."""
    try:
        values = session.run(outputs, inputs)
    except Exception as error:
        if "alloc" in str(error):
            raise MemoryError(str(error)) from error
        raise
    return dict(zip(outputs, values, strict=True))


class CannotExportError(Exception):
    """A model that ONNX Runtime cannot compute."""


class GraphsOfModel:
    """Where the graphs of one model come from: those that are kept, or else what `make` makes."""

    def __init__(self, key: str | None, make: Callable[[bool], Graphs | None]) -> None:
        """`key`: what tells the graphs from others (see `graph_key`); with None they are not kept. `make` gives the
        graphs for steps over all words, or with True over some; None where the model cannot have any."""
        self.key, self.make = key, make
        self._known: dict[bool, Graphs | Path] = {}

    def engine(self, threads: int, *, among: bool) -> Engine:
        """Raises CannotExportError, and what `make` raises."""
        name = None if self.key is None else f"{self.key}{'.among' if among else ''}"
        if graphs := self._known.get(among) or (kept_graphs(name) if name else None):
            with suppress(Exception):  # what was kept may be gone since
                engine = Engine(graphs, threads)
                self._known[among] = graphs
                return engine
        if (made := self.make(among)) is None:
            raise CannotExportError
        kept = None if name is None else keep_graphs(name, partial(_sessions, made, 1))
        self._known[among] = kept or made
        return Engine(self._known[among], threads)


class RuntimeScorer(AnyScorer):
    """Models on the CPU, in ONNX Runtime, as their graphs have them."""

    most_batches = MOST

    def __init__(
        self, graphs: Sequence[GraphsOfModel], scores: Sequence[str], *, ensemble: EnsembleName | None = None
    ) -> None:
        """`scores`: those of the models' attention, by their names."""
        super().__init__(len(graphs), ensemble, np)
        self.graphs, self._scores = tuple(graphs), tuple(scores)
        self._making, self._process = Lock(), os.getpid()
        self._engines: dict[tuple[int, int, bool], list[Engine]] = {}

    @property
    def lacking(self) -> list[str | None]:
        some = next(iter(self._engines.values()), None) or self.engines()  # those over some words say it too
        return [None if one.aligns else score for one, score in zip(some, self._scores, strict=True)]

    def engines(self, *, among: bool = False) -> list[Engine]:
        """One for each model, with as many threads as there are here. Raises CannotExportError."""
        here = os.getpid(), number(), among  # a process that was forked has none of its parent's threads,
        if here[0] != self._process:  # and perhaps a lock that one of them held
            self._making, self._process = Lock(), here[0]
        with self._making:
            if here not in self._engines:
                self._engines[here] = [of_model.engine(here[1], among=among) for of_model in self.graphs]
            return self._engines[here]

    def start(
        self, source: Array, source_lengths: Array, *, coverage: bool = False, columns: "Columns | None" = None
    ) -> RuntimeState:
        engines = self.engines(among=columns is not None)
        given: dict[str, Any] = {"coverage": coverage, "columns": columns}
        return RuntimeState(engines, tuple(one.start(source, source_lengths, **given) for one in engines), 1)

    def step(self, tokens: Array, state: RuntimeState, wanted: int | None = None) -> tuple[Scores, RuntimeState]:
        ids = state.models[0].ids
        words = state.engines[0].vocabulary if ids is None else len(ids)
        if len(state.engines) > 1 or (wanted or 0) * BLOCK > words:
            wanted = None
        steps = [engine.step(tokens, one, wanted) for engine, one in zip(state.engines, state.models, strict=True)]
        scores, following = zip(*steps, strict=True)
        after = state._replace(models=following)
        return scores[0] if len(steps) == 1 else Scores(self.together([one.values for one in scores])), after

    def forced(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, attention: bool, stepwise: bool
    ) -> tuple[list[float], Iterable[Array | None]]:
        """One step after the other, as in a search."""
        different, places = distinct(sources)
        (source, source_lengths), (target, lengths) = padded_with_end(different), padded_with_end(targets)
        state = self.start(source, source_lengths, coverage=attention)
        if len(different) < len(sources):
            state = state.select(places[:, None])
        totals, rows, weights = np.zeros(len(target)), np.arange(len(target)), []
        tokens = np.full(len(target), BEGIN)
        for position, following in enumerate(target.T):
            scores, state = self.step(tokens, state)
            totals += np.where(position < lengths, scores.values[rows, following], 0.0)
            weights += [state.attended] if attention else []
            tokens = following
        return totals.tolist(), np.stack(weights, axis=1) if attention else [None] * len(target)
