"""What processes tell one another: as JSON and bytes, never as pickle."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli.train import rank_timeout
from nmt.errors import UserError
from nmt.training.distributed import ALONE

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

from nmt.training.distributed import Processes

rank, place = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
processes = Processes(rank, 2, torch.device("cpu"))
values = json.loads(sys.argv[3])
torch.manual_seed(rank)
found = processes.gather(values[rank])
states = processes.gather_states({"cpu": torch.get_rng_state()})
expected = [torch.manual_seed(each).get_state() for each in range(2)]
processes.check_same("number", "1")
same = [torch.equal(each["cpu"], state) for each, state in zip(states, expected)]
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
    (states,) = ALONE.gather_states({"cpu": torch.get_rng_state()})
    assert torch.equal(states["cpu"], torch.get_rng_state())
    assert states["cpu"].dtype == torch.uint8
    ALONE.wait_until_prepared()
    ALONE.tell_prepared()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e400", "ten", "", "9" * 5000, "1_0", "\u0663", " 5"])
def test_a_time_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--rank-timeout .{0,40}: allowed: a number of minutes, at least 0.1 and at"):
        rank_timeout(text)


def test_minutes_may_have_a_fraction() -> None:
    assert rank_timeout("0.5").total_seconds() == 30
