"""A client that calls the application itself, without a server and without a network (https://asgi.readthedocs.io)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode


class Answer(NamedTuple):
    """Of the application."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """Requests may be made from several threads at once."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(
        self,
        path: str,
        fields: object = None,
        *,
        form: Mapping[str, str] | None = None,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send `fields` as JSON, in which half of a surrogate pair stays what it is, or a form, or `content`."""
        headers = dict(headers or {})
        if fields is not None:
            content = json.dumps(fields).encode()
            headers["content-type"] = "application/json"
        elif form is not None:
            content = urlencode(form).encode()
            headers["content-type"] = "application/x-www-form-urlencoded"
        return self.request("POST", path, content=content, headers=headers)

    def request(self, method: str, path: str, **more: Any) -> Answer:
        """With the arguments of `request_in_loop`."""
        return asyncio.run(self.request_in_loop(method, path, **more))

    async def request_in_loop(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        stay: bool = True,
    ) -> Answer:
        """One of several requests of a loop. `stay`: wait for the answer, instead of going once the body is sent."""
        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in {"host": "test", **(headers or {})}.items()],
            "client": ("192.0.2.1", 50000),
            "server": ("test", 80),
        }
        messages: list[dict[str, Any]] = []
        half = len(content) // 2
        bodies = [
            {"type": "http.request", "body": content[:half], "more_body": True},
            {"type": "http.request", "body": content[half:], "more_body": False},
        ]

        async def receive() -> dict[str, Any]:
            if bodies:
                return bodies.pop(0)
            if stay:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self._app(scope, receive, send)
        start = messages[0]
        decoded = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], decoded, b"".join(message.get("body", b"") for message in messages[1:]))
