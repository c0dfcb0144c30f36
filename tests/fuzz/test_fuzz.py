"""The short form of fuzzing: every finding that was kept and, in the slow tests, some seconds of seeded cases a reader.

The long form is `make fuzz`; what it finds it leaves in `cases`, from where it comes here.
"""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign
from tests.fuzz.sealed import put_together, taken_apart
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import OneCase, Worker


@pytest.fixture(scope="module", params=TARGETS)
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """Of each reader one, in whose process both of the next tests run their cases."""
    with Campaign(TARGETS[request.param]) as campaign:
        yield campaign


def test_what_was_found_once_is_no_finding_any_more(campaign: Campaign) -> None:
    campaign.replay()
    assert_nothing_found(campaign)


@pytest.mark.slow
def test_a_reader_takes_its_input_or_refuses_it_with_our_own_error_within_bounds_of_time_and_memory(
    campaign: Campaign,
) -> None:
    campaign.generate(first_seed=0, go_on=lambda done: done < campaign.target.short)
    assert_nothing_found(campaign)


def assert_nothing_found(campaign: Campaign) -> None:
    shown = [
        f"{signature}\n{failure.case[:300]!r}\n{failure.finding.detail}"
        for signature, failure in campaign.found.items()
    ]
    assert not shown, "\n\n".join([f"{len(shown)} findings in {campaign.cases} cases", *shown])


@pytest.mark.parametrize("name", ["model", "shortlist"])
def test_a_file_of_tensors_put_together_again_is_the_file_that_was_taken_apart(name: str, tmp_path: Path) -> None:
    (seed,) = TARGETS[name].seeds()
    again = put_together(taken_apart(seed))
    assert taken_apart(again) == taken_apart(seed)
    with Worker(TARGETS[name].prepare) as worker:
        assert worker.run(again) is None
    parts = taken_apart(seed)
    assert put_together(parts._replace(texts={**parts.texts, "kind": "other"})) != again


def _harm(folder: Path, *, what: bytes) -> OneCase:
    def one_case(case: bytes) -> None:
        if case != what:
            return
        if case == b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if case == b"leave":
            os._exit(3)
        if case == b"large":
            bytearray(3 << 30)
        while case == b"slow":
            pass
        if case == b"error":
            raise KeyError(case)

    return one_case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "signature"),
    [
        (b"crash", "crash: SIGSEGV"),
        (b"leave", "the process ended with code 3"),
        (b"slow", "too slow: more than 2 s"),
        (b"large", "too large: "),
        (b"error", "KeyError"),
    ],
)
def test_whatever_a_case_does_to_its_process_is_found_and_the_next_case_runs(what: bytes, signature: str) -> None:
    with Worker(partial(_harm, what=what)) as worker:
        assert worker.run(b"harmless") is None
        finding = worker.run(what)
        assert finding is not None
        assert finding.signature.startswith(signature)
        assert worker.run(b"harmless") is None
