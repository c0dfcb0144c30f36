"""Clients of `serve_load`: many connections, each of which asks next once it has its answer, in one process.

    python -m benchmarks.serve_clients PORT CLIENTS

reads the bodies of requests, a list in JSON, from the first line of its input, and sends them in turn until that input
ends, or the server stops. Then it writes in JSON what came back. It has one thread and plain sockets, and imports
nothing heavy, so that it takes little of the cores that it shares with the server.
"""

import json
import re
import sys
import time
from collections.abc import Sequence
from selectors import EVENT_READ, DefaultSelector
from socket import create_connection
from typing import NamedTuple

HEAD = "POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n"


class Answer(NamedTuple):
    """What a client got for a request."""

    place: int  # of the body in the input
    sent: float  # on the clock of time.monotonic, which all processes share
    got: float
    status: int
    body: str
    closes: bool  # whether the server then closes the connection


class Client:
    """A connection with a request on the way."""

    def __init__(self, port: int) -> None:
        self.socket = create_connection(("127.0.0.1", port))
        self.sent = 0.0
        self._place, self._received = 0, b""

    def ask(self, place: int, request: bytes) -> None:
        self._place, self.sent, self._received = place, time.monotonic(), b""
        self.socket.sendall(request)

    def answer(self) -> Answer | None:
        """The answer, if all of it is there. Raises OSError where there will be none."""
        part = self.socket.recv(1 << 16)
        if not part:
            raise ConnectionResetError
        self._received += part
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        if length is None or len(body) < int(length[1]):
            return None
        status, closes = int(head[9:12]), b"\r\nconnection: close" in head
        return Answer(self._place, self.sent, time.monotonic(), status, body.decode(), closes)


class Clients:
    """All of them, and what they got."""

    def __init__(self, port: int, requests: Sequence[bytes]) -> None:
        self.answers: list[Answer] = []
        self.broken: list[float] = []  # when requests were sent that got no answer
        self.refused = 0  # clients that were refused a connection, and ended
        self._port = port
        self._requests = requests
        self._next = 0
        self._selector = DefaultSelector()
        self._going = True

    def run(self, number: int) -> None:
        """Until the standard input ends, and each client has its last answer."""
        self._selector.register(sys.stdin, EVENT_READ)
        for _ in range(number):
            self._begin(None)
        while len(self._selector.get_map()) > self._going:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._selector.unregister(sys.stdin)
                    self._going = False
                else:
                    self._read(key.data)

    def _begin(self, client: Client | None) -> None:
        """Let a client ask next, over its connection or a new one."""
        try:
            if client is None:
                client = Client(self._port)
                self._selector.register(client.socket, EVENT_READ, client)
            client.ask(self._next, self._requests[self._next])
            self._next = (self._next + 1) % len(self._requests)
        except OSError:
            if client is None:
                self.refused += 1
                return
            self._end(client)  # the server has closed it meanwhile: nothing was sent
            self._begin(None)

    def _read(self, client: Client) -> None:
        try:
            answer = client.answer()
        except OSError:
            self.broken.append(client.sent)
            self._end(client)
            if self._going:
                self._begin(None)
            return
        if answer is None:
            return
        self.answers.append(answer)
        ends = not self._going or answer.status == 503
        if ends or answer.closes:
            self._end(client)
        if not ends:
            self._begin(None if answer.closes else client)

    def _end(self, client: Client) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()


def main() -> None:
    port, number = map(int, sys.argv[1:])
    bodies = [body.encode() for body in json.loads(sys.stdin.readline())]
    clients = Clients(port, [HEAD.format(len(body)).encode() + body for body in bodies])
    began = time.process_time()
    clients.run(number)
    seconds = time.process_time() - began
    results = {"answers": clients.answers, "broken": clients.broken, "refused": clients.refused, "processor": seconds}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
