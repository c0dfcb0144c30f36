"""The saved states of a run: the newest, and the one before it for the day the newest is damaged.

It knows their files, and which checkpoints they count on; what is in a state is the business of `checkpoint`.
"""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import Optimizer

from nmt.errors import DamagedFile, UserError
from nmt.files import linked_atomically
from nmt.training.checkpoint import State, random_state, read_state, write_state
from nmt.training.distributed import Processes
from nmt.training.divergence import Diverged, not_finite
from nmt.training.run_folder import RunFolder


class SavedStates:
    """Writes the states of one run. A checkpoint that either of the two counts on is kept."""

    def __init__(
        self, folder: RunFolder, *, model: nn.Module, optimizer: Optimizer, processes: Processes, kept: set[int]
    ) -> None:
        """`kept`: the updates whose checkpoints the state counts on that the run is resumed from."""
        self._folder, self._processes = folder, processes
        self._model, self._optimizer = model, optimizer
        self._kept = kept
        self.update: int | None = None  # of the newest state

    def write(self, numbers: dict[str, Any], *, kept: set[int], where: str) -> None:
        """Write the state, and keep the one before it; to be called in all processes.

        Raises Diverged, with `where`, when the weights or the optimizer are not finite; nothing is written then.
        """
        if (found := not_finite(self._model, self._optimizer)) is not None:
            raise Diverged(found, where=where)
        self.update = numbers["progress"]["update"]
        random_states = self._processes.gather_states(random_state())
        if not self._processes.is_first:
            return
        write_state(
            self._folder.state_path,
            model=self._model,
            optimizer=self._optimizer,
            numbers=numbers,
            random_states=random_states,
            former=self._folder.previous_state_path,
        )
        self.remove_checkpoints(kept)

    def remove_checkpoints(self, kept: set[int]) -> None:
        """Remove the checkpoints that neither the newest state, which counts on `kept`, nor the one before needs."""
        needed, self._kept = self._kept | kept, kept
        self._folder.remove_checkpoints(lambda number: number in needed)


def saved_state(folder: RunFolder, processes: Processes, log: Callable[[str], None]) -> State | None:
    """The state that the run in the folder goes on from: the newest, or the one before it where that is damaged or
    gone, which then takes its place; None where there is none. To be called in all processes.

    Raises UserError when neither can be read, with the way out.
    """
    state = _first_readable(folder, log) if processes.is_first else None
    processes.wait()
    if processes.is_first or not folder.state_path.exists():
        return state
    return read_state(folder.state_path)


def _first_readable(folder: RunFolder, log: Callable[[str], None]) -> State | None:
    newest, previous = folder.state_path, folder.previous_state_path
    if not newest.exists() and not previous.exists():
        return None
    problem = f"{newest}: is gone"
    if newest.exists():
        try:
            return read_state(newest)
        except DamagedFile as error:
            problem = str(error)
        except UserError as error:
            if not previous.exists():
                raise
            raise UserError(f"{error}; without this file the run goes on from {previous}, the state before") from error
    best = f", from its best model with --init-from {folder.best_path}" if folder.best_path.exists() else ""
    way_out = f"so the run cannot be resumed; begin anew in another --output{best}"
    if not previous.exists():
        raise UserError(f"{problem}; there is no state before it, {way_out}")
    try:
        state = read_state(previous)
    except UserError as error:
        raise UserError(problem, f"{error}; neither this nor the newest state can be read, {way_out}") from error
    linked_atomically(previous, newest)
    log(f"warning: {problem}; going on from the state before it, of update {state.numbers['progress']['update']:,}")
    return state
