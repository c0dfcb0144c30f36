"""A run that dies before its n-th file operation, for a spread of n, and signals within validation and averaging.

Where test_resume.py kills at random moments of time, here the moments are those that matter: between any two changes on
the disk.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conftest import data_section, write_pairs
from tests.end_to_end.conftest import assert_same
from tests.end_to_end.forked import Forked, arguments
from tests.end_to_end.interrupted import DIED, die_at, wait_in_validation

pytestmark = pytest.mark.slow
NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "bird": "Vogel"}
VALIDATIONS = 3  # of the run below, that of the average counted
EVERY = int(os.environ.get("NMT_PROOF_EVERY", 37))  # file operations; 1 tries all of them, in many minutes


class Answer(NamedTuple):
    code: int
    errors: str


def trained(config: Path, output: Path, *more: str, before: Callable[[], object] | None = None) -> Answer:
    return Answer(*Forked("train", *arguments(config, output), *more, before=before).finish())


def killed(config: Path, output: Path, *more: str, at: int) -> Answer:
    """Train until that file operation; of a write half is done."""
    return trained(config, output, *more, before=partial(die_at, at, output.parent / "operations"))


def signalled(
    config: Path, output: Path, *, validation: int, signals: Sequence[signal.Signals], pause: float = 0.0
) -> Answer:
    """Train until within that validation, and send the signals."""
    told, telling = Pipe(duplex=False)
    process = Forked("train", *arguments(config, output), before=partial(wait_in_validation, validation, telling))
    telling.close()
    with told, suppress(EOFError):  # it has ended before
        assert told.recv_bytes() == b"here"
        for number in signals:
            process.send_signal(number)
            time.sleep(pause)
    return Answer(*process.finish())


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6 updates, a validation every 3, a saved state every 2, and the average of the best two checkpoints."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = [
        (f"the {one} sees the {two}", f"der {NOUNS[one]} sieht den {NOUNS[two]}") for one in NOUNS for two in NOUNS
    ]
    write_pairs(folder, train=pairs[:12], valid=pairs[12:])
    settings: dict[str, Any] = {
        "name": "smallest",
        "data": data_section(folder),
        "subwords": {"size": 40, "sampling": {"alpha": 0.1}},
        "model": {"embedding_size": 5, "encoder": {"hidden_size": 3, "dropout": 0.2}, "decoder": {"hidden_size": 7}},
        "training": {
            "schedule": {"name": "plateau", "metric": "loss", "patience": 0},
            "batch_size": 4,
            "max_updates": 6,
            "validate_every": "3 updates",
            "save_every": "2 updates",
            "keep_best": 2,
            "average_best": 2,
            "log_every": 2,
        },
        "decoding": {"beam_size": 2, "max_length_ratio": 0.5, "max_length_extra": 2},  # such models find no end
    }
    path = folder / "smallest.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, config: Path) -> tuple[Path, int]:
    """The folder of a run that nothing interrupted, and its number of file operations."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    counted = tmp_path_factory.mktemp("counted") / "operations"
    answer = trained(config, folder, before=partial(die_at, None, counted))
    assert answer.code == 0, answer.errors
    return folder, int(counted.read_text(encoding="ascii"))


def test_death_before_a_file_operation(whole: tuple[Path, int], tmp_path: Path, config: Path) -> None:
    """The run and the cache it makes survive; so does every second one that is killed again while it is resumed."""
    reference, operations = whole
    assert operations > 150
    resumed = 0
    for number in range(1, operations + 1, EVERY):
        output = tmp_path / str(number) / "run"
        output.parent.mkdir()
        assert killed(config, output, at=number).code == DIED
        if number % 2:
            again = killed(config, output, "--resume", at=number % 59 + 1)
            assert again.code in (0, DIED), again.errors
        last = trained(config, output, "--resume")
        resumed += "resuming after update" in last.errors
        assert last.code == 0, f"after a death before file operation {number}: {last.errors}"
        assert_same(reference, output)
        assert list(output.rglob("*.partial")) == []
    assert resumed > operations // EVERY // 3  # the others died before the first state was saved


@pytest.mark.parametrize(
    ("validation", "number", "code"),
    [(1, signal.SIGINT, 130), (VALIDATIONS, signal.SIGTERM, 143)],
)
def test_a_signal_within_validation_or_averaging(
    whole: tuple[Path, int],
    tmp_path: Path,
    config: Path,
    validation: int,
    number: signal.Signals,
    code: int,
) -> None:
    """The last validation is that of the average."""
    reference, _ = whole
    answer = signalled(config, tmp_path / "run", validation=validation, signals=[number])
    assert answer.code == code, answer.errors
    assert f"stopped by {number.name}; the state is saved, continue with --resume" in answer.errors
    assert "average of 2 checkpoints" not in answer.errors
    last = trained(config, tmp_path / "run", "--resume")
    assert last.code == 0, last.errors
    assert_same(reference, tmp_path / "run")


INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("signals", "pause"),
    [
        ([INT, INT, INT, INT], 0.0),
        ([TERM, TERM, INT, INT], 0.02),
    ],
)
def test_several_signals_within_validation(
    whole: tuple[Path, int], tmp_path: Path, config: Path, signals: list[signal.Signals], pause: float
) -> None:
    """One line says that the run ends, whichever of them it answers; and it goes on from what was saved."""
    answer = signalled(config, tmp_path / "run", validation=1, signals=signals, pause=pause)
    assert answer.code in (128 + INT, 128 + TERM), answer.errors
    assert "Traceback" not in answer.errors
    said = [line for line in answer.errors.splitlines() if "stopped by" in line or line.startswith("nmt-train:")]
    assert len(said) == 1, answer.errors
    last = trained(config, tmp_path / "run", "--resume")
    assert last.code == 0, last.errors
    assert_same(whole[0], tmp_path / "run")
