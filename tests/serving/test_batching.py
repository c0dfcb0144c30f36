"""Requests that share batches: who waits for whom, in which order, and what happens to the others when one fails."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from threading import Event

import pytest

from nmt.serving import batching
from nmt.serving.batching import Batcher, QueueFull

SOON = 20.0  # seconds; a test that waits so long has failed


class Worker:
    """Writes lines in capitals, and remembers the batches; it waits before each until `go` is set, or nobody waits."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.kinds: list[str] = []
        self.alone: list[bool] = []
        self.begun = Event()
        self.go = Event()
        self.go.set()

    def __call__(self, lines: Sequence[str], kind: str, *, alone: bool, unwanted: Callable[[], bool]) -> list[str]:
        self.batches.append(list(lines))
        self.alone.append(alone)
        self.kinds.append(kind)
        self.begun.set()
        end = time.monotonic() + SOON
        while not self.go.wait(0.01):
            assert time.monotonic() < end
            if unwanted():
                raise TimeoutError
        if "bad" in lines:
            raise ValueError("bad")
        return [line.upper() for line in lines]


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def batcher(worker: Worker) -> Iterator[Batcher[str, str]]:
    """Batches of 12 characters, line ends counted, and a queue of 3 requests."""
    made = Batcher(worker, wait=0.0, most_characters=12, most_waiting=3)
    yield made
    worker.go.set()
    made.close()


def held(worker: Worker, batcher: Batcher[str, str]) -> None:
    """Occupy the thread until `worker.go`."""
    worker.go.clear()
    batcher.submit(["first"], "a")
    assert worker.begun.wait(SOON)


def begun(worker: Worker, batches: int) -> None:
    """Wait until so many batches have."""
    end = time.monotonic() + SOON
    while len(worker.batches) < batches:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_answers_have_the_order_of_their_lines(batcher: Batcher[str, str]) -> None:
    assert batcher.submit(["x", "yy", "", "zzz"], "a").result(SOON) == ["X", "YY", "", "ZZZ"]


def test_what_waits_is_translated_together(worker: Worker, batcher: Batcher[str, str]) -> None:
    held(worker, batcher)
    futures = [batcher.submit(lines, "a") for lines in (["x"], ["y", "z"], ["w"])]
    worker.go.set()
    assert [future.result(SOON) for future in futures] == [["X"], ["Y", "Z"], ["W"]]
    assert worker.batches == [["first"], ["x", "y", "w", "z"]]  # a line of each request in turn


def test_a_long_request_does_not_hold_up_short_ones(worker: Worker, batcher: Batcher[str, str]) -> None:
    """Five characters and a line end: two lines fill a batch."""
    held(worker, batcher)
    long = batcher.submit(["aaaaa", "bbbbb", "ccccc", "ddddd"], "a")
    short = batcher.submit(["eeeee"], "a")
    other = batcher.submit(["fffff"], "b")
    worker.go.set()
    assert long.result(SOON) == ["AAAAA", "BBBBB", "CCCCC", "DDDDD"]
    assert short.result(SOON) == ["EEEEE"]
    assert other.result(SOON) == ["FFFFF"]
    assert worker.batches == [["first"], ["aaaaa", "eeeee"], ["fffff"], ["bbbbb", "ccccc"], ["ddddd"]]
    assert worker.kinds == ["a", "a", "b", "a", "a"]


def test_a_line_longer_than_a_batch_goes_alone(worker: Worker, batcher: Batcher[str, str]) -> None:
    assert batcher.submit(["x" * 99, "y"], "a").result(SOON) == ["X" * 99, "Y"]
    assert list(map(len, worker.batches)) == [1, 1]


def test_few_lines_wait_for_others(worker: Worker) -> None:
    batcher = Batcher(worker, wait=0.2, most_characters=4, most_waiting=9)
    began = time.monotonic()
    one, other = batcher.submit(["x"], "a"), batcher.submit(["y"], "a")
    assert one.result(SOON) + other.result(SOON) == ["X", "Y"]
    assert worker.batches == [["x", "y"]]
    assert time.monotonic() - began >= 0.2
    batcher.close()


