"""The saved states of a run: the newest, the one before it in case the newest is damaged, and how a run is resumed.

A state is one file with the model's weights, their moving average where there is one, the optimizer's state by the
position of each parameter, the random states of each process, and one JSON object with everything that is not a tensor.
No pickle is written or read. What the file says is ours once its checksum is right.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from nmt.config.loading import dump_config, parse_config
from nmt.config.resuming import continuation
from nmt.config.schema import Config
from nmt.errors import DamagedFile, UserError, counted
from nmt.files import copy_atomically, rename, written_atomically
from nmt.models.model_file import load_model
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.memory import out_of_memory
from nmt.ops.products import onednn_is_exact
from nmt.processes import Processes
from nmt.tensor_file import read_tensors, with_prefix, write_tensors
from nmt.training.divergence import Diverged, not_finite
from nmt.training.moving_average import MovingAverage
from nmt.training.optim import Schedule
from nmt.training.progress import Progress
from nmt.training.records import Log, Records
from nmt.training.run_folder import RunFolder, has_state
from nmt.training.update import chosen_computing

KIND = "training state"
NUMBERS = ("progress", "schedule", "recorded", "before_end", "config", "data", "surroundings")


class State(NamedTuple):
    """What `read_state` returns: tensors by name, the JSON object, the file that they are from, and the last update."""

    tensors: dict[str, Tensor]
    numbers: dict[str, Any]
    path: Path
    update: int


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """Raise DamagedFile where the block does not find what this version writes to a state, the file at `path`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        if out_of_memory(error):
            raise
        raise DamagedFile(f"{path}: damaged, or of another version of the toolkit ({error!r:.300})") from error


def read_state(path: Path) -> State:
    """Read a saved state. Raises DamagedFile when it is not what was written, UserError when it is something else."""
    tensors, texts = read_tensors(path, kind=KIND)
    with _understood(path):
        numbers = json.loads(texts["numbers"])
        return State(tensors, {name: numbers[name] for name in NUMBERS}, path, numbers["progress"]["update"])


def seed_process(seed: int, rank: int, update: int) -> None:
    """Seed the generators of a process that has no saved state, so that no two processes draw the same masks."""
    torch.manual_seed(int(np.random.SeedSequence([seed, rank, update]).generate_state(1)[0]))


