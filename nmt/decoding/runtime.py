"""ONNX Runtime as the engine of search on a CPU: the same models as a `Scorer`'s, from the graphs of `graph`.

A model's graphs are made where they are first used, and kept in the user's cache by the model file's checksum.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import EnsembleName
from nmt.decoding import graph, int8
from nmt.decoding.graph import BARRED, COLUMNS, MEMORY, NEXT, STEPS, Graphs, export
from nmt.decoding.int8 import in_int8
from nmt.decoding.scorer import Scorer, mean
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.shortlist import Columns
from nmt.errors import UserError
from nmt.files import new_digest
from nmt.models import seq2seq
from nmt.models.seq2seq import Seq2Seq
from nmt.ops import computing
from nmt.symbols import BEGIN, END
from nmt.tensor_file import read_tensors, write_tensors

KIND = "graph"
MOST_KEPT = 20  # models whose graphs are kept
CLOSE = 1e-3  # log-probabilities of the two engines may differ by this


class ModelState(NamedTuple):
    """Where a batch of hypotheses stands in one model: the tensors of `graph`, and what a coverage penalty reads."""

    memory: dict[str, Array]  # one row a sentence
    rows: dict[str, Array]  # one row a hypothesis
    steps: int  # tokens read so far
    coverage: Array | None  # (rows, source_length), the sum of the weights of all steps
    ids: Array | None  # (columns,), the words that the step is over; None: all

    def select(self, rows: Array, beam: int) -> "ModelState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`; `beam`: rows of a sentence so far."""
        memory, flat = self.memory, rows.ravel()
        if len(rows) != len(memory["values"]):
            sentences = rows[:, 0] // beam
            memory = {name: part[sentences] for name, part in memory.items()}
        selected = {name: part[flat] for name, part in self.rows.items()}
        coverage = None if self.coverage is None else self.coverage[flat]
        return self._replace(memory=memory, rows=selected, coverage=coverage)


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
        """As `ScorerState.covered`."""
        coverage = mean([torch.from_numpy(one.coverage) for one in self.models])
        return coverage.numpy(), np.any([one.memory["mask"] for one in self.models], axis=0)