def test_those_that_were_just_answered_may_ask_again(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """After three lines that took half a second, three are waited for, for as long as this test lasts at most."""
    monkeypatch.setattr(batching, "AGAIN", SOON)
    monkeypatch.setattr(batching, "LONGEST", SOON)
    batcher = Batcher(worker, wait=0.0, most_characters=99, most_waiting=9)
    worker.go.clear()
    first = batcher.submit(["x", "y", "z"], "a")
    assert worker.begun.wait(SOON)
    time.sleep(0.5)
    worker.go.set()
    first.result(SOON)
    one = batcher.submit(["x"], "a")
    time.sleep(0.1)
    other = batcher.submit(["y", "z"], "a")
    began = time.monotonic()
    assert one.result(SOON) + other.result(SOON) == ["X", "Y", "Z"]
    assert time.monotonic() - began < SOON / 4  # not to the end of the time
    assert worker.batches == [["x", "y", "z"], ["x", "y", "z"]]
    batcher.close()


def test_after_a_long_batch_others_are_not_waited_for_long(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "AGAIN", 99.0)
    batcher = Batcher(worker, wait=0.0, most_characters=99, most_waiting=9)
    worker.go.clear()
    first = batcher.submit(["x", "y", "z"], "a")
    assert worker.begun.wait(SOON)
    time.sleep(0.3)
    worker.go.set()
    first.result(SOON)
    began = time.monotonic()
    assert batcher.submit(["x"], "a").result(SOON) == ["X"]
    assert time.monotonic() - began < SOON
    batcher.close()


def test_a_full_batch_does_not_wait(worker: Worker) -> None:
    batcher = Batcher(worker, wait=2 * SOON, most_characters=4, most_waiting=9)
    assert batcher.submit(["xxxx"], "a").result(SOON) == ["XXXX"]
    batcher.close()


def test_a_full_queue_refuses(worker: Worker, batcher: Batcher[str, str]) -> None:
    held(worker, batcher)
    futures = [batcher.submit([str(number)], "a") for number in range(3)]
    assert batcher.waiting == 3
    with pytest.raises(QueueFull):
        batcher.submit(["more"], "a")
    futures[1].cancel()
    assert batcher.waiting == 2
    futures.append(batcher.submit(["more"], "a"))
    worker.go.set()
    assert [future.result(SOON) for future in futures if not future.cancelled()] == [["0"], ["2"], ["MORE"]]
    assert ["1"] not in worker.batches


def test_a_request_that_is_cancelled_meanwhile_is_not_answered(worker: Worker, batcher: Batcher[str, str]) -> None:
    worker.go.clear()
    future = batcher.submit(["aaaaaaaaaaaaa", "bbbbbbbbbbbbb"], "a")
    assert worker.begun.wait(SOON)
    assert future.cancel()
    worker.go.set()
    with pytest.raises(CancelledError):
        future.result(SOON)
    assert batcher.submit(["x"], "a").result(SOON) == ["X"]
    assert worker.batches == [["aaaaaaaaaaaaa"], ["x"]]


def test_a_batch_for_which_nobody_waits_any_more_ends(worker: Worker, batcher: Batcher[str, str]) -> None:
    """The second has two requests, of which one alone that is cancelled does not end it."""
    worker.go.clear()
    first = batcher.submit(["first"], "a")
    assert worker.begun.wait(SOON)
    cancelled = [batcher.submit([line], "a") for line in ("x", "y")]
    assert first.cancel()
    begun(worker, 2)
    last = batcher.submit(["last"], "a")
    assert cancelled[0].cancel()
    time.sleep(0.1)
    assert len(worker.batches) == 2
    assert cancelled[1].cancel()
    begun(worker, 3)
    worker.go.set()
    assert last.result(SOON) == ["LAST"]
    assert worker.batches == [["first"], ["x", "y"], ["last"]]


def test_one_that_fails_does_not_ruin_the_others(worker: Worker, batcher: Batcher[str, str]) -> None:
    held(worker, batcher)
    futures = [batcher.submit(lines, "a") for lines in (["x"], ["bad", "y", "zzzzzzzzzzzz"], ["w"])]
    worker.go.set()
    assert futures[0].result(SOON) == ["X"]
    assert futures[2].result(SOON) == ["W"]
    with pytest.raises(ValueError, match="bad"):
        futures[1].result(SOON)
    assert batcher.submit(["v"], "a").result(SOON) == ["V"]
    assert ["zzzzzzzzzzzz"] not in worker.batches


def test_an_error_is_let_go_of_before_its_requests_are_tried_one_by_one() -> None:
    """Its traceback holds what the batch was computed with, which may be what there was no memory for."""
    handled: list[BaseException | None] = []

    def translate(lines: Sequence[str], kind: str, *, alone: bool, unwanted: Callable[[], bool]) -> list[str]:
        handled.append(sys.exc_info()[1])
        if len(lines) > 1:
            raise MemoryError
        return list(lines)

    batcher = Batcher(translate, wait=2 * SOON, most_characters=12, most_waiting=9)
    futures = [batcher.submit([line], "a") for line in "xy"]
    batcher.close()
    assert [future.result(0) for future in futures] == [["x"], ["y"]]
    assert handled == [None, None, None]


def test_closing_answers_what_is_held(worker: Worker) -> None:
    batcher = Batcher(worker, wait=2 * SOON, most_characters=12, most_waiting=9)
    futures = [batcher.submit([str(number)], "a") for number in range(5)]
    batcher.close()
    assert [future.result(0) for future in futures] == [[str(number)] for number in range(5)]
    with pytest.raises(QueueFull):
        batcher.submit(["more"], "a")


def test_two_threads_share_what_waits(worker: Worker) -> None:
    """Of 20 lines either takes ten. What comes alone is told so."""
    batcher = Batcher(worker, wait=0.5, most_characters=99, most_waiting=99, workers=2)
    worker.go.clear()
    futures = [batcher.submit([str(number)], "a") for number in range(20)]
    begun(worker, 2)
    worker.go.set()
    assert [future.result(SOON) for future in futures] == [[str(number)] for number in range(20)]
    assert sorted(map(len, worker.batches)) == [10, 10]
    assert worker.alone == [False, False]
    assert batcher.submit(["x", "y"], "a").result(SOON) == ["X", "Y"]
    assert worker.alone == [False, False, True]
    batcher.close()


def test_two_threads_share_one_request(worker: Worker) -> None:
    batcher = Batcher(worker, wait=0.0, most_characters=4, most_waiting=9, workers=2)
    worker.go.clear()
    long = batcher.submit(["aaaa", "bbbb", "cccc", "dddd"], "a")
    begun(worker, 2)
    assert sorted(worker.batches) == [["aaaa"], ["bbbb"]]
    worker.go.set()
    assert long.result(SOON) == ["AAAA", "BBBB", "CCCC", "DDDD"]
    batcher.close()


def test_a_request_of_which_two_threads_fail(worker: Worker) -> None:
    batcher = Batcher(worker, wait=0.0, most_characters=3, most_waiting=9, workers=2)
    for _ in range(5):
        with pytest.raises(ValueError, match="bad"):
            batcher.submit(["bad", "bad", "bad", "bad"], "a").result(SOON)
    assert batcher.submit(["x"], "a").result(SOON) == ["X"]
    batcher.close()
