"""The saved states of a run: the newest, the one before it in case the newest is damaged, and how a run is resumed.

It knows what a state says about a run, and the run's files; `checkpoint` writes and reads the state itself.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from nmt.config import Config, differences, dump_config, moved_files, parse_config
from nmt.errors import DamagedFile, UserError, collected, counted
from nmt.files import rename, written_atomically
from nmt.models.model_file import load_model
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.products import onednn_is_exact
from nmt.processes import Processes
from nmt.training.checkpoint import State, random_state, read_state, restore, seed_process, write_state
from nmt.training.divergence import Diverged, not_finite
from nmt.training.moving_average import MovingAverage
from nmt.training.optim import Schedule
from nmt.training.progress import Progress
from nmt.training.records import Log, Records
from nmt.training.run_files import has_state
from nmt.training.run_folder import RunFolder
from nmt.training.update import chosen_computing


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
        rank = self.processes.rank
        if state is None:
            if rank:
                seed_process(self.config.seed, rank, 0)
            return Progress()
        config = parse_config(state.numbers["config"])
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
        restore(state, model=self.model, optimizer=self.optimizer, average=self._averages, rank=rank)
        saved, present = state.numbers["surroundings"], self._surroundings()
        if saved["threads"] != present["threads"] and saved["processes"] == present["processes"]:
            torch.set_num_threads(saved["threads"])  # another number of processes changes the last bits anyway
            before = counted(saved["threads"], "thread")
            log(f"{before} as before, not {present['threads']}: their number decides the last bits")
        for name in present:
            if name != "threads" and saved[name] != present[name]:
                change = f"{name} was {saved[name]} and is {present[name]}"
                log(f"warning: {change}: the run continues, but not bit for bit")
        progress = Progress.from_json(state.numbers["progress"], rank=rank)
        if rank >= saved["processes"]:
            seed_process(self.config.seed, rank, progress.update)
        self.schedule.restore(state.numbers["schedule"])
        self.update, self._kept = progress.update, progress.kept(self.config.training)
        log(f"resuming after update {progress.update:,}")
        if self.processes.is_first:
            if progress.finished is not None:
                self.folder.remove_checkpoints(self._kept)  # what a kill left between saving and removing
            if progress.best:
                self._restore_best(progress, log)
        return progress

    def _restore_best(self, progress: Progress, log: Log) -> None:
        """Copy a missing or damaged best model from its checkpoint, which has the same bytes.

        In a finished run it may have been an average of checkpoints, which is not computed again.
        """
        problems: list[str] = []
        with collected(problems):
            load_model(self.folder.best_path)
        if not problems:
            return
        checkpoint = self.folder.checkpoint_path(progress.best[0].update)
        if progress.finished is not None and self.config.training.average_best > 1:
            problems.append(f"it may have been an average of checkpoints, the best of which is {checkpoint}")
        with collected(problems):
            load_model(checkpoint)
        if len(problems) == 1:
            with checkpoint.open("rb") as model, written_atomically(self.folder.best_path, "wb") as copy:
                shutil.copyfileobj(model, copy)
            problems.append(f"restored from {checkpoint}")
        log(f"warning: {'; '.join(problems)}")

    def write(self, progress: Progress, records: Records | None, *, where: str) -> None:
        """Write the state, and keep the one before it; to be called in all processes, the first of which has records.

        Raises Diverged, with `where`, when the weights or the optimizer are not finite; nothing is written then.
        """
        numbers = {
            "progress": progress.as_json(self.processes),
            "schedule": self.schedule.state(),
            **({} if records is None else records.saved()),
            "config": self._text,
            "data": self.data,
            "surroundings": self._surroundings(),
        }
        if (problem := not_finite(self.model, self.optimizer)) is not None:
            raise Diverged(problem, where=where)
        self.update = progress.update
        random_states = self.processes.gather_states(random_state())
        if not self.processes.is_first:
            return
        write_state(
            self.folder.state_path,
            model=self.model,
            optimizer=self.optimizer,
            numbers=numbers,
            random_states=random_states,
            average=self._averages,
            former=self.folder.previous_state_path,
        )
        former, self._kept = self._kept, progress.kept(self.config.training)
        self.folder.remove_checkpoints(former | self._kept)

    @property
    def _averages(self) -> Mapping[str, Tensor] | None:
        return None if self.average is None else self.average.weights

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
    gone, which then takes its place; None where there is none. To be called in all processes.

    Raises UserError when neither can be read, with the way out.
    """
    state = _first_readable(folder, log) if processes.is_first else None
    processes.wait()
    if processes.is_first or not folder.state_path.exists():
        return state
    return read_state(folder.state_path)


def _first_readable(folder: RunFolder, log: Log) -> State | None:
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
            update = state.numbers["progress"]["update"]
            log(f"warning: {problems[0]}; going on from the state before it, of update {update:,}")
        return state
    if not has_state(folder.path):
        return None
    best = f", from its best model with --init-from {folder.best_path}" if folder.best_path.exists() else ""
    raise UserError(*problems, f"{folder.path}: the run cannot be resumed; start over in another --output{best}")
