"""The web application: LibreTranslate's API, so that its clients work here, metrics, and the page.

Every answer that is not the page is JSON, also when something goes wrong: {"error": what and why}. Texts are neither
stored nor logged. Nothing here computes with PyTorch: that is for the batcher's threads, for which handlers wait; and
documents are read and written in threads, too, so that others are answered meanwhile.
"""

import asyncio
import json
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from mimetypes import guess_type
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt import __version__
from nmt.decoding.text.languages import name_of
from nmt.decoding.text.protect import SlowPattern
from nmt.errors import UserError, counted
from nmt.serving.batching import Batcher, QueueFull
from nmt.serving.limits import Detector, Limits, Rates, is_allowed
from nmt.serving.requests import (
    EXTENSIONS,
    MOST_WEIGHTS,
    Fields,
    Kind,
    Request,
    Texts,
    answer_to,
    read_fields,
    read_file_request,
    read_request,
    read_texts,
)

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation
    from nmt.serving.models import Served

PAGE = Path(__file__).with_name("page")
SPEC = PAGE / "spec.yaml"
FILES = {
    "/": PAGE / "index.html",
    "/script.js": PAGE / "script.js",
    # of other pages, too
    **{f"/{name}": PAGE.parents[1] / name for name in ("pages.css", "translating.css", "pages.js", "icon.svg")},
}
WAIT = 0.005  # seconds that the first of a few lines waits for others
MOST_CHARACTERS = 16_000  # translated together: two of nmt-translate's batches, or a second or two on a CPU
KEPT = 1800  # seconds that a translated file may be fetched, as with LibreTranslate
MOST_KEPT = 64 << 20  # bytes of all such files together
LONGEST_NAME = 80  # characters of the name to save one by
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")  # in an address, a header, or a file system
STOPPING = "the server is stopping; try again later"
NO_DETECTOR = "Language detection is disabled on this server: it needs two languages, and its package's extra detect"
RETRY = 5  # seconds after which a client may try again
TRANSLATED = {200, 499, 500, 503}  # what became of requests in which nothing was wrong
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # up to which answers are counted
LINES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # up to which batches are counted
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

Handler = Callable[[HttpRequest], Awaitable[Response]]
Answering = Callable[[HttpRequest, dict[str, Any], float], Awaitable[Response]]


