"""Counts and durations in the text format of Prometheus. It knows no HTTP and no translation.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LINES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Histogram:
    """How often values were at most each of `bounds`. One thread may observe, any may read."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum:.6f}"
        yield f"{name}_count {total}"


class Metrics:
    """What the server has done; `waiting` says how many requests are in the queue."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.characters = 0  # of texts that were accepted
        self.seconds = Histogram(SECONDS)  # from the head of a translation request to its answer
        self.batches = Histogram(LINES)
        self.waiting: Callable[[], int] = lambda: 0

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _header("nmt_requests_total", "counter", "Requests by path and status.")
        for (path, status), count in sorted(self.requests.items()):
            yield f'nmt_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _header("nmt_characters_total", "counter", "Characters of the texts that were accepted.")
        yield f"nmt_characters_total {self.characters}"
        yield from _header(
            "nmt_request_seconds", "histogram", "From the head of a valid translation request to its answer."
        )
        yield from self.seconds.lines("nmt_request_seconds")
        yield from _header("nmt_waiting_requests", "gauge", "Translation requests with lines in the queue.")
        yield f"nmt_waiting_requests {self.waiting()}"
        yield from _header("nmt_batch_lines", "histogram", "Lines that were translated together.")
        yield from self.batches.lines("nmt_batch_lines")


def _header(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
