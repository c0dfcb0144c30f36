"""The saved states of a run: the checkpoints that they count on, and which of the two a run goes on from."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import Config, MovingAverageConfig, PlateauSchedule, TrainingConfig
from nmt.errors import UserError
from nmt.ops.computing import Computing
from nmt.processes import ALONE, Processes
from nmt.tensor_file import read_tensors, write_tensors
from nmt.training.optim import SGD, build_optimizer, build_schedule
from nmt.training.progress import Progress, Window
from nmt.training.run_folder import RunFolder
from nmt.training.states import SavedStates, read_state, saved_state, seed_process


class OneOfTwo(Processes):
    """One of two processes of which the other says what this one does."""

    def __init__(self, rank: int) -> None:
        self.rank, self.size = rank, 2

    def sums(self, *numbers: float) -> list[float]:
        return list(numbers)

    def gather(self, value: Any) -> list[Any]:
        return [value, {"cpu": torch.Generator().manual_seed(9).get_state().tolist()}]


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
PAIR = {"source": "a", "target": "b"}
DATA = {"source_language": "a", "target_language": "b", "train": PAIR, "valid": PAIR}
CONFIG = Config.model_validate({"name": "small", "data": DATA})


def states(folder: RunFolder, processes: Processes = ALONE, model: Any = None) -> SavedStates:
    model = model or Model(3, 2)
    return SavedStates(
        folder=folder,
        config=CONFIG,
        model=model,
        optimizer=SGD(model.parameters(), lr=0.1),
        schedule=build_schedule(CONFIG.training),
        data="abc",
        processes=processes,
    )


def write_two(folder: RunFolder) -> None:
    """States of the updates 3 and 4."""
    two = states(folder)
    for number in (3, 4):
        two.write(Progress(update=number), RECORDS)


def test_what_either_state_counts_on_is_kept(folder: RunFolder) -> None:
    checkpoints = {number: folder.checkpoint_path(number) for number in (1, 2, 3)}
    for path in checkpoints.values():
        path.touch()
    states(folder).write(Progress(update=1, last=[1]), RECORDS)
    checkpoints[2].touch()
    resumed = states(folder)
    assert resumed.start(saved_state(folder, ALONE, print), print) == Progress(update=1, last=[1])
    resumed.write(Progress(update=3, last=[2]), RECORDS)
    assert [number for number, path in checkpoints.items() if path.exists()] == [1, 2]
    resumed.write(Progress(update=4), RECORDS)
    assert [number for number, path in checkpoints.items() if path.exists()] == [2]
    written = [read_state(path).update for path in (folder.state_path, folder.previous_state_path)]
    assert (resumed.update, *written) == (4, 4, 3)


def test_the_first_process_writes_the_random_states_of_all(folder: RunFolder) -> None:
    second = states(folder, OneOfTwo(1))
    second.write(Progress(update=3), None)
    assert second.update == 3
    assert not folder.state_path.exists()
    states(folder, OneOfTwo(0)).write(Progress(update=3), RECORDS)
    assert {"random.0.cpu", "random.1.cpu"} <= read_state(folder.state_path).tensors.keys()


OPTIMIZERS: list[dict[str, Any]] = [
    {"name": "sgd", "learning_rate": 0.1},
    {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9},
    {"name": "adam"},
    {"name": "adamw", "weight_decay": 0.01},
    {"name": "adadelta"},
]


def train(run: SavedStates, updates: int) -> None:
    for _ in range(updates):
        run.optimizer.zero_grad()
        run.model(torch.randn(5, 3)).square().sum().backward()  # from the global generator, as dropout is
        run.optimizer.step()


@pytest.mark.parametrize("settings", OPTIMIZERS, ids=str)
def test_training_continues_bit_for_bit(folder: RunFolder, settings: dict[str, Any]) -> None:
    training = TrainingConfig.model_validate({"optimizer": settings})
    one, other = states(folder), states(folder)
    one, other = (replace(each, optimizer=build_optimizer(each.model.parameters(), training)) for each in (one, other))
    train(one, 3)
    one.write(Progress(update=3), RECORDS)
    train(one, 4)
    torch.manual_seed(99)
    other.start(saved_state(folder, ALONE, print), print)
    train(other, 4)
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


def test_the_names_in_the_file(folder: RunFolder) -> None:
    """By which later versions find what is in it."""
    model = Model(3, 2)
    adam = build_optimizer(model.parameters(), TrainingConfig())
    run = replace(states(folder, model=model), optimizer=adam, config=AVERAGING)
    train(run, 1)
    run.write(Progress(update=1), RECORDS)
    tensors, texts = read_tensors(folder.state_path, kind="training state")
    moments = {f"optimizer.{index}.{name}" for index in range(2) for name in ("step", "exp_avg", "exp_avg_sq")}
    weights = {f"{kind}.{name}" for kind in ("model", "average") for name in ("weight", "bias")}
    assert tensors.keys() == {"random.0.cpu"} | weights | moments
    numbers = {"progress", "schedule", "recorded", "before_end", "config", "data", "surroundings"}
    assert json.loads(texts["numbers"]).keys() == numbers


def test_the_random_states_of_gpus(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """On as many as there were; more or fewer draw numbers of their own."""
    gpus = [torch.tensor([number, 2], dtype=torch.uint8) for number in range(2)]
    restored: list[list[torch.Tensor]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus))
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", restored.append)
    write_two(folder)
    for count in (2, 3, 1):
        gpus = gpus[:1] * count
        resumed(folder)
    assert [[state.tolist() for state in every] for every in restored] == [[[0, 2], [1, 2]]]


def resumed(folder: RunFolder, processes: Processes = ALONE, **changes: Any) -> tuple[SavedStates, Progress, list[str]]:
    """A run that resumes from the newest state: with its progress and what its log says."""
    log: list[str] = []
    again = replace(states(folder, processes), **changes)
    return again, again.start(saved_state(folder, processes, log.append), log.append), log


def warnings(log: Sequence[str]) -> list[str]:
    return [line for line in log if line.startswith("warning: ")]


def test_resuming_puts_everything_back(folder: RunFolder, threads: Callable[[int], None]) -> None:
    config = CONFIG.model_copy(
        update={"training": CONFIG.training.model_copy(update={"schedule": PlateauSchedule(name="plateau")})}
    )
    before = states(folder)
    before = replace(before, config=config, schedule=build_schedule(config.training))
    before.schedule.restore({"current": 0.25, "best": 5.0, "loss": 2.0, "waited": 1})
    before.model.weight.data.fill_(7.0)
    threads(3)
    torch.manual_seed(11)
    before.write(Progress(update=1234, epoch=5), RECORDS)
    drawn = torch.rand(3)
    threads(1)
    again, progress, log = resumed(folder, config=config, schedule=build_schedule(config.training))
    assert torch.equal(torch.rand(3), drawn)
    assert torch.get_num_threads() == 3
    assert progress == Progress(update=1234, epoch=5)
    assert again.schedule.state() == {"current": 0.25, "best": 5.0, "loss": 2.0, "waited": 1}
    assert bool((again.model.weight == 7.0).all())
    assert log == ["3 threads as before, not 1: their number decides the last bits", "resuming after update 1,234"]
    assert resumed(folder, config=config, schedule=build_schedule(config.training))[2] == log[1:]


def test_a_state_of_another_configuration_is_refused(folder: RunFolder) -> None:
    write_two(folder)
    optimizer = CONFIG.training.optimizer.model_copy(update={"learning_rate": 0.5})
    training = CONFIG.training.model_copy(update={"optimizer": optimizer})
    with pytest.raises(UserError, match=r"state\.safetensors: belongs to .*\n  training\.optimizer\.learning_rate: "):
        resumed(folder, config=CONFIG.model_copy(update={"training": training}))
    elsewhere = CONFIG.data.model_copy(update={"cache_folder": Path("elsewhere")})
    resumed(folder, config=CONFIG.model_copy(update={"data": elsewhere}))


@pytest.mark.parametrize(
    ("name", "there", "here"),
    [("PyTorch", "9.8", "9.9"), ("device", "cpu", "meta"), ("oneDNN", "True", "False"),
     ("precision", "float32", "bfloat16")],
)  # fmt: skip
def test_changed_surroundings_are_named(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, name: str, there: str, here: str
) -> None:
    monkeypatch.setattr(torch, "__version__", "9.8")
    monkeypatch.setattr("nmt.training.states.onednn_is_exact", lambda: True)
    write_two(folder)
    if name == "PyTorch":
        monkeypatch.setattr(torch, "__version__", "9.9")
    elif name == "device":
        monkeypatch.setattr(Model, "output_weight", torch.empty(1, device="meta"))
    elif name == "oneDNN":
        monkeypatch.setattr("nmt.training.states.onednn_is_exact", lambda: False)
    else:
        computing = Computing(True, torch.bfloat16)
        monkeypatch.setattr("nmt.training.states.chosen_computing", lambda *_: computing)
    _, _, log = resumed(folder)
    assert warnings(log) == [f"warning: {name} was {there} and is {here}: the run continues, but not bit for bit"]


def test_another_number_of_processes(folder: RunFolder, threads: Callable[[int], None]) -> None:
    """The number of threads decides the last bits only where the number of processes is the same."""
    threads(3)
    states(folder, OneOfTwo(0)).write(Progress(update=4), RECORDS)
    threads(1)
    assert not warnings(resumed(folder, OneOfTwo(0))[2])
    assert torch.get_num_threads() == 3
    write_two(folder)
    threads(1)
    _, _, log = resumed(folder, OneOfTwo(0))
    assert torch.get_num_threads() == 1
    assert warnings(log) == ["warning: processes was 1 and is 2: the run continues, but not bit for bit"]


def seeded(rank: int, update: int) -> Tensor:
    """What a process draws first that begins at this update."""
    seed_process(CONFIG.seed, rank, update)
    return torch.rand(3)


def test_a_new_process_draws_what_no_other_does(folder: RunFolder) -> None:
    assert states(folder, OneOfTwo(1)).start(None, print) == Progress()
    assert torch.equal(torch.rand(3), seeded(1, 0))
    first = states(folder, OneOfTwo(0))
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first.start(None, print)
    assert torch.equal(torch.rand(3), expected)
    write_two(folder)
    resumed(folder, OneOfTwo(1))
    assert torch.equal(torch.rand(3), seeded(1, 4))
    assert len({tuple(seeded(rank, update).tolist()) for rank in (1, 2) for update in (0, 4)}) == 4


def test_a_process_goes_on_where_it_was(folder: RunFolder) -> None:
    window = Window(updates=2, loss=3.0, tokens=7, gradient_norm=1.5, seconds=0.5)
    progress = Progress(update=4, window=window)
    writing = states(folder, OneOfTwo(0))
    torch.manual_seed(5)
    writing.write(progress, RECORDS)
    draws = [torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(9))]
    for rank in (0, 1):
        _, at, log = resumed(folder, OneOfTwo(rank))
        assert at.window == window
        assert torch.equal(torch.rand(3), draws[rank])
        assert not warnings(log)


@pytest.mark.parametrize("finished", [None, "4 updates"])
def test_what_a_kill_left_of_checkpoints_goes_when_a_finished_run_is_resumed(
    folder: RunFolder, finished: str | None
) -> None:
    states(folder).write(Progress(update=4, last=[4], finished=finished), RECORDS)
    folder.checkpoint_path(2).touch()
    resumed(folder)
    assert folder.checkpoint_path(2).exists() == (finished is None)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_others_read_what_the_first_process_has_settled(folder: RunFolder, rank: int) -> None:
    processes = OneOfTwo(rank)
    assert saved_state(folder, processes, print) is None
    write_two(folder)
    state = saved_state(folder, processes, print)
    assert state is not None
    assert state.update == 4


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
    newest, other, way_out = raised.value.messages
    assert newest.startswith(f"{folder.state_path}: damaged")
    assert other.startswith(f"{folder.previous_state_path}: {'damaged' if previous else 'is gone'}")
    assert (f"--init-from {folder.best_path}" in way_out) is best


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("config", lambda numbers: numbers.pop("config")),
        ("update", lambda numbers: numbers.update(progress={})),
        ("threads", lambda numbers: numbers["surroundings"].pop("threads")),
        ("dropped", lambda numbers: numbers["progress"].update(dropped=3)),
        ("weight", lambda numbers: None),
    ],
)
def test_a_state_of_another_version(folder: RunFolder, place: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Which lacks something, or has something more."""
    states(folder).write(Progress(update=3), RECORDS)
    tensors, texts = read_tensors(folder.state_path, kind="training state")
    change(numbers := json.loads(texts["numbers"]))
    tensors = {name: tensor for name, tensor in tensors.items() if place not in name}
    write_tensors(folder.state_path, tensors, kind="training state", texts={"numbers": json.dumps(numbers)})
    with pytest.raises(UserError, match=rf"state\.safetensors: damaged, or of another version of .*{place}"):
        resumed(folder)


