"""Interrupted anywhere and resumed, a run ends with the weights, metrics and files of an uninterrupted one."""

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import yaml

from nmt.errors import UserError
from nmt.training.states import read_state
from tests.end_to_end.conftest import STATES, assert_same, finish, settings
from tests.end_to_end.forked import Forked, arguments
from tests.end_to_end.interrupted import signal_in_update

Command = Callable[..., list[str]]
KILLS = 4  # after the first save

pytestmark = pytest.mark.slow


def start(config: Path, output: Path, *more: str) -> Forked:
    return Forked("train", *arguments(config, output), *more)


def start_afresh(command: Command, config: Path, output: Path) -> "subprocess.Popen[str]":
    """As a user starts it; what is compared with such a run was not made with its hash seed."""
    words = command("train", *arguments(config, output))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, corpus: Path, command: Command) -> tuple[Path, Path]:
    """The configuration and the folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    config = folder / "tiny.yaml"
    shorter = settings(corpus)
    shorter["training"] |= {"max_epochs": 3, "validate_every": "12 updates"}
    config.write_text(yaml.safe_dump(shorter), encoding="utf-8")
    code, errors = finish(start_afresh(command, config, folder / "run"))
    assert code == 0, errors
    return config, folder / "run"


def wait_until(holds: Callable[[], bool], process: Forked) -> None:
    """Wait until it holds, at most two minutes, or the process has ended."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not holds():
        time.sleep(0.01)


def saved_update(output: Path) -> int:
    """The update of the saved state, or, between the renamings of a save, of the one before it; 0 if there is none."""
    for name in STATES:
        with suppress(UserError):
            return int(read_state(output / name).numbers["progress"]["update"])
    return 0


def has_saved(output: Path, least: int) -> bool:
    return saved_update(output) >= least


def test_kill_9_at_random_moments(whole: tuple[Path, Path], tmp_path: Path) -> None:
    """Once before the first update, in an empty folder or while the corpus is prepared, and then after each has saved
    further updates."""
    config, reference = whole
    output = tmp_path / "run"
    moments = random.Random(20)
    for kill in range(1 + KILLS):
        least = saved_update(output) + 1 if kill else 0
        process = start(config, output, "--resume")
        wait_until(partial(has_saved, output, least), process)
        time.sleep(moments.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        code, errors = process.finish()
        assert code == -signal.SIGKILL, f"the run ended before it could be killed {KILLS} times: {errors}"
    code, errors = start(config, output, "--resume").finish()
    assert code == 0, errors
    log = (output / "train.log").read_text(encoding="utf-8")
    resumed = [int(update) for update in re.findall(r"resuming after update (\d+)", log)]
    assert len(resumed) >= KILLS
    assert resumed == sorted(set(resumed))
    assert_same(reference, output)


def test_signals_save_before_they_leave(whole: tuple[Path, Path], tmp_path: Path) -> None:
    """Each strikes the run that goes on from what the one before has saved, within an update that is saved for it."""
    config, reference = whole
    output, saved = tmp_path / "run", 0
    strikes = [(signal.SIGTERM, 143, 4), (signal.SIGINT, 130, 20), (signal.SIGHUP, 129, 35)]
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # these tests run under nohup
        del strikes[2]
    for number, expected, update in strikes:
        before = partial(signal_in_update, update - saved, number)
        code, errors = Forked("train", *arguments(config, output), "--resume", before=before).finish()
        assert code == expected, errors
        assert "the state is saved, continue with --resume" in errors
        assert (f"resuming after update {saved}" in errors) == (saved > 0)
        saved = saved_update(output)
        assert saved == update
    code, errors = start(config, output, "--resume").finish()
    assert code == 0, errors
    assert f"resuming after update {saved}" in errors
    assert_same(reference, output)


def test_a_finished_run_stays_finished(whole: tuple[Path, Path]) -> None:
    config, output = whole
    before = (output / "state.safetensors").read_bytes()
    code, errors = start(config, output, "--resume").finish()
    assert code == 0
    assert "finished: 3 epochs" in errors
    assert (output / "state.safetensors").read_bytes() == before
