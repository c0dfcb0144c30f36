"""Lines of many requests are translated together: one queue, one thread that computes, answers to whoever asked.

One thread is enough: a batch already has all cores of a CPU (`nmt.decoding.threads`), and a second one would only take
them from it. What waits is taken in turn, a line of each request, so a long request does not hold up short ones. It
knows nothing of HTTP, models and text, except that a line has a length.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Generic, TypeVar

AGAIN = 0.2

Kind = TypeVar("Kind", bound=Hashable)
Answer = TypeVar("Answer")


class QueueFull(Exception):
    """As many requests as may wait are waiting."""


class _Request(Generic[Kind, Answer]):
    """The lines of a request. Those before `begun` were taken from the queue."""

    def __init__(self, lines: Sequence[str], kind: Kind) -> None:
        self.lines = lines
        self.kind = kind
        self.future: Future[list[Answer]] = Future()
        self.arrived = time.monotonic()
        self.begun = 0
        self.answers: dict[int, Answer] = {}

    def answer(self, place: int, answer: Answer) -> None:
        self.answers[place] = answer
        if len(self.answers) == len(self.lines) and self.future.set_running_or_notify_cancel():
            self.future.set_result([self.answers[place] for place in range(len(self.lines))])

    def fail(self, error: Exception) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Batcher(Generic[Kind, Answer]):
    """Translates with `translate`, which is called by one thread, with lines of one kind.

    Lines are translated together up to `most_characters`, and at once, unless they are fewer: then others have `wait`
    seconds, from the arrival of the first, to join them. Clients that were just answered often ask again: until there
    are as many lines as before, they have AGAIN of the time that they waited for the last batch. Up to `most_waiting`
    requests may have lines in the queue. `observe` is told the number of lines of each batch.
    """

    def __init__(
        self,
        translate: Callable[[Sequence[str], Kind], Sequence[Answer]],
        *,
        wait: float,
        most_characters: int,
        most_waiting: int,
        observe: Callable[[int], None] = lambda lines: None,
    ) -> None:
        self._translate = translate
        self._wait = wait
        self._most_characters = most_characters
        self._most_waiting = most_waiting
        self._observe = observe
        self._queue: deque[_Request[Kind, Answer]] = deque()
        self._changed = Condition()
        self._closing = False
        self._before = 0  # lines of the last batch and of the queue when it was done
        self._patience = 0.0  # the time until which they are waited for
        self._thread = Thread(target=self._work, name="translations", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests with lines in the queue."""
        return len(self._queue)

    def submit(self, lines: Sequence[str], kind: Kind) -> "Future[list[Answer]]":
        """The answers to `lines`, at least one, in their order. A future that is cancelled leaves the queue.

        Raises QueueFull. The future has what `translate` raises for its lines.
        """
        request: _Request[Kind, Answer] = _Request(lines, kind)
        with self._changed:
            if self._closing or len(self._queue) >= self._most_waiting:
                raise QueueFull
            self._queue.append(request)
            self._changed.notify()
        request.future.add_done_callback(lambda future: self._withdraw(request) if future.cancelled() else None)
        return request.future

    def close(self) -> None:
        """Answer what is in the queue, accept no more, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _withdraw(self, request: _Request[Kind, Answer]) -> None:
        with self._changed:
            if request in self._queue:
                self._queue.remove(request)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                self._wait_for_others()
                taken = self._take()
            if taken:
                self._observe(len(taken))
                began = time.monotonic()
                self._answer(taken)
                ended = time.monotonic()
                with self._changed:
                    self._before, self._patience = len(taken) + self._lines(), ended + AGAIN * (ended - began)

    def _wait_for_others(self) -> None:
        """Wait until the first request has waited for long enough, or a batch is full."""
        while self._queue and not self._closing:
            until = self._queue[0].arrived + self._wait
            if self._lines() < self._before:
                until = max(until, self._patience)
            left = until - time.monotonic()
            if left <= 0 or sum(sum(map(len, request.lines)) for request in self._queue) >= self._most_characters:
                return
            self._changed.wait(left)

    def _lines(self) -> int:
        """Lines in the queue."""
        return sum(len(request.lines) - request.begun for request in self._queue)

    def _take(self) -> list[tuple[_Request[Kind, Answer], int]]:
        """The lines of the next batch, as requests and places in them: those of the first request's kind, in turn.

        A request of which lines are left goes to the end of the queue.
        """
        if not self._queue:
            return []  # the last one was withdrawn
        room, taken = self._most_characters, []
        requests = [request for request in self._queue if request.kind == self._queue[0].kind]
        touched = set()
        while requests and room > 0:
            for request in requests:
                line = request.lines[request.begun]
                taken.append((request, request.begun))
                touched.add(request)
                request.begun += 1
                room -= len(line) + 1
                if room <= 0:
                    break
            requests = [request for request in requests if request.begun < len(request.lines)]
        untouched = [request for request in self._queue if request not in touched]
        begun = [request for request in self._queue if request in touched and request.begun < len(request.lines)]
        self._queue = deque(untouched + begun)
        return taken

    def _answer(self, taken: Sequence[tuple[_Request[Kind, Answer], int]]) -> None:
        """Translate lines, and give the answers to their requests.

        Where that fails, the requests are tried one by one, so that one of them cannot ruin the others.
        """
        requests = list(dict.fromkeys(request for request, _ in taken))
        try:
            answers = self._translate([request.lines[place] for request, place in taken], requests[0].kind)
        except Exception as error:  # whatever it is, whoever asked is told, and the thread goes on
            if len(requests) == 1:
                self._withdraw(requests[0])
                requests[0].fail(error)
                return
        else:
            for (request, place), answer in zip(taken, answers, strict=True):
                request.answer(place, answer)
            return
        for one in requests:
            self._answer([(request, place) for request, place in taken if request is one])