class Engine:
    """One model in ONNX Runtime. Several threads may compute with it."""

    def __init__(self, graphs: Iterable[bytes], threads: int) -> None:
        """`graphs`: those of `Graphs`. `threads`: of the processor, for each product. Raises what ONNX Runtime raises
        for damaged graphs."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 4  # it raises what it would log
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.encoder, self.stepper = (
            onnxruntime.InferenceSession(one, options, providers=["CPUExecutionProvider"]) for one in graphs
        )
        self.first = [output.name for output in self.encoder.get_outputs()]
        self.reads = {one.name for one in self.stepper.get_inputs()}
        self.carried = [one.name for one in self.stepper.get_outputs() if _is_carried(one.name)]

    def start(self, source: Array, lengths: Array, *, coverage: bool, columns: Columns | None = None) -> ModelState:
        """The state before the first token of each sentence; `columns`: for a step over some words."""
        parts = _run(self.encoder, self.first, {"source": source, "source_lengths": lengths})
        memory = {name: part for name, part in parts.items() if name in MEMORY}
        rows = {name: part for name, part in parts.items() if name not in (*MEMORY, STEPS)}
        nothing = np.zeros(source.shape, dtype=np.float32) if coverage else None
        if columns is None:
            return ModelState(memory, rows, 0, nothing, None)
        return ModelState({**memory, BARRED: columns.barred}, rows, 0, nothing, columns.ids)

    def step(self, tokens: Array, state: ModelState, wanted: int | None) -> tuple[Scores, ModelState]:
        """The log-probabilities of what may follow `tokens` (rows,), and the next state; see `Step`."""
        results = ["log_probabilities"] if wanted is None else ["scores", "ids"]
        outputs = [*results, *self.carried, *([] if state.coverage is None else ["weights"])]
        numbers = {STEPS: np.array(state.steps), "wanted": np.array(wanted or 1)}
        words = {"tokens": tokens} if state.ids is None else {"tokens": state.ids[tokens], COLUMNS: state.ids}
        inputs = {**state.memory, **state.rows, **numbers, **words}
        values = _run(self.stepper, outputs, {name: part for name, part in inputs.items() if name in self.reads})
        rows = {name.removeprefix(NEXT): values[name] for name in self.carried}
        coverage = None if state.coverage is None else state.coverage + values["weights"]
        following = state._replace(rows=rows, steps=state.steps + 1, coverage=coverage)
        return Scores(*(values[name] for name in results)), following


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


class RuntimeScorer(Scorer):
    """A `Scorer` of models on the CPU, whose steps are ONNX Runtime's where all can be exported.

    With `precision` int8 the products of the steps are those of `int8`, except over the columns of a shortlist; what
    reads the source is float32. What is not search, such as forced decoding, is PyTorch's. Weights that are changed
    after the first search have no effect on it.
    """

    def __init__(
        self,
        models: Iterable[Seq2Seq],
        digests: Sequence[str | None],
        *,
        precision: str = "float32",
        ensemble: EnsembleName | None = None,
    ) -> None:
        """`digests` tell the models, as their files have them, from others; with None graphs are not kept."""
        super().__init__(models, ensemble=ensemble)
        self.digests = tuple(digests)
        self.precision = precision
        self._making = Lock()
        self._engines: dict[tuple[int, bool], list[Engine]] = {}

    def engines(self) -> list[Engine]:
        """One for each model, with as many threads as PyTorch has here; none where a model cannot be exported.

        Raises UserError where there is none for int8, which PyTorch does not compute here.
        """
        kind = threads, among = torch.get_num_threads(), self.columns is not None
        with self._making:
            if kind not in self._engines:
                pairs = zip(self.models, self.digests, strict=True)
                made = [_engine(*both, self.precision, threads, among) for both in pairs]
                exported = [one for one in made if one is not None]
                self._engines[kind] = exported if len(exported) == len(made) else []
            if self.precision == "int8" and not self._engines[kind]:
                raise UserError("precision int8: ONNX Runtime cannot compute this model; choose float32")
            return self._engines[kind]

    def start(self, source: Tensor, source_lengths: Tensor, *, coverage: bool = False) -> Any:
        engines = self.engines()
        if not engines:
            return super().start(source, source_lengths, coverage=coverage)
        arrays = source.numpy(), source_lengths.numpy()
        states = [one.start(*arrays, coverage=coverage, columns=self.columns) for one in engines]
        return RuntimeState(engines, tuple(states), 1)

    def step(self, tokens: Array, state: Any, wanted: int | None = None) -> tuple[Scores, Any]:
        if not isinstance(state, RuntimeState):
            return super().step(tokens, state, wanted)
        words = self.models[0].output_weight if self.columns is None else self.columns.ids
        if len(state.engines) > 1 or (wanted or 0) * graph.BLOCK > len(words):
            wanted = None
        steps = [engine.step(tokens, one, wanted) for engine, one in zip(state.engines, state.models, strict=True)]
        scores, following = zip(*steps, strict=True)
        after = RuntimeState(state.engines, following, state.beam)
        if len(steps) == 1:
            return scores[0], after
        return Scores(self.together([torch.from_numpy(of_model.values) for of_model in scores]).numpy()), after


def _engine(model: Seq2Seq, digest: str | None, precision: str, threads: int, among: bool) -> Engine | None:
    """The engine of a model; None where it cannot be exported, or would not compute what the model does.

    `among`: it is for steps over some words.
    """
    path = None if digest is None else _cached(f"{digest} {precision} {among}")
    if path is not None:
        with suppress(Exception):  # there is none, it is damaged, or another ONNX Runtime wrote it
            kept, _ = read_tensors(path, kind=KIND)
            return Engine((kept.pop(name).numpy().tobytes() for name in Graphs._fields), threads)  # one at a time
    try:
        graphs = export(model, among=among)
        engine = Engine(graphs, threads)
        if not _agrees(engine, model, among):
            return None
        if precision == "int8":
            graphs = graphs._replace(step=in_int8(graphs.step))
            engine = Engine(graphs, threads)
    except Exception:  # whatever a part of somebody's own does that cannot be traced
        return None
    if path is not None:
        with suppress(OSError, UserError):  # it is made again the next time
            _keep(path, graphs)
    return engine


def _keep(path: Path, graphs: Graphs) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = {name: torch.frombuffer(bytearray(part), dtype=torch.uint8) for name, part in graphs._asdict().items()}
    write_tensors(path, parts, kind=KIND, texts={})
    by_age = sorted(path.parent.glob(f"*.{KIND}"), key=lambda file: file.stat().st_mtime)
    for old in by_age[:-MOST_KEPT]:
        old.unlink(missing_ok=True)


def _cached(name: str) -> Path | None:
    """Where the graphs that have this name are kept, under its checksum and that of the sources they were made by."""
    folders = [Path(module.__file__).parent for module in (seq2seq, computing) if module.__file__]
    sources = [
        Path(graph.__file__),
        Path(int8.__file__),
        *(file for folder in folders for file in sorted(folder.glob("*.py"))),
    ]
    content = b"".join(file.read_bytes() for file in sources) + torch.__version__.encode() + name.encode()
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # nobody's home
        return None
    return folder / "nmt-toolkit" / f"{new_digest(content).hexdigest()}.{KIND}"


def _agrees(engine: Engine, model: Seq2Seq, among: bool) -> bool:
    """Whether it gives the model's log-probabilities, over other sizes than those it was traced with."""
    pieces = np.arange(1, 10) % min(model.source_embedding.num_embeddings, len(model.output_weight))
    source, lengths = np.stack([pieces, pieces[::-1]]), np.array([9, 6])
    source[0, -1] = source[1, 5] = END
    rows, beam, differences = np.array([[0, 0, 0], [1, 1, 1]]), 1, []
    ids = np.arange(2 * graph.BLOCK) % len(model.output_weight)
    columns = Columns(ids, np.zeros((2, len(ids)), dtype=np.bool_)) if among else None
    scorer = Scorer([model])
    scorer.columns = columns
    with torch.inference_mode():
        theirs = scorer.start(torch.from_numpy(source), torch.from_numpy(lengths))
        ours = engine.start(source, lengths, coverage=False, columns=columns)
        for tokens in (np.array([BEGIN, BEGIN]), pieces[:6], pieces[3:]):
            expected, theirs = scorer.step(tokens, theirs)
            found, ours = engine.step(tokens, ours, None)
            differences.append(np.abs(found.values - expected.values).max())
            theirs, ours = theirs.select(rows), ours.select(rows, beam)
            rows, beam = np.array([[2, 0, 1], [3, 5, 4]]), 3
    return bool(max(differences) < CLOSE)
