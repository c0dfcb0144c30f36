"""Serving an application with uvicorn until a signal asks to stop: what is held is answered first.

Between the signal and the end new translation requests are refused with 503, and then connections. A client that does
not read its answer is not waited for. A second signal ends the process at once.
"""

import asyncio
import socket
import sys
from contextlib import AbstractContextManager, ExitStack
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt import signals
from nmt.errors import UserError
from nmt.serving.api import Service

BACKLOG = 2048  # connections that wait to be accepted
GRACE = 5  # seconds that clients have, when all is answered, to read the last answers
HEAD = 20  # seconds for the head of a request to arrive; without an end, slow clients would take all connections
IDLE = 150  # seconds until an idle connection is closed; a proxy that waits longer loses what it then sends


def listening(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0: a free one. Raises UserError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as undone:
            opened = undone.enter_context(socket.socket(family, kind, protocol))
            # On Windows SO_REUSEADDR would let two servers have the same port.
            opened.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
            opened.bind(address)
            undone.pop_all()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen on --host {host} --port {port}: {why}") from None
    return opened


def serve(app: ASGIApp, service: Service, opened: socket.socket, *, program: str) -> None:
    """Serve until a signal comes and all translation requests are answered; `program` is its name in messages."""
    config = uvicorn.Config(
        app,
        http=_Timed,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # what clients do wrong is not for the log
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE,
    )
    server = _Server(config, service, program)
    opened.listen(BACKLOG)  # whoever reads that it listens may connect
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    for pair in service.models.pairs:
        print(f"{program}: {pair}", file=sys.stderr)
    print(f"{program}: listening on http://{shown}:{port}", file=sys.stderr, flush=True)
    server.run(sockets=[opened])
    service.batcher.close()


class _Timed(H11Protocol):
    """HTTP that does not wait for the head of a request for more than HEAD seconds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.loop.call_later(HEAD, self._close_if_last_is, self.cycle)

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:  # it was idle
            self.loop.call_later(HEAD, self._close_if_last_is, self.cycle)
        super().data_received(data)

    def _close_if_last_is(self, request: object) -> None:
        if self.cycle is request:
            self.transport.close()


class _Server(uvicorn.Server):
    """Ends when it was asked to and no translation request is held."""

    def __init__(self, config: uvicorn.Config, service: Service, program: str) -> None:
        super().__init__(config)
        self._service = service
        self._leave = signals.leaving(program)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._service.stopping:
            self._leave(sig, frame)
        self._service.stopping = True

    def capture_signals(self) -> "AbstractContextManager[Any]":  # type: ignore[override]  # SIGHUP, too
        return signals.handled(self.handle_exit)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second: whether to stop listening, close idle connections, and end."""
        self.should_exit = self._service.stopping and not self._service.held
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(GRACE, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        """End the connections of clients that did not read in time."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
