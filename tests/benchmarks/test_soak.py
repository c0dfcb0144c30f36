"""The soak: what counts as flat, and a moment of each program."""

import pytest

from benchmarks.soak import MEBIBYTE, Sample, rows


def samples(
    *, leak: float = 0.0, slower: float = 0.0, starved: float = 0.0, warm_up: float = 0.0, seconds: int = 1000
) -> list[Sample]:
    """A look each second at a process of 500 MiB that does 40 pieces of work a second, on half a processor.

    Over the whole time its memory grows by the share `leak`, it becomes slower by the share `slower`, and gets less of
    the processor by the share `starved`; in the first tenth it does `warm_up` of its work.
    """
    looks, processor, done = [], 0.0, 0.0
    for second in range(seconds + 1):
        share = second / seconds
        memory = int(500 * MEBIBYTE * (1 + leak * share))
        looks.append(Sample(second, processor, memory, memory // 2, int(done)))
        busy = 0.5 * (1 - starved * share)
        processor += busy
        done += 80 * busy * (1 - slower * share) * (warm_up if warm_up and share < 0.1 else 1)
    return looks


def verdicts(looks: list[Sample], *, wall: bool = False) -> dict[str, bool]:
    return {row.what: row.flat for row in rows("lines", looks, wall=wall)}


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
    assert verdicts(samples(leak=leak))["resident memory"] == (abs(leak) < 0.04)
