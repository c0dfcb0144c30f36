"""The soak: what counts as flat."""

import pytest

from benchmarks.soak import MEBIBYTE, Sample, rows


def samples(*, leak: float, slower: float = 0.0) -> list[Sample]:
    """A look each second, for 1000, at a process of 500 MiB that does 40 pieces of work a second on half a processor.

    Over the whole time its memory grows by the share `leak`, and it becomes slower by the share `slower`.
    """
    looks, done = [], 0.0
    for second in range(1001):
        share = second / 1000
        memory = int(500 * MEBIBYTE * (1 + leak * share))
        looks.append(Sample(second, 0.5 * second, memory, memory // 2, int(done)))
        done += 40 * (1 - slower * share)
    return looks


def test_the_figures() -> None:
    """From the middle of the first third, at 25% of the time, to that of the last, at 85%, it is 60% of the time."""
    memory, shared_out, processor, clock = rows("lines", samples(leak=0.1, slower=0.2), wall=False)
    assert (memory.first, memory.last) == pytest.approx((500 * 1.025, 500 * 1.085), rel=1e-3)
    assert (shared_out.first, shared_out.last) == pytest.approx((250 * 1.025, 250 * 1.085), rel=1e-3)
    assert (processor.first, processor.last) == pytest.approx((80 * 0.95, 80 * 0.83), rel=1e-3)
    assert (clock.first, clock.last) == pytest.approx((40 * 0.95, 40 * 0.83), rel=1e-3)
    assert memory.drift == pytest.approx(0.06 / 1.025, rel=1e-2)


@pytest.mark.parametrize("leak", [0.03, -0.03, 0.05, -0.05])
def test_memory_is_flat_within_two_percent(leak: float) -> None:
    """Of the leak, 60% show: 1.8% or 3 %."""
    memory, *_ = rows("lines", samples(leak=leak), wall=False)
    assert (memory.what, memory.flat) == ("resident memory", abs(leak) < 0.04)
