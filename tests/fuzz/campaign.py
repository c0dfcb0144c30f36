"""Cases by the hundreds: kept findings first, then what hypothesis makes; each distinct finding with a small input."""

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning

from tests.fuzz.targets import Target
from tests.fuzz.worker import Finding, Worker

CASES = Path(__file__).parent / "cases"
ROUND = 100  # cases that hypothesis makes together
LARGEST = 1 << 21  # bytes of a case; what is larger says nothing new


class Found(NamedTuple):
    """A finding and an input that shows it."""

    finding: Finding
    case: bytes


class Campaign:
    """Runs cases of one target and keeps what they find."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cases = 0
        self.found: dict[str, Found] = {}
        self._worker = Worker(target.prepare)

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    def run(self, case: bytes) -> None:
        """Run one case."""
        self.cases += 1
        finding = self._worker.run(case)
        if finding is None:
            return
        known = self.found.get(finding.signature)
        if known is None or len(case) < len(known.case):
            self.found[finding.signature] = Found(finding, case)

    def replay(self) -> None:
        """Run the cases that were findings once, and those with nothing damaged."""
        for path in kept(self.target.name):
            self.run(path.read_bytes())
        for case in self.target.whole():
            self.run(case)

    def generate(self, *, first_seed: int, go_on: Callable[[int], bool]) -> None:
        """Run what hypothesis makes, some after others, while `go_on` says so of the number that were run."""
        strategy = self.target.strategy(self.target.seeds())
        done = 0

        def one(case: bytes) -> None:
            nonlocal done
            if len(case) <= LARGEST and go_on(done):
                done += 1
                self.run(case)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisWarning)
            for number in count(first_seed):
                if not go_on(done):
                    return
                seed(number)(
                    settings(
                        max_examples=ROUND,
                        database=None,
                        deadline=None,
                        phases=[Phase.generate],
                        suppress_health_check=list(HealthCheck),
                    )(given(strategy)(one))
                )()

    def shrink(self, *, seconds: float) -> None:
        """Make the inputs of the findings smaller, as far as the time allows."""
        for signature, failure in list(self.found.items()):
            until = time.monotonic() + seconds / len(self.found)
            case, size = failure.case, max(len(failure.case) // 2, 1)
            while size and time.monotonic() < until:
                for smaller in _without(case, size):
                    if time.monotonic() > until:
                        break
                    again = self._worker.run(smaller)
                    if again is not None and again.signature == signature:
                        case = smaller
                        break
                else:
                    size //= 2
            self.found[signature] = failure._replace(case=case)


def _without(case: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(case), size):
        yield case[:start] + case[start + size :]


def kept(name: str) -> list[Path]:
    """The kept cases of a target."""
    return sorted(path for path in (CASES / name).glob("*") if not path.name.startswith("."))
