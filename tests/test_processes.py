"""How processes meet, and what they tell one another: as JSON and bytes, never as pickle."""

import json
import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed import HashStore
from torch.distributed.distributed_c10d import PrefixStore

from nmt.errors import ToldElsewhere, UserError
from nmt.processes import ALONE, joined
from nmt.processes import several as processes
from nmt.processes.several import Several

VALUES: list[Any] = [["schön", "\ud800", "a\nb", ""], {"a": [1, 2.5, None, True]}]  # of two processes, of other lengths
PROGRAM = """
import json, pickle, sys
import torch
from torch import distributed

def refuse(*_, **__):
    raise AssertionError("pickle")

for name in ("loads", "load", "dumps", "dump", "Unpickler", "Pickler"):
    setattr(pickle, name, refuse)
for name in ("_pickler", "_unpickler"):
    setattr(distributed.distributed_c10d, name, refuse)

from nmt.processes.several import Several

rank, place = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
processes = Several(rank, 2, torch.device("cpu"))
values = json.loads(sys.argv[3])
torch.manual_seed(rank)
found = processes.gather(values[rank])
states = processes.gather(torch.get_rng_state().tolist())
expected = [torch.manual_seed(each).get_state().tolist() for each in range(2)]
processes.check_same("number", "1")
same = [each == state for each, state in zip(states, expected)]
print(json.dumps([found, same, processes.gather(rank), processes.sums(1.0, rank), processes.largest(15 * rank)]))
processes.wait()
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_nothing_is_pickled_between_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    arguments = [str(tmp_path / "store"), json.dumps(VALUES)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([*command, str(rank), *arguments], stdout=subprocess.PIPE, env=environment)
        for rank in range(2)
    ]
    for process in started:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert json.loads(said) == [VALUES, [True, True], [0, 1], [2.0, 1.0], 15]


def test_a_training_by_itself_asks_nobody() -> None:
    assert ALONE.gather(VALUES) == [VALUES]
    assert ALONE.largest(15) == 15
    ALONE.wait_until_prepared()
    ALONE.tell_prepared()


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Those of process 1 of 2 that nobody else belongs to."""
    for name in [name for name in os.environ if name.startswith("TORCHELASTIC")]:
        monkeypatch.delenv(name)
    for name, value in {"WORLD_SIZE": 2, "RANK": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(processes, "SOON", 0.1)


def refused(seconds: float) -> str:
    """Why the processes cannot meet."""
    with (
        pytest.raises(UserError) as error,
        joined(program="nmt-test", patience=timedelta(seconds=seconds)),
    ):
        pass
    return str(error.value)


@pytest.mark.usefixtures("variables")
def test_without_process_0_it_says_whom_it_waits_for_and_ends(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    why = refused(1.0)
    assert time.monotonic() - began < 5.0
    assert f"the other processes cannot be found at 127.0.0.1:{port} (nothing answers there after 0:00:01" in why
    said = capfd.readouterr().err
    assert said == f"nmt-test: process 1 of 2: waiting for process 0 at 127.0.0.1:{port} (WORLD_SIZE=2)\n"


@pytest.mark.usefixtures("variables")
def test_a_port_in_use(port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """It is known at once, before there is anybody to wait for."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(processes, "SOON", 5.0)
    with socket.socket() as other:
        other.bind(("0.0.0.0", port))
        other.listen()
        assert refused(5.0).startswith(f"MASTER_PORT {port} is in use on 127.0.0.1; choose another, as with torchrun")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"RANK": ""}, "WORLD_SIZE is 2, but the other processes cannot be found, since RANK is not set; start them"),
        ({"MASTER_PORT": ""}, "since MASTER_PORT is not set"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT: invalid literal for int() with base 10: 'http'"),
    ],
)
@pytest.mark.usefixtures("variables")
def test_variables_that_torchrun_does_not_set_so(
    changes: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    assert told in refused(60.0)
    assert capfd.readouterr().err == ""


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    several, cuda = Several(5, 6), "cuda"
    assert several.own_device(cuda) == "cuda:1"
    assert chosen == [torch.device("cuda", 1)]
    assert several.own_device("cpu") == "cpu"
    assert ALONE.own_device(cuda) == cuda
    too_few = "^torchrun: 3 processes on a machine with 2 GPUs; give --device cpu, or fewer$"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    with pytest.raises(UserError, match=too_few):
        several.own_device(cuda)
    monkeypatch.delenv("LOCAL_WORLD_SIZE")  # another launcher
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(UserError, match=too_few):
        several.own_device(cuda)
    monkeypatch.delenv("LOCAL_RANK")
    with pytest.raises(UserError, match=r"^LOCAL_RANK is not set: start the processes with torchrun"):
        several.own_device(cuda)


def test_one_of_them_says_what_all_would() -> None:
    store = PrefixStore("test", HashStore())
    first, second = (Several(rank, 2, store=store) for rank in range(2))
    error = UserError("one", "two")
    assert second.once(error) is error
    assert isinstance(elsewhere := first.once(error), ToldElsewhere)
    assert elsewhere.messages == error.messages
    assert ALONE.once(error) is error