@dataclass(kw_only=True, eq=False)
class SavedStates:
    """The states of one run. Checkpoints that either of the two needs are kept.

    How a run ends (a report, a validation, and an average where none was due) changes numbers and files, but no tensor
    of the state. So a state of the end also has the numbers from before it, from which a longer run goes on.
    """

    folder: RunFolder
    config: Config
    model: Seq2Seq
    optimizer: Optimizer
    schedule: Schedule
    data: str  # a fingerprint of the corpora and vocabularies
    processes: Processes
    average: MovingAverage | None = field(default=None, init=False)  # of the model's weights
    update: int | None = field(default=None, init=False)  # of the newest state
    before_end: dict[str, Any] | None = field(default=None, init=False)  # numbers; None: the end has not begun
    _kept: set[int] = field(default_factory=set, init=False)  # the updates whose checkpoints the newest state needs
    _text: str = field(init=False)  # of the configuration

    def __post_init__(self) -> None:
        self._text = dump_config(self.config)
        if (settings := self.config.training.moving_average) is not None:
            self.average = MovingAverage(self.model, settings.decay)

    def start(self, state: State | None, log: Log) -> Progress:
        """Put back what `state` holds, and return how far the run had come; None: the run begins.

        To be called in all processes. Raises UserError for a state of another configuration, or of a run that began
        with other data: its weights stand for other pieces, and its position for other batches.
        """
        if state is None:
            if self.processes.rank:
                seed_process(self.config.seed, self.processes.rank, 0)
            return Progress()
        with _understood(state.path):
            lengthened = self._checked(state)
            if lengthened and state.numbers["before_end"] is not None:
                state.numbers.update(state.numbers["before_end"], before_end=None)
            progress = self._resumed(state, log)
        self.update, self._kept = progress.update, self._needed(progress)
        log(f"resuming after update {progress.update:,}")
        if self.processes.is_first:
            if progress.best:
                self._restore_best(progress, is_lengthened=bool(lengthened), log=log)
            if progress.finished is not None:
                self.folder.remove_checkpoints(self._kept)  # what a kill left between saving and removing
            if lengthened:
                log(f"lengthened: {'; '.join(lengthened)}")
                with written_atomically(self.folder.config_path) as file:
                    file.write(self._text)
        return progress

    def _checked(self, state: State) -> list[str]:
        """What makes the run longer than it was in `state`. Raises UserError for another configuration or data."""
        _, lengthened, obstacles = continuation(parse_config(state.numbers["config"]), self.config)
        if obstacles:
            changes = "\n  ".join(obstacles)
            raise UserError(
                f"{state.path}: belongs to a run of another configuration; put the state of this run back, or give "
                f"another --output. The differences:\n  {changes}"
            )
        if state.numbers["data"] != self.data:
            raise UserError(
                f"{self.folder.path}: the corpus files or subword models are no longer those that this run began "
                "with; put them back to resume it, or give another --output"
            )
        return lengthened

    def _restore_best(self, progress: Progress, *, is_lengthened: bool, log: Log) -> None:
        """Bring back the best model where it is gone, or where it is that of an end which is none any more."""
        path, update = self.folder.best_path, progress.best[0].update
        checkpoint = self.folder.checkpoint_path(update)
        is_average = progress.finished is not None and self.config.training.average_best > 0
        if checkpoint.exists() and not is_average and (is_lengthened or not path.exists()):
            if not path.exists():
                log(f"warning: {path}: was gone; restored from {checkpoint}")
            copy_atomically(checkpoint, path)
        elif is_lengthened and load_model(path).training["updates"] != update:
            raise UserError(
                f"{checkpoint}: gone, or not kept (training.keep_best: {self.config.training.keep_best}), so that the "
                "run cannot be lengthened: this was its best model before its end"
            )

    def _resumed(self, state: State, log: Log) -> Progress:
        numbers, rank = state.numbers, self.processes.rank
        self._restore(state)
        saved, present = numbers["surroundings"], self._surroundings()
        if saved["threads"] != present["threads"] and saved["processes"] == present["processes"]:
            torch.set_num_threads(saved["threads"])  # another number of processes changes the last bits anyway
            before = counted(saved["threads"], "thread")
            log(f"{before} as before, not {present['threads']}: their number decides the last bits")
        for name in present:
            if name != "threads" and saved[name] != present[name]:
                change = f"{name} was {saved[name]} and is {present[name]}"
                log(f"warning: {change}: the run continues, but not bit for bit")
        self.before_end = numbers["before_end"]
        progress = Progress.from_json(numbers["progress"])
        if rank >= saved["processes"]:
            seed_process(self.config.seed, rank, progress.update)
        self.schedule.restore(numbers["schedule"])
        return progress

    def numbers(self, progress: Progress, records: Records | None) -> dict[str, Any]:
        """How far the run has come, and what it has written in its records."""
        recorded = {} if records is None else records.saved()
        return {"progress": asdict(progress), "schedule": self.schedule.state(), **recorded}

    def _needed(self, progress: Progress) -> set[int]:
        """The updates whose checkpoints are kept: those of this point, and those from which a longer run goes on."""
        kept = progress.kept(self.config.training)
        if self.before_end is not None:
            kept |= Progress.from_json(self.before_end["progress"]).kept(self.config.training)
        return kept

    def write(self, progress: Progress, records: Records | None) -> None:
        """Write the state, and keep the one before it; to be called in all processes, the first of which has records.

        Raises Diverged when the weights or the optimizer are not finite; nothing is written then.
        """
        numbers = {
            **self.numbers(progress, records),
            "before_end": self.before_end,
            "config": self._text,
            "data": self.data,
            "surroundings": self._surroundings(),
        }
        if (problem := not_finite(self.model, self.optimizer)) is not None:
            raise Diverged(problem)
        self.update = progress.update
        mine = {"cpu": torch.get_rng_state()}  # the states of this process's random generators, by their device
        if torch.cuda.is_available():
            mine |= {f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
        random_states = self.processes.gather({name: state.tolist() for name, state in mine.items()})
        if not self.processes.is_first:
            return
        tensors, texts = self._tensors(random_states), {"numbers": json.dumps(numbers)}
        former_path = self.folder.previous_state_path
        write_tensors(self.folder.state_path, tensors, kind=KIND, texts=texts, former=former_path)
        former, self._kept = self._kept, self._needed(progress)
        self.folder.remove_checkpoints(former | self._kept)

    def _tensors(self, random_states: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        """What the file has: model.NAME, average.NAME, optimizer.INDEX.NAME, and random.RANK.DEVICE."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.weights.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            # A value that is None (SGD's momentum, when there is none) is not stored, and absent again when restored.
            present = {name: torch.as_tensor(value) for name, value in values.items() if value is not None}
            tensors |= {f"optimizer.{index}.{name}": value for name, value in present.items()}
        for rank, states in enumerate(random_states):
            for name, state in states.items():
                tensors[f"random.{rank}.{name}"] = torch.tensor(state, dtype=torch.uint8)
        return tensors

    def _restore(self, state: State) -> None:
        """Put tensors back where `_tensors` found them. A process that did not exist then has no random states."""
        self.model.load_state_dict(with_prefix(state.tensors, "model."))
        if self.average is not None:
            for name, weight in with_prefix(state.tensors, "average.").items():
                self.average.weights[name].copy_(weight)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in with_prefix(state.tensors, "optimizer.").items():
            index, _, moment = name.partition(".")
            moments.setdefault(int(index), {})[moment] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        random_states = with_prefix(state.tensors, f"random.{self.processes.rank}.")
        if "cpu" in random_states:
            torch.set_rng_state(random_states["cpu"])
        on_devices = with_prefix(random_states, "cuda.")
        if torch.cuda.is_available() and len(on_devices) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all([on_devices[str(index)] for index in range(len(on_devices))])

    def _surroundings(self) -> dict[str, Any]:
        """What the last bits of the numbers depend on, besides the state."""
        device = self.model.output_weight.device
        computing = chosen_computing(self.config.training, device)
        return {
            "processes": self.processes.size,
            "threads": torch.get_num_threads(),
            "PyTorch": str(torch.__version__),
            "device": device.type,
            "oneDNN": onednn_is_exact(),
            "fused kernels": computing.fused,
            "precision": str(computing.precision).removeprefix("torch."),
        }


def saved_state(folder: RunFolder, processes: Processes, log: Log) -> State | None:
    """The state that the run in the folder goes on from: the newest, or the one before it where that is damaged or
    gone, which then takes its place; None where there is none. To be called in all processes, first in the first.

    Raises UserError when neither can be read, with the way out.
    """
    if not processes.is_first:
        return read_state(folder.state_path) if folder.state_path.exists() else None
    problems = []
    for path in (folder.state_path, folder.previous_state_path):
        if not path.exists():
            problems.append(f"{path}: is gone")
            continue
        try:
            state = read_state(path)
        except DamagedFile as error:
            problems.append(str(error))
            continue
        except UserError as error:
            if path == folder.state_path and folder.previous_state_path.exists():
                former = f"without this file the run goes on from {folder.previous_state_path}"
                raise UserError(f"{error}; {former}") from error
            raise
        if problems:
            rename(path, folder.state_path)
            log(f"warning: {problems[0]}; going on from the state before it, of update {state.update:,}")
        return state
    if not has_state(folder.path):
        return None
    best = f", from its best model with --init-from {folder.best_path}" if folder.best_path.exists() else ""
    raise UserError(*problems, f"{folder.path}: the run cannot be resumed; start over in another --output{best}")
