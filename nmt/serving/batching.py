"""Lines of many requests are translated together: one queue, threads that compute, answers to whoever asked.

Each thread has a batch of its own. While the clients of one are given their answers, and ask again, the others compute,
so that no core waits for clients. What waits is taken in turn, a line of each request, so a long request does not hold
up short ones. It knows nothing of HTTP, models and text, except that a line has a length.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from math import ceil
from threading import Condition, Thread
from typing import Generic, TypeVar

from nmt.decoding.threads import FEWEST

AGAIN, LONGEST = 0.2, 0.25  # of the time of a batch, and seconds, that clients have to ask again

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

    def answer(self) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_result([self.answers[place] for place in range(len(self.lines))])

    def fail(self, error: Exception) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Batcher(Generic[Kind, Answer]):
    """Translates with `translate`, which is called by `workers` threads with lines and their kind.

    With the keyword `alone` no other thread computes, and nothing waits; `unwanted` tells whether whoever asked has
    gone, whereupon it may raise something.

    A batch has the thread's share of all lines, at least FEWEST, up to `most_characters`. It begins at once when it can
    have so many lines; otherwise others have `wait` seconds, from the arrival of the first, to join them. Clients that
    were just answered often ask again: for them it waits AGAIN of the time that the thread's last batch took, LONGEST
    at most. Up to `most_waiting` requests may have lines in the queue. `observe` is told the lines of each batch.
    """

    def __init__(
        self,
        translate: Callable[..., Sequence[Answer]],
        *,
        wait: float,
        most_characters: int,
        most_waiting: int,
        workers: int = 1,
        observe: Callable[[int], None] = lambda lines: None,
    ) -> None:
        self._translate = translate
        self._wait = wait
        self._most_characters = most_characters
        self._most_waiting = most_waiting
        self._workers = workers
        self._observe = observe
        self._queue: deque[_Request[Kind, Answer]] = deque()
        self._changed = Condition()
        self._closing = False
        self._computing = 0  # lines
        self._threads = [Thread(target=self._work, name="translations", daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

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
            self._changed.notify_all()
        request.future.add_done_callback(lambda future: self._withdraw(request) if future.cancelled() else None)
        return request.future

    def close(self) -> None:
        """Answer what is in the queue, accept no more, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _withdraw(self, request: _Request[Kind, Answer]) -> None:
        with self._changed:
            if request in self._queue:
                self._queue.remove(request)

    def _work(self) -> None:
        again, until = 0, 0.0  # how many lines are waited for, and until when
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                self._wait_for_others(again, until)
                taken = self._take()
                alone = not self._queue and not self._computing
                self._computing += len(taken)
                if taken:
                    self._observe(len(taken))
            if taken:
                began = time.monotonic()
                self._answer(taken, alone)
                ended = time.monotonic()
                with self._changed:
                    again, until = self._share(), ended + min(AGAIN * (ended - began), LONGEST)
                    self._computing -= len(taken)

    def _wait_for_others(self, again: int, until: float) -> None:
        """Wait until the first request has waited for long enough, or the lines are enough.

        `again` lines, of clients that were just answered, are waited for until then.
        """
        while self._queue and not self._closing:
            lines, end = self._lines(), self._queue[0].arrived + self._wait
            if lines < again:
                end = max(end, until)
            left = end - time.monotonic()
            if left <= 0 or sum(sum(map(len, request.lines)) for request in self._queue) >= self._most_characters:
                return
            self._changed.wait(left)

    def _share(self) -> int:
        """A thread's share of the lines that wait and those that are computed."""
        lines = self._lines() + self._computing
        return min(lines, max(FEWEST, ceil(lines / self._workers)))

    def _lines(self) -> int:
        """Lines in the queue."""
        return sum(len(request.lines) - request.begun for request in self._queue)

    def _take(self) -> list[tuple[_Request[Kind, Answer], int]]:
        """The lines of the next batch, as requests and places in them: those of the first request's kind, in turn.

        A request of which lines are left goes to the end of the queue.
        """
        if not self._queue:
            return []  # the last one was withdrawn
        room, most = self._most_characters, self._share()
        taken: list[tuple[_Request[Kind, Answer], int]] = []
        requests = [request for request in self._queue if request.kind == self._queue[0].kind]
        touched = set()
        while requests and room > 0 and len(taken) < most:
            for request in requests:
                line = request.lines[request.begun]
                taken.append((request, request.begun))
                touched.add(request)
                request.begun += 1
                room -= len(line) + 1
                if room <= 0 or len(taken) == most:
                    break
            requests = [request for request in requests if request.begun < len(request.lines)]
        untouched = [request for request in self._queue if request not in touched]
        begun = [request for request in self._queue if request in touched and request.begun < len(request.lines)]
        self._queue = deque(untouched + begun)
        return taken

    def _answer(self, taken: Sequence[tuple[_Request[Kind, Answer], int]], alone: bool) -> None:
        """Translate lines, and give the answers to their requests.

        Where that fails, the requests are tried one by one, so that one of them cannot ruin the others.
        """
        requests = list(dict.fromkeys(request for request, _ in taken))

        def unwanted() -> bool:
            return all(request.future.done() for request in requests)

        try:
            lines = [request.lines[place] for request, place in taken]
            answers = self._translate(lines, requests[0].kind, alone=alone, unwanted=unwanted)
        except Exception as error:  # whatever it is, whoever asked is told, and the thread goes on
            if unwanted():
                return
            if len(requests) == 1:
                self._withdraw(requests[0])
                with self._changed:
                    requests[0].fail(error)
                return
        else:
            with self._changed:
                for (request, place), answer in zip(taken, answers, strict=True):
                    request.answers[place] = answer
                complete = [request for request in requests if len(request.answers) == len(request.lines)]
            for request in complete:
                request.answer()
            return
        # Only here, where the error is let go of: its traceback holds on to what the batch was computed with.
        for one in requests:
            self._answer([(request, place) for request, place in taken if request is one], alone)