def test_a_file_of_another_kind_in_place_of_the_newest_stays(folder: RunFolder) -> None:
    write_two(folder)
    write_tensors(folder.state_path, {}, kind="model", texts={})
    before = folder.state_path.read_bytes()
    hint = rf"without this file the run goes on from {folder.previous_state_path}"
    with pytest.raises(UserError, match=f"not a training state of this toolkit, but a model; {hint}"):
        saved_state(folder, ALONE, print)
    assert folder.state_path.read_bytes() == before


# ------------------------------------------------------------------------------------------------------ moving average

AVERAGING = CONFIG.model_copy(
    update={"training": CONFIG.training.model_copy(update={"moving_average": MovingAverageConfig(decay=0.9)})}
)


@pytest.mark.parametrize("decay", [0.9, 0.9999])  # in float32 and in float64
def test_the_moving_average_and_the_last_weights_are_restored(folder: RunFolder, decay: float) -> None:
    averaging = CONFIG.training.model_copy(update={"moving_average": MovingAverageConfig(decay=decay)})
    config = CONFIG.model_copy(update={"training": averaging})
    model = Model(3, 2)
    writing = replace(states(folder, model=model), config=config)
    assert writing.average is not None
    for weight in (model.weight, *writing.average.weights.values()):
        nn.init.normal_(weight)
    writing.write(Progress(update=4), RECORDS)
    again, _, log = resumed(folder, config=config)
    assert again.average is not None
    assert not warnings(log)
    assert torch.equal(again.model.state_dict()["weight"], model.weight)
    for name, weight in again.average.weights.items():
        assert weight.dtype == (torch.float32 if decay == 0.9 else torch.float64)
        assert torch.equal(weight, writing.average.weights[name])
