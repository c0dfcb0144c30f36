"""Running benchmarks in separate processes: what they print, how much memory they take, and a rival in turn with ours.

Machines are shared and noisy, so two programs are compared only by their medians, running in turn on one machine. This
module knows commands and numbers, and does not import PyTorch: Linux counts the memory of a starting process toward the
peak of the process it starts, so it has to be small.
"""

import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.reference_task import positive
from nmt.errors import UserError

MEBIBYTE = 1 << 20
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in the system's unit of resident memory


class Ran(NamedTuple):
    """The outcome of a command."""

    result: dict[str, Any]  # the JSON object in its last line; empty if there is none
    peak_resident_mib: float  # the most memory that it, or any single process it started, held
    began: float  # seconds since 1970

    def number(self, field: str, command: Sequence[str]) -> float:
        """A positive number in the result. Raises UserError when there is none."""
        value = self.result.get(field)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise UserError(
                f"{shlex.join(command)}: its last line must be a JSON object with {field}, a number above 0"
            )
        return float(value)


def run_command(command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Ran:
    """Run a command to its end; its stderr goes to ours.

    Raises UserError when it cannot be started or does not end with code 0.
    """
    began = time.time()
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
    except OSError as error:
        raise UserError(f"{shlex.join(command)}: cannot be started ({error.strerror})") from None
    with process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UserError(f"{shlex.join(command)}: ended with code {process.returncode}")
    return Ran(_object(lines[-1] if lines else ""), usage.ru_maxrss * _UNIT / MEBIBYTE, began)


def own_peak_resident_mib() -> float:
    """The most memory that this process has held so far."""
    import resource  # here because Windows has none

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / MEBIBYTE


def add_rival_options(parser: argparse.ArgumentParser, *, prints: str, runs: int) -> None:
    """Add --against and --runs."""
    group = parser.add_argument_group("a rival")
    group.add_argument("--against", metavar="COMMAND", help=f"another program to run in turn with this one; {prints}")
    group.add_argument("--runs", type=positive, default=runs, help=f"runs of each, with --against (default: {runs})")


def compare(
    ours: Sequence[str], rival: str, *, runs: int, field: str, unit: str, measure: Callable[[Sequence[str]], float]
) -> dict[str, Any]:
    """Run both commands in turn, `runs` times each; returns the medians of `measure` under `field`, and their ratio.

    Raises UserError when one of them fails.
    """
    try:
        rival_command = shlex.split(rival)
    except ValueError as error:
        raise UserError(f"--against {rival}: not a command line ({error})") from None
    if not rival_command:
        raise UserError("--against: the command is empty")
    values: dict[str, list[float]] = {"ours": [], "rival": []}
    for _ in range(runs):
        for name, command in (("ours", ours), ("rival", rival_command)):
            values[name].append(measure(command))
            print(f"{name}: {values[name][-1]:,.1f} {unit}", file=sys.stderr)
    medians = {name: statistics.median(measured) for name, measured in values.items()}
    return {
        field: medians["ours"],
        f"rival_{field}": medians["rival"],
        "ratio": round(medians["ours"] / medians["rival"], 3),
        "runs": values,
    }


def _object(line: str) -> dict[str, Any]:
    try:
        result = json.loads(line)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
