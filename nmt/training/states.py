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

from nmt.config import Config, differences, dump_config, moved_files, parse_config
from nmt.errors import DamagedFile, UserError, counted
from nmt.files import copy_atomically, rename
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
NUMBERS = ("progress", "schedule", "recorded", "config", "data", "surroundings")


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


def random_state() -> dict[str, Tensor]:
    """The states of this process's random generators, by their device."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def seed_process(seed: int, rank: int, update: int) -> None:
    """Seed the generators of a process that has no saved state, so that no two processes draw the same masks."""
    torch.manual_seed(int(np.random.SeedSequence([seed, rank, update]).generate_state(1)[0]))


@dataclass(kw_only=True, eq=False)
class SavedStates:
    """The states of one run. Checkpoints that either of the two needs are kept."""

    folder: RunFolder
    config: Config
    model: Seq2Seq
    optimizer: Optimizer
    schedule: Schedule
    data: str  # a fingerprint of the corpora and vocabularies
    processes: Processes
    average: MovingAverage | None = field(default=None, init=False)  # of the model's weights
    update: int | None = field(default=None, init=False)  # of the newest state
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
            progress = self._resumed(state, log)
        self.update, self._kept = progress.update, progress.kept(self.config.training)
        log(f"resuming after update {progress.update:,}")
        if self.processes.is_first and progress.finished is not None:
            self.folder.remove_checkpoints(self._kept)  # what a kill left between saving and removing
        if self.processes.is_first and progress.best and not self.folder.best_path.exists():
            checkpoint = self.folder.checkpoint_path(progress.best[0].update)
            if checkpoint.exists() and (progress.finished is None or self.config.training.average_best == 0):
                copy_atomically(checkpoint, self.folder.best_path)
                log(f"warning: {self.folder.best_path}: was gone; restored from {checkpoint}")
        return progress

    def _resumed(self, state: State, log: Log) -> Progress:
        config, rank = parse_config(state.numbers["config"]), self.processes.rank
        if moved_files(config, self.config) is None:
            changes = "\n  ".join(differences(config, self.config))
            raise UserError(
                f"{state.path}: belongs to a run of another configuration; put the state of this run back, or give "
                f"another --output. The differences:\n  {changes}"
            )
        if state.numbers["data"] != self.data:
            raise UserError(
                f"{self.folder.path}: the corpus files or subword models are no longer those that this run began "
                "with; put them back to resume it, or give another --output"
            )
        self._restore(state)
        saved, present = state.numbers["surroundings"], self._surroundings()
        if saved["threads"] != present["threads"] and saved["processes"] == present["processes"]:
            torch.set_num_threads(saved["threads"])  # another number of processes changes the last bits anyway
            before = counted(saved["threads"], "thread")
            log(f"{before} as before, not {present['threads']}: their number decides the last bits")
        for name in present:
            if name != "threads" and saved[name] != present[name]:
                change = f"{name} was {saved[name]} and is {present[name]}"
                log(f"warning: {change}: the run continues, but not bit for bit")
        progress = Progress.from_json(state.numbers["progress"])
        if rank >= saved["processes"]:
            seed_process(self.config.seed, rank, progress.update)
        self.schedule.restore(state.numbers["schedule"])
        return progress

    def write(self, progress: Progress, records: Records | None) -> None:
        """Write the state, and keep the one before it; to be called in all processes, the first of which has records.

        Raises Diverged when the weights or the optimizer are not finite; nothing is written then.
        """
        numbers = {
            "progress": asdict(progress),
            "schedule": self.schedule.state(),
            **({} if records is None else records.saved()),
            "config": self._text,
            "data": self.data,
            "surroundings": self._surroundings(),
        }
        if (problem := not_finite(self.model, self.optimizer)) is not None:
            raise Diverged(problem)
        self.update = progress.update
        random_states = self.processes.gather_states(random_state())
        if not self.processes.is_first:
            return
        tensors, texts = self._tensors(random_states), {"numbers": json.dumps(numbers)}
        former_path = self.folder.previous_state_path
        write_tensors(self.folder.state_path, tensors, kind=KIND, texts=texts, former=former_path)
        former, self._kept = self._kept, progress.kept(self.config.training)
        self.folder.remove_checkpoints(former | self._kept)

    def _tensors(self, random_states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """What the file has: model.NAME, average.NAME, optimizer.INDEX.NAME, and random.RANK.DEVICE."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.weights.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            # A value that is None (SGD's momentum, when there is none) is not stored, and absent again when restored.
            present = {name: torch.as_tensor(value) for name, value in values.items() if value is not None}
            tensors |= {f"optimizer.{index}.{name}": value for name, value in present.items()}
        for rank, states in enumerate(random_states):
            tensors |= {f"random.{rank}.{name}": state for name, state in states.items()}
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
