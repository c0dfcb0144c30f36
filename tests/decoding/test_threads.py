"""Several batches at once: what they find, in which order, and what is left when one fails."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError

import pytest
import torch

from nmt.data.subwords import Vocabularies
from nmt.decoding.scorer import Scorer
from nmt.decoding.threads import MOST, check, number, side_by_side, until
from nmt.ops.computing import computing, now
from tests.batch_sizes import sentences
from tests.decoding.conftest import random_translator
from tests.translating import translate


def until_told() -> None:
    """Work for a minute, or until it is told that it is not wanted any more."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        check()


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (3, 3), (9, MOST)])
def test_as_many_at_once_as_there_are_threads(count: int, expected: int, threads: Callable[[int], None]) -> None:
    """All wait for each other, so the test ends only if they do run at once."""
    threads(count)
    barrier, scorer = threading.Barrier(expected, timeout=60), Scorer([torch.nn.Linear(1, 1)])

    def work(item: int) -> tuple[int, int]:
        barrier.wait()
        with scorer.inference():
            assert torch.get_num_threads() == number()
        return item, number()

    items = list(range(2 * expected))
    with scorer.inference():
        assert side_by_side(work, items) == [(item, count // expected) for item in items]
    assert torch.get_num_threads() == number() == count


def test_threads_compute_as_their_caller_does(threads: Callable[[int], None]) -> None:
    threads(2)

    with computing(fused=False, precision=torch.bfloat16):
        assert side_by_side(lambda _: now(), [0, 1]) == [now()] * 2
    assert side_by_side(lambda _: now(), [0, 1]) == [now()] * 2


def test_what_one_raises_is_raised_and_what_has_not_begun_is_left(threads: Callable[[int], None]) -> None:
    threads(2)
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError("the first one fails")
        until_told()

    with pytest.raises(ValueError, match="the first one fails"):
        side_by_side(work, list(range(20)))
    assert len(begun) <= 3
    assert torch.get_num_threads() == 2


def test_an_interruption_ends_what_is_running(threads: Callable[[int], None]) -> None:
    threads(2)
    running, waiting = threading.Barrier(2, timeout=60), threading.main_thread().ident
    assert waiting is not None

    def work(item: int) -> None:
        if running.wait() == 0:
            time.sleep(0.1)  # until that thread waits: a moment before, the signal would be seen only after the wait
            signal.pthread_kill(waiting, signal.SIGINT)  # as a terminal does: it wakes the thread that waits
        until_told()

    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(work, [0, 1])
    finally:
        signal.signal(signal.SIGINT, former)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("count", [1, 2])
def test_what_nobody_wants_any_more_ends(count: int, threads: Callable[[int], None]) -> None:
    """Whoever computes, and in all threads; without it nothing has changed."""
    threads(count)
    unwanted = threading.Event()
    running = threading.Barrier(count, action=unwanted.set, timeout=60)

    def work(item: int) -> None:
        running.wait()
        until_told()

    with until(unwanted.is_set), pytest.raises(CancelledError):
        side_by_side(work, list(range(count)))
    check()
    with until(lambda: False):
        assert side_by_side(lambda item: check(), [0, 1]) == [None, None]


def test_calls_within_a_call_compute_one_after_the_other(threads: Callable[[int], None]) -> None:
    threads(4)
    outer = threading.Barrier(2, timeout=60)

    def inner(item: int) -> str:
        return threading.current_thread().name

    def work(item: int) -> list[str]:
        outer.wait()
        return side_by_side(inner, [0, 1, 2])

    names = side_by_side(work, [0, 1])
    assert [len(set(inner_names)) for inner_names in names] == [1, 1]
    assert torch.get_num_threads() == 4
    assert len(set(side_by_side(work, [0, 1])[0])) == 1  # and it is free again


def test_translations_do_not_depend_on_the_threads(
    vocabularies: Vocabularies, threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator, lines = random_translator(vocabularies, scale=3.0, longest_segment=60), sentences(15)
    (model,) = translator.models
    model.float()
    runs = []
    for count, most in ((1, 1), (3, 1), (3, 3)):
        monkeypatch.setattr(translator.scorer, "most_batches", most)
        threads(count)
        runs.append(list(translate(translator, lines, batch_sentences=7, max_length_ratio=0.3, n_best=3)))
    for other in runs[1:]:
        for mine, theirs in zip(runs[0], other, strict=True):
            assert [translation.text for translation in mine] == [translation.text for translation in theirs]
            assert [translation.score for translation in mine] == pytest.approx(
                [translation.score for translation in theirs], rel=1e-4
            )
