"""The saved states of a run: the checkpoints that they count on, and which of the two a run goes on from."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config import Config
from nmt.config.allowed import stand_in, whole_schema
from nmt.errors import UserError
from nmt.tensor_file import write_tensors
from nmt.training.checkpoint import read_state
from nmt.training.distributed import ALONE, Processes
from nmt.training.divergence import Diverged
from nmt.training.optim import build_schedule
from nmt.training.progress import Progress
from nmt.training.run_folder import RunFolder
from nmt.training.states import SavedStates, saved_state


class OneOfTwo(Processes):
    """One of two processes of which the other says what this one does."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank, 2)
        self.waited = 0

    def wait(self) -> None:
        self.waited += 1

    def sums(self, *numbers: float) -> list[float]:
        return list(numbers)

    def gather_states(self, states: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        return [states, {name: state.clone() for name, state in states.items()}]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    (tmp_path / "checkpoints").mkdir()
    with RunFolder.follow(tmp_path) as folder:
        yield folder


class Model(nn.Linear):
    """All that is asked of a model."""

    @property
    def output_weight(self) -> Tensor:
        return self.weight


RECORDS: Any = SimpleNamespace(saved=lambda: {"recorded": 0})
CONFIG = Config.model_validate(stand_in(whole_schema(), 1))


def states(folder: RunFolder, processes: Processes = ALONE, model: Any = None) -> SavedStates:
    model = model or Model(3, 2)
    return SavedStates(
        folder=folder,
        config=CONFIG,
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        schedule=build_schedule(CONFIG.training),
        data="abc",
        processes=processes,
    )


def update(path: Path) -> int:
    return read_state(path).numbers["progress"]["update"]


def write_two(folder: RunFolder) -> None:
    """States of the updates 3 and 4."""
    two = states(folder)
    for number in (3, 4):
        two.write(Progress(update=number), RECORDS, where="")


def test_what_either_state_counts_on_is_kept(folder: RunFolder) -> None:
    checkpoints = {number: folder.checkpoint_path(number) for number in (1, 2, 3)}
    for path in checkpoints.values():
        path.touch()
    states(folder).write(Progress(update=1, last=[1]), RECORDS, where="")
    checkpoints[2].touch()
    resumed = states(folder)
    assert resumed.start(saved_state(folder, ALONE, print), print) == Progress(update=1, last=[1])
    resumed.write(Progress(update=3, last=[2]), RECORDS, where="")
    assert [number for number, path in checkpoints.items() if path.exists()] == [1, 2]
    resumed.write(Progress(update=4), RECORDS, where="")
    assert [number for number, path in checkpoints.items() if path.exists()] == [2]
    assert (resumed.update, update(folder.state_path), update(folder.previous_state_path)) == (4, 4, 3)


def test_what_is_not_finite_is_not_written(folder: RunFolder) -> None:
    model = Model(3, 2)
    model.weight.data[1, 2] = torch.nan
    with pytest.raises(Diverged, match="training diverged after update 3: 1 of 2 tensors"):
        states(folder, model=model).write(Progress(update=3), RECORDS, where="after update 3")
    assert not folder.state_path.exists()


def test_the_first_process_writes_the_random_states_of_all(folder: RunFolder) -> None:
    second = states(folder, OneOfTwo(1))
    second.write(Progress(update=3), None, where="")
    assert second.update == 3
    assert not folder.state_path.exists()
    states(folder, OneOfTwo(0)).write(Progress(update=3), RECORDS, where="")
    assert {"random.0.cpu", "random.1.cpu"} <= read_state(folder.state_path).tensors.keys()


@pytest.mark.parametrize("rank", [0, 1])
def test_the_others_read_what_the_first_process_has_settled(folder: RunFolder, rank: int) -> None:
    processes = OneOfTwo(rank)
    assert saved_state(folder, processes, print) is None
    write_two(folder)
    state = saved_state(folder, processes, print)
    assert state is not None
    assert state.numbers["progress"]["update"] == 4
    assert processes.waited == 2


@pytest.mark.parametrize("problem", ["damaged", "gone"])
def test_the_state_before_takes_the_place_of_the_newest(folder: RunFolder, problem: str) -> None:
    write_two(folder)
    folder.state_path.unlink()
    if problem == "damaged":
        folder.state_path.write_bytes(b"half")
    said: list[str] = []
    state = saved_state(folder, ALONE, said.append)
    assert state is not None
    assert state.numbers["progress"]["update"] == update(folder.state_path) == 3
    (line,) = said
    assert line.startswith(f"warning: {folder.state_path}: {'is gone' if problem == 'gone' else 'damaged'}")
    assert line.endswith("; going on from the state before it, of update 3")


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("previous", [False, True])
def test_no_state_that_can_be_read(folder: RunFolder, previous: bool, best: bool) -> None:
    folder.state_path.write_bytes(b"half")
    if previous:
        folder.previous_state_path.write_bytes(b"half")
    if best:
        folder.best_path.touch()
    with pytest.raises(UserError) as raised:
        saved_state(folder, ALONE, print)
    way_out = "so the run cannot be resumed; begin anew in another --output"
    way_out += f", from its best model with --init-from {folder.best_path}" if best else ""
    why = "neither this nor the newest state can be read, " if previous else "there is no state before it, "
    assert len(raised.value.messages) == 1 + previous
    assert raised.value.messages[-1].endswith(f"; {why}{way_out}")


@pytest.mark.parametrize("previous", [False, True])
def test_a_file_of_another_kind_in_place_of_the_newest_stays(folder: RunFolder, previous: bool) -> None:
    if previous:
        write_two(folder)
    write_tensors(folder.state_path, {}, kind="model", texts={})
    before = folder.state_path.read_bytes()
    with pytest.raises(UserError, match="not a training state of this toolkit, but a model") as raised:
        saved_state(folder, ALONE, print)
    way_out = f"; without this file the run goes on from {folder.previous_state_path}, the state before"
    assert str(raised.value).endswith(way_out) is previous
    assert folder.state_path.read_bytes() == before
