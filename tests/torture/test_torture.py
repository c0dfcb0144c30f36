"""The short form of the matrix, and whether the matrix would see what it looks for."""

import importlib
import json
import operator
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.torture.commands import HANGING, Ended
from tests.torture.damage import damage
from tests.torture.moments import CALLS, TRAINING, moments
from tests.torture.operations import Operation
from tests.torture.outcomes import mistake, says, unexpected
from tests.torture.table import Result, markdown, short, table


def ended(code: int, errors: str = "") -> Ended:
    return Ended(code, errors, [])


def test_one_message_is_clear_and_no_traceback() -> None:
    good = "nmt-train: error: run/state.safetensors: damaged\n"
    assert mistake(ended(2, good)) == ""
    assert mistake(ended(2, "nmt-train: 2 problems:\n  - a: b\n  - c: d\n")) == ""
    assert "2 messages" in mistake(ended(2, good + good))
    assert "0 messages" in mistake(ended(2, "damaged\n"))
    assert "exit code 1" in mistake(ended(1, good))
    assert "a traceback: KeyError: 3" in mistake(ended(2, "Traceback (most recent call last):\n  …\nKeyError: 3\n"))
    assert mistake(ended(HANGING)) == "does not end"


def test_what_is_struck_ends_as_expected() -> None:
    assert unexpected(ended(-9), (-9,)) == ""
    assert unexpected(ended(0), (2, 0)) == ""
    assert unexpected(ended(2, "nmt-train: error: a: b"), (2, 0)) == ""
    assert "exit code 1" in unexpected(ended(1), (2, 0))
    assert unexpected(ended(0), (-9,)) == "exit code 0: nothing is said"
    assert "a traceback" in unexpected(ended(0, "Traceback (most recent call last):\nOSError"), (0,))


def test_a_warning_names_its_file() -> None:
    assert says(ended(0, "run/best.safetensors: damaged since it was written"), ["best.safetensors"])
    assert not says(ended(0, "finished; the best model is run/best.safetensors"), ["best.safetensors"])


@pytest.mark.parametrize("kind", ["one bit flipped", "truncated", "a block of zeros", "deleted"])
def test_damage_changes_a_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    content = bytes(range(1, 255))
    path.write_bytes(content)
    damage(path, kind, random.Random(3))
    left = path.read_bytes() if path.exists() else b""
    assert left != content
    if kind == "one bit flipped":
        assert sum((old ^ new).bit_count() for old, new in zip(content, left, strict=True)) == 1


def test_moments_are_told_by_the_names_of_files(tmp_path: Path) -> None:
    names = [
        "run/.lock",
        ".cache/ids/ab.partial/source.values",
        "run/state.safetensors.7.partial",
        "run/best.safetensors",
    ]
    operations = [Operation("write", str(tmp_path / name)) for name in names]
    operations.insert(3, Operation("fsync", str(tmp_path)))  # of the folder, after the state
    assert moments("training", operations) == {
        "opening the folder": [1],
        "binarizing": [2],
        "the state's write": [3, 4],
        "best's write": [5],
    }


def test_the_functions_before_whose_calls_a_fault_strikes_are_there() -> None:
    for target, _ in CALLS.values():
        module, _, name = target.partition(":")
        assert callable(operator.attrgetter(name)(importlib.import_module(module))), target


def test_the_table_adds_up() -> None:
    outcomes = ["same", "same", "told", "silent", "skipped"]
    results = [Result("kills", "kill", "here", number, outcome, "", 1.0) for number, outcome in enumerate(outcomes)]
    lines = table([*results, Result("kills", "kill", "there", 0, "lost", "", 1.0)])
    assert [result.is_bad for result in results] == [False, False, False, True, False]
    assert "| kill | here | 4 | 2 | 1 |  | 1 |" in markdown(lines)
    assert "| all |  | 5 | 2 | 1 | 1 | 1 |" in markdown(lines)
    assert "| kill | 2 moments | 5 | 2 | 1 | 1 | 1 |" in markdown(short(lines))


@pytest.mark.slow
def test_the_short_form(tmp_path: Path) -> None:
    """The first rows of each group, a kill of a training among them; `make torture` tries all of them, many times."""
    counts = {"kills": 3, "flips": 1, "others": 1}
    words = [word for group, count in counts.items() for word in (f"--{group}", str(count))]
    command = [sys.executable, "-m", "tests.torture", "--output", tmp_path, "--processes", "1", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    lines = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert sum(line["trials"] + line["skipped"] for line in lines) == sum(counts.values())
    assert TRAINING.keys() & {line["moment"] for line in lines}
