"""How processes find each other: who is waited for is told, and what cannot be is a mistake that is named."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.jobs import torchrun

Variables = dict[str, str]


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
    monkeypatch.setattr(torchrun, "SOON", 0.1)


def meet(seconds: float) -> None:
    torchrun.meet("test", program="nmt-test", patience=timedelta(seconds=seconds))


@pytest.mark.usefixtures("variables")
def test_without_process_0_it_says_whom_it_waits_for_and_ends(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with pytest.raises(UserError) as error:
        meet(1.0)
    assert time.monotonic() - began < 5.0
    assert f"the other processes cannot be found at 127.0.0.1:{port} (nothing answers there after 0:00:01" in str(error)
    assert "start them with torchrun, or unset WORLD_SIZE" in str(error)
    said = capfd.readouterr().err
    assert said == f"nmt-test: process 1 of 2: waiting for process 0 at 127.0.0.1:{port} (WORLD_SIZE=2)\n"


@pytest.mark.slow
@pytest.mark.usefixtures("variables")
def test_process_0_says_that_it_waits_for_the_others(
    port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(UserError, match="1/2 clients joined"):
        meet(1.0)
    said = capfd.readouterr().err
    assert said == f"nmt-test: process 0 of 2: waiting for the others at 127.0.0.1:{port} (WORLD_SIZE=2)\n"


@pytest.mark.usefixtures("variables")
def test_a_port_in_use(port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """It is known at once, before there is anybody to wait for."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(torchrun, "SOON", 5.0)
    with socket.socket() as other:
        other.bind(("0.0.0.0", port))
        other.listen()
        with pytest.raises(UserError) as error:
            meet(5.0)
    (message,) = error.value.messages
    assert message.startswith(f"MASTER_PORT {port} is in use on 127.0.0.1; choose another, as with torchrun --master")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"RANK": ""}, "WORLD_SIZE is 2, but the other processes cannot be found, since RANK is not set; start them"),
        ({"MASTER_PORT": ""}, "since MASTER_PORT is not set"),
        ({"RANK": "2"}, "RANK is 2 and WORLD_SIZE is 2: ranks go from 0 to 1, as torchrun sets them"),
        ({"RANK": "-1"}, "RANK is -1 and WORLD_SIZE is 2"),
        ({"RANK": "one"}, "RANK is one: must be a whole number"),
        ({"RANK": "1" * 5000}, "1: must be a whole number"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT is 99999: must be from 1 to 65535"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is 0: must be from 1 to 65,536"),
        ({"WORLD_SIZE": "1000000000000"}, "WORLD_SIZE is 1000000000000: must be from 1 to"),
    ],
)
@pytest.mark.usefixtures("variables")
def test_variables_that_torchrun_does_not_set_so(
    changes: Variables, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as error:
        meet(60.0)
    assert told in str(error)
    assert capfd.readouterr().err == ""


def test_a_job_is_one_start_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one may have the same name, and in a container the same process number, but began at another time."""
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert torchrun.job() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "100")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    first = torchrun.job()
    assert first is not None
    assert first.startswith(f"100 {os.getppid()}")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert torchrun.job() == first
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as later:
        started = torchrun._since(later.pid)
        assert later.stdin is not None
        later.stdin.close()
    if not Path("/proc/self/stat").exists():
        assert started == ""
        return
    assert first == f"100 {os.getppid()}{torchrun._since(os.getppid())}"
    assert started.split()[1:] == first.split()[3:]  # the same start of the machine
    assert int(started.split()[0]) > int(first.split()[2])
    assert torchrun._since(later.pid) == ""  # there is none any more