class Metrics:
    """What the server has done, for Prometheus, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("nmt_requests", "Requests by path and status.", ["path", "status"], registry=registry)
        self.characters = Counter("nmt_characters", "Characters of the texts that were accepted.", registry=registry)
        self.seconds = Histogram(
            "nmt_request_seconds", "From the head of a valid request to its answer.", buckets=SECONDS, registry=registry
        )
        self.batches = Histogram(
            "nmt_batch_lines", "Lines that were translated together.", buckets=LINES, registry=registry
        )
        self.waiting = Gauge("nmt_waiting_requests", "Translation requests with lines in the queue.", registry=registry)
        self.kept = Gauge("nmt_kept_bytes", "Translated files that may be fetched.", registry=registry)


class Service:
    """Answers requests with `models`, within `limits`; `keys`: who may translate; None: everyone.

    Without a `detector` the client has to say which language a text is in, unless there is only one. `log` gets a line
    for each request, without any of its text.
    """

    def __init__(
        self,
        models: "Served",
        *,
        limits: Limits | None = None,
        keys: Sequence[str] | None = None,
        detector: Detector | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.keys = keys
        self.detector = detector
        self.log = log
        self.metrics = Metrics()
        self.rates = Rates(self.limits.per_minute)
        self.kept: dict[str, bytes] = {}  # translated files by their names here, the oldest first
        self.stopping = False  # new translation requests are refused
        self.held = 0  # requests with a body that are not answered yet
        self.batcher: Batcher[Kind, list[Translation]] = Batcher(
            models.translate,
            wait=WAIT,
            most_characters=MOST_CHARACTERS // models.workers,
            most_waiting=self.limits.waiting,
            workers=models.workers,
            observe=self.metrics.batches.observe,
        )
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)
        self.metrics.kept.set_function(lambda: sum(map(len, self.kept.values())))

    def holding(self, answer: Answering) -> Handler:
        """A handler that gives `answer` the fields of a request, and when it is to be answered.

        Such requests are counted, need a key, and are answered before the server ends.
        """

        async def handle(http: HttpRequest) -> Response:
            if self.stopping:
                raise _refusal(503, STOPPING)
            self.held += 1
            ends = time.monotonic() + self.limits.seconds
            try:
                return await answer(http, await self._fields(http), ends)
            except (HTTPException, ClientDisconnect):
                raise
            except UserError as error:
                raise HTTPException(400, "; ".join(error.messages)) from None
            except Exception as error:
                return _failed(error)
            finally:
                self.held -= 1

        return handle

    async def translate(self, http: HttpRequest, fields: dict[str, Any], ends: float) -> Response:
        request = await asyncio.to_thread(read_request, fields, self.models, self.limits, self.detector)
        translations = await self._translations(http, request, ends)
        return await asyncio.to_thread(lambda: _answer(answer_to(request, translations)))

    async def translate_file(self, http: HttpRequest, fields: dict[str, Any], ends: float) -> Response:
        request, path = await asyncio.to_thread(read_file_request, fields, self.models, self.limits, self.detector)
        translations = await self._translations(http, request, ends)
        answer = await asyncio.to_thread(answer_to, request, translations)
        name = f"{path.stem}_{request.kind.pair.target}{path.suffix}"
        key = self._keep(name, answer["translatedText"].encode())
        return _answer({"translatedFileUrl": str(http.url_for("download_file", name=key))})

    def _keep(self, name: str, content: bytes) -> str:
        """Keep a file for a while. Its name here, as LibreTranslate has it, begins with something nobody guesses."""
        key = f"{token_hex(16)}.{UNSAFE.sub('_', name)[-LONGEST_NAME:].lstrip('.')}"
        self.kept[key] = content
        while sum(map(len, self.kept.values())) > MOST_KEPT and len(self.kept) > 1:
            del self.kept[next(iter(self.kept))]
        asyncio.get_running_loop().call_later(KEPT, self.kept.pop, key, None)
        return key

    async def download_file(self, http: HttpRequest) -> Response:
        key = http.path_params["name"]
        if (content := self.kept.get(key)) is None:
            raise HTTPException(404, f"no such file, or no longer: each is kept for {KEPT // 60} minutes at most")
        headers = {"content-disposition": f'attachment; filename="{key.partition(".")[2]}"'}
        return Response(content, headers=headers, media_type="application/octet-stream")  # no page of this server

    async def detect(self, http: HttpRequest, fields: dict[str, Any], ends: float) -> Response:
        texts = read_texts(fields, self.limits)
        if self.detector is None:
            raise HTTPException(403, NO_DETECTOR)
        found = await asyncio.to_thread(self.detector.languages, texts)
        return _answer([one._asdict() for one in found if one.confidence or one is found[0]])

    async def suggest(self, http: HttpRequest) -> Response:
        raise HTTPException(403, "Suggestions are disabled on this server.")

    async def _fields(self, http: HttpRequest) -> dict[str, Any]:
        """The fields of a request that may be made. Raises HTTPException and UserError."""
        address = http.client.host if http.client else ""
        if self.keys is None:
            self._count_request(address)
        try:
            body = await asyncio.wait_for(self._body(http), self.limits.seconds)
        except asyncio.TimeoutError:
            raise _refusal(408, f"the body did not arrive within {self.limits.seconds:g} seconds") from None
        kind, query = http.headers.get("content-type", ""), http.scope["query_string"]
        fields = await asyncio.to_thread(read_fields, body, kind, query)
        if self.keys is not None:
            self._count_request(self._key(fields.get("api_key"), address))
        return fields

    async def _body(self, http: HttpRequest) -> bytes:
        too_large = HTTPException(413, f"the body has more than {self.limits.body} bytes")
        announced = http.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self.limits.body:
            raise too_large
        body = bytearray()
        async for part in http.stream():
            body += part
            if len(body) > self.limits.body:
                raise too_large
        return bytes(body)

    def _count_request(self, client: str) -> None:
        """Count a request of the client, an API key or else an address. Raises HTTPException if it comes too soon."""
        if seconds := self.rates.seconds_until_allowed(client):
            most = counted(self.limits.per_minute or 0, "request")
            raise _refusal(429, f"Slowdown: more than {most} a minute; wait a moment", seconds=int(seconds) + 1)

    def _key(self, key: object, address: str) -> str:
        """The client with this API key. Raises HTTPException for a wrong one, which counts for the address."""
        assert self.keys is not None
        if isinstance(key, str) and is_allowed(key, self.keys):
            return f"key {key}"
        self._count_request(address)
        if not key:
            raise HTTPException(400, "Please contact the server operator to get an API key, and send it as api_key")
        raise HTTPException(403, "Invalid API key")

    async def _translations(self, http: HttpRequest, request: Request, ends: float) -> "list[list[Translation]]":
        """The translations of the lines of all documents; they leave the queue where nobody waits for them any more.

        Equal lines, as blank ones are, are translated once.
        """
        lines = [line for document in request.documents for line in document.lines]
        if not lines:
            return []
        different = list(dict.fromkeys(lines))
        try:
            future = self.batcher.submit(different, request.kind)
        except QueueFull:
            raise _refusal(503, f"{self.limits.waiting} requests are waiting already; try again later") from None
        self.metrics.characters.inc(request.characters)
        answers = await _unless_gone(http, future, ends - time.monotonic())
        if answers is None:
            raise _refusal(503, f"no answer within {self.limits.seconds:g} seconds; send less, or try again later")
        answer_to = dict(zip(different, answers, strict=True))
        return [answer_to[line] for line in lines]

    async def languages(self, http: HttpRequest) -> Response:
        targets: dict[str, list[str]] = {code: [] for pair in self.models.pairs for code in pair}
        for pair in self.models.pairs:
            targets[pair.source].append(pair.target)
        return _answer([{"code": code, "name": name_of(code), "targets": targets[code]} for code in targets])

    async def settings(self, http: HttpRequest) -> Response:
        """What LibreTranslate tells its page; `pairs`, `textLimit`, `weightLimit`, and `languageDetection` are ours."""
        pairs = [
            {
                "source": pair.source,
                "target": pair.target,
                "alternatives": self.models.most(pair) - 1,
                "alignments": self.models.has_alignments(pair),
            }
            for pair in self.models.pairs
        ]
        first = self.models.pairs[0]._asdict()
        return _answer(
            {
                "apiKeys": self.keys is not None,
                "keyRequired": self.keys is not None,
                "charLimit": self.limits.characters,
                "textLimit": self.limits.texts,
                "weightLimit": MOST_WEIGHTS,
                "frontendTimeout": 500,
                "language": {side: {"code": code, "name": name_of(code)} for side, code in first.items()},
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": list(EXTENSIONS),
                "languageDetection": self.detector is not None,
                "pairs": pairs,
            }
        )

    async def health(self, http: HttpRequest) -> Response:
        if self.stopping:
            return _answer({"status": "stopping", "error": STOPPING}, 503, {"retry-after": str(RETRY)})
        return _answer({"status": "ok"})

    async def show_metrics(self, http: HttpRequest) -> Response:
        text = generate_latest(self.metrics.registry)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def application(service: Service, *, origins: Sequence[str] = ()) -> Starlette:
    """The application; pages of `origins`, or of all for "*", may use it from a browser."""
    routes = [
        Route("/translate", service.holding(service.translate), methods=["POST"]),
        Route("/translate_file", service.holding(service.translate_file), methods=["POST"]),
        Route("/download_file/{name}", service.download_file),
        Route("/detect", service.holding(service.detect), methods=["POST"]),
        Route("/suggest", service.suggest, methods=["POST"]),
        Route("/languages", service.languages),
        Route("/frontend/settings", service.settings),
        Route("/spec", _fixed(_spec(service), "application/json")),
        Route("/health", service.health),
        Route("/metrics", service.show_metrics),
        *(Route(path, _fixed(file.read_bytes(), guess_type(file.name)[0])) for path, file in FILES.items()),
    ]
    paths = {route.endpoint: route.path for route in routes}
    middleware = [Middleware(_Watched, service=service, paths=paths)]
    if origins:
        middleware.append(Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"]))
    made = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _http_error, ClientDisconnect: _gone},
    )
    made.router.redirect_slashes = False
    return made


class _Watched:
    """Around the application: counts, times, and headers of each answer."""

    def __init__(self, app: ASGIApp, *, service: Service, paths: Mapping[Any, str]) -> None:
        self._app = app
        self._service = service
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
                if self._service.stopping:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._count(scope, status, time.monotonic() - began)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        path = self._paths.get(scope.get("endpoint"), "other")
        metrics, log = self._service.metrics, self._service.log
        metrics.requests.labels(path, status).inc()
        if path in ("/translate", "/translate_file") and status in TRANSLATED:
            metrics.seconds.observe(seconds)
        if log is not None:
            log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {scope['method'][:9]} {path} {status} {seconds * 1000:.0f} ms")


def written_to_log(line: str) -> None:
    """Write a line to standard error. Requests are answered all the same where nobody reads it, or a disk is full."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _failed(error: Exception) -> Response:
    """Answer an unexpected error, and say where it happened, without what it says, which may quote a text."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    written_to_log(f"nmt-serve: {type(error).__name__} in {place.filename}, line {place.lineno}")
    return _answer({"error": "the server failed; its log says more"}, 500)


async def _unless_gone(
    http: HttpRequest, future: "Future[list[list[Translation]]]", seconds: float
) -> "list[list[Translation]] | None":
    """The answer, or None where it takes more than `seconds`. Raises ClientDisconnect when the client has gone."""
    answer: asyncio.Future[Any] = asyncio.wrap_future(future)
    gone: asyncio.Future[Any] = asyncio.ensure_future(http.receive())  # after the body: that the client has gone
    try:
        await asyncio.wait({answer, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            translations: list[list[Translation]] = answer.result()
            return translations
        if gone.done():
            raise ClientDisconnect
        return None
    except UserError as error:
        raise HTTPException(400 if isinstance(error, SlowPattern) else 500, "; ".join(error.messages)) from None
    finally:
        answer.cancel()
        gone.cancel()


def _answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), status, headers=headers, media_type="application/json")


def _refusal(status: int, why: str, *, seconds: int = RETRY) -> HTTPException:
    return HTTPException(status, why, headers={"retry-after": str(seconds)})


async def _http_error(http: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    why = error.detail if error.status_code not in (404, 405) else f"{error.detail}: {http.method} {http.scope['path']}"
    if error.status_code == 405 and (allowed := (error.headers or {}).get("Allow")):
        why += f"; allowed: {', '.join(sorted(allowed.split(', ')))}"
    return _answer({"error": why}, error.status_code, error.headers)


async def _gone(http: HttpRequest, error: Exception) -> Response:
    """For the count only: nobody reads it. The status is that of nginx for a client that has gone."""
    return Response(status_code=499)


def _spec(service: Service) -> bytes:
    """The description of the service, with its fields, and without what it cannot do."""
    described = yaml.safe_load(SPEC.read_text(encoding="utf-8"))
    described["components"]["schemas"] |= {model.__name__: model.model_json_schema() for model in (Fields, Texts)}
    described["info"]["version"] = __version__
    if service.detector is None:
        del described["paths"]["/detect"]
    return json.dumps(described).encode()


def _fixed(content: bytes, kind: str | None) -> Handler:
    async def answer(http: HttpRequest) -> Response:
        return Response(content, media_type=kind)

    return answer
