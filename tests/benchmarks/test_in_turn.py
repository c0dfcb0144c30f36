"""Commands run as processes of their own: their last line, their memory, their failures, and two of them in turn."""

import shlex
import sys
import time
from collections.abc import Sequence

import pytest

from benchmarks.in_turn import compare, own_peak_resident_mib, run_command
from nmt.errors import UserError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_last_line_counts() -> None:
    before = time.time()
    ran = run_command(python('print("first"); print(\'{"speed": 7.5, "name": "x"}\')'))
    assert ran.result == {"speed": 7.5, "name": "x"}
    assert ran.number("speed", ["x"]) == 7.5
    assert before <= ran.began <= time.time()


def test_memory_is_that_of_the_process() -> None:
    """Python itself takes some 10 MiB; this one 300 more, which a process that it starts takes."""
    hungry = 'import subprocess, sys; subprocess.run([sys.executable, "-c", "bytearray(300 * 2**20).find(1)"])'
    assert 300 < run_command(python(hungry)).peak_resident_mib < 300 + max(100, own_peak_resident_mib())


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("pass", "its last line must be"),
        ("print('words')", "its last line must be"),
        ("print('[1, 2]')", "its last line must be"),
        ("print('{\"other\": 1}')", "with speed, a number above 0"),
        ("print('{\"speed\": 0}')", "with speed, a number above 0"),
        ("print('{\"speed\": true}')", "with speed, a number above 0"),
        ("print('{\"speed\": NaN}')", "with speed, a number above 0"),
        ("raise SystemExit(3)", "ended with code 3"),
    ],
)
def test_a_command_without_the_number(code: str, message: str) -> None:
    command = python(code)
    with pytest.raises(UserError, match=message) as error:
        run_command(command).number("speed", command)
    assert shlex.join(command) in str(error.value)


def test_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    order = []
    speeds = {"ours": [3.0, 9.0, 6.0], "rival": [2.0, 1.0, 4.0]}

    def measure(command: Sequence[str]) -> float:
        order.append(command[0])
        return speeds[command[0]].pop(0)

    figures = compare(["ours", "--fast"], "rival 'two words'", runs=3, field="speed", unit="m/s", measure=measure)
    assert order == ["ours", "rival"] * 3
    assert (figures["speed"], figures["rival_speed"], figures["ratio"]) == (6.0, 2.0, 3.0)
    assert figures["runs"] == {"ours": [3.0, 9.0, 6.0], "rival": [2.0, 1.0, 4.0]}
    assert capsys.readouterr().err.splitlines()[:2] == ["ours: 3.0 m/s", "rival: 2.0 m/s"]
