"""The web application: LibreTranslate's API, so that its clients work here, metrics, and the page.

Every answer that is not the page is JSON, also when something goes wrong: {"error": what and why}. Texts are neither
stored nor logged. Nothing here computes with PyTorch: that is for the batcher's threads, for which handlers wait; and
documents are read and written in threads, too, so that others are answered meanwhile.
"""

import asyncio
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

from nmt.decoding.text.languages import name_of
from nmt.documents.document import read_document
from nmt.documents.formats import Document
from nmt.errors import UserError, collected, counted, first_of, refuse
from nmt.serving.batching import Batcher, QueueFull
from nmt.serving.limits import Limits, Rates, is_allowed
from nmt.serving.requests import MOST_WEIGHTS, Kind, Request, read_fields, read_request

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation
    from nmt.serving.models import Served

PAGE = Path(__file__).with_name("page")
FILES = {
    "/": PAGE / "index.html",
    "/pages.css": PAGE.parents[1] / "pages.css",  # the colors of the other page, too
    "/style.css": PAGE / "style.css",
    "/script.js": PAGE / "script.js",
    "/icon.svg": PAGE / "icon.svg",
}
WAIT = 0.005  # seconds that the first of a few lines waits for others
MOST_CHARACTERS = 16_000  # translated together: two of nmt-translate's batches, or a second or two on a CPU
STOPPING = "the server is stopping; try again later"
RETRY = 5  # seconds after which a client may try again
TRANSLATED = {200, 499, 500, 503}  # what became of requests in which nothing was wrong
DIGITS = 4  # of a weight of an alignment
MOST_REASONS = 20  # that a refusal tells
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


class Service:
    """Answers requests with `models`, within `limits`; `keys`: who may translate; None: everyone.

    `log` gets a line for each request, without any of its text.
    """

    def __init__(
        self,
        models: "Served",
        *,
        limits: Limits | None = None,
        keys: Sequence[str] | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.keys = keys
        self.log = log
        self.metrics = Metrics()
        self.rates = Rates(self.limits.per_minute)
        self.stopping = False  # new translation requests are refused
        self.held = 0  # translation requests that are not answered yet
        self.batcher: Batcher[Kind, list[Translation]] = Batcher(
            models.translate,
            wait=WAIT,
            most_characters=MOST_CHARACTERS // models.workers,
            most_waiting=self.limits.waiting,
            workers=models.workers,
            observe=self.metrics.batches.observe,
        )
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)

    async def translate(self, http: HttpRequest) -> Response:
        if self.stopping:
            raise _refusal(503, STOPPING)
        self.held += 1
        try:
            return await self._translate(http)
        except (HTTPException, ClientDisconnect):
            raise
        except Exception as error:
            return _failed(error)
        finally:
            self.held -= 1

    async def _translate(self, http: HttpRequest) -> Response:
        began = time.monotonic()
        address = http.client.host if http.client else ""
        if self.keys is None:
            self._count_request(address)
        try:
            body = await asyncio.wait_for(self._body(http), self.limits.seconds)
        except asyncio.TimeoutError:
            raise _refusal(408, f"the body did not arrive within {self.limits.seconds:g} seconds") from None
        try:
            fields = read_fields(body, http.headers.get("content-type", ""), http.scope["query_string"])
            if self.keys is not None:
                self._count_request(self._key(fields.get("api_key"), address))
            request = read_request(fields, self.models, self.limits)
            documents = await asyncio.to_thread(_documents, request)
        except UserError as error:
            raise HTTPException(400, "; ".join(first_of(error.messages, MOST_REASONS))) from None
        self.metrics.characters.inc(sum(map(len, request.texts)))
        left = began + self.limits.seconds - time.monotonic()
        answers = await self._answers(http, request, documents, left)
        return await asyncio.to_thread(lambda: _answer(_written(request, documents, answers)))

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
            raise _refusal(429, f"more than {most} a minute; wait a moment", seconds=int(seconds) + 1)

    def _key(self, key: object, address: str) -> str:
        """The client with this API key. Raises HTTPException for a wrong one, which counts for the address."""
        assert self.keys is not None
        if isinstance(key, str) and is_allowed(key, self.keys):
            return f"key {key}"
        self._count_request(address)
        raise HTTPException(403, "Invalid API key" if key else "this server wants an API key: send it as api_key")

    async def _answers(
        self, http: HttpRequest, request: Request, documents: Sequence[Document], seconds: float
    ) -> "list[list[Translation]]":
        """The translations of the lines of all documents; they leave the queue where nobody waits for them any more.

        Equal lines, as blank ones are, are translated once.
        """
        lines = [line for document in documents for line in document.lines]
        if not lines:
            return []
        different = list(dict.fromkeys(lines))
        marked = any(document.is_marked for document in documents) and self.models.has_alignments(request.pair)
        weights = request.alignments
        kind = Kind(request.pair, n_best=request.alternatives + 1, alignments=weights or marked, weights=weights)
        try:
            future = self.batcher.submit(different, kind)
        except QueueFull:
            raise _refusal(503, f"{self.limits.waiting} requests are waiting already; try again later") from None
        answers = await _unless_gone(http, future, seconds)
        if answers is None:
            raise _refusal(503, f"no answer within {self.limits.seconds:g} seconds; send less, or try again later")
        answer_to = dict(zip(different, answers, strict=True))
        return [answer_to[line] for line in lines]

    async def languages(self, http: HttpRequest) -> Response:
        del http
        pairs = self.models.pairs
        codes = dict.fromkeys(code for pair in pairs for code in pair)
        return _answer(
            [
                {
                    "code": code,
                    "name": name_of(code),
                    "targets": [pair.target for pair in pairs if pair.source == code],
                }
                for code in codes
            ]
        )

    async def settings(self, http: HttpRequest) -> Response:
        """What LibreTranslate tells its page; `pairs`, `textLimit` and `weightLimit` are ours."""
        del http
        pairs = self.models.pairs
        first = {
            side: {"code": code, "name": name_of(code)} for side, code in zip(pairs[0]._fields, pairs[0], strict=True)
        }
        return _answer(
            {
                "apiKeys": self.keys is not None,
                "keyRequired": self.keys is not None,
                "charLimit": self.limits.characters,
                "textLimit": self.limits.texts,
                "weightLimit": MOST_WEIGHTS,
                "frontendTimeout": 500,
                "language": first,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "pairs": [
                    {
                        "source": pair.source,
                        "target": pair.target,
                        "alternatives": self.models.most(pair) - 1,
                        "alignments": self.models.has_alignments(pair),
                    }
                    for pair in pairs
                ],
            }
        )

    async def health(self, http: HttpRequest) -> Response:
        del http
        if self.stopping:
            return _answer({"status": "stopping", "error": STOPPING}, 503, {"retry-after": str(RETRY)})
        return _answer({"status": "ok"})

    async def show_metrics(self, http: HttpRequest) -> Response:
        del http
        text = generate_latest(self.metrics.registry)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def application(service: Service, *, origins: Sequence[str] = ()) -> Starlette:
    """The application; pages of `origins`, or of all for "*", may use it from a browser."""
    routes = [
        Route("/translate", service.translate, methods=["POST"]),
        Route("/languages", service.languages),
        Route("/frontend/settings", service.settings),
        Route("/health", service.health),
        Route("/metrics", service.show_metrics),
        *(Route(path, _file(file)) for path, file in FILES.items()),
    ]
    paths = {route.path for route in routes}
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

    def __init__(self, app: ASGIApp, *, service: Service, paths: set[str]) -> None:
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
        path = scope["path"] if scope["path"] in self._paths else "other"
        metrics, log = self._service.metrics, self._service.log
        metrics.requests.labels(path, status).inc()
        if path == "/translate" and status in TRANSLATED:
            metrics.seconds.observe(seconds)
        if log is not None:
            log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {scope['method'][:9]} {path} {status} {seconds * 1000:.0f} ms")


def _failed(error: Exception) -> Response:
    """Answer an unexpected error, and say where it happened, without what it says, which may quote a text."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__} in {place.filename}, line {place.lineno}"
    print(f"nmt-serve: {what}", file=sys.stderr, flush=True)
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
        raise HTTPException(500, "; ".join(error.messages)) from None
    finally:
        answer.cancel()
        gone.cancel()


def _documents(request: Request) -> list[Document]:
    """The texts of a request, by their format. Raises UserError with everything that is wrong with them."""
    documents, problems = [], list[str]()
    for number, text in enumerate(request.texts):
        with collected(problems):
            name = f"q.{number}" if request.is_list else "q"
            documents.append(read_document(text, format=request.format, name=name))
    refuse(problems)
    return documents


def _written(
    request: Request, documents: Sequence[Document], answers: "Sequence[Sequence[Translation]]"
) -> dict[str, Any]:
    """LibreTranslate's answer, from the translations of the lines of all documents."""
    left = iter(answers)
    texts = [(document, [next(left) for _ in document.lines]) for document in documents]
    answer: dict[str, list[Any]] = {"translatedText": [document.written(_nth(lines, 0)) for document, lines in texts]}
    if request.is_auto:  # nothing was detected, and clients of LibreTranslate read it all the same
        answer["detectedLanguage"] = [{"confidence": 0, "language": request.pair.source}] * len(documents)
    if request.alternatives:
        answer["alternatives"] = [
            [document.written(_nth(lines, number)) for number in range(1, max(map(len, lines), default=1))]
            for document, lines in texts
        ]
    if request.alignments:
        answer["alignments"] = [[_alignment(line[0]) for line in lines] for _, lines in texts]
    return answer if request.is_list else {name: values[0] for name, values in answer.items()}


def _nth(lines: "Sequence[Sequence[Translation]]", number: int) -> "list[Translation]":
    """The translation of that number of each line, or the last where a line has fewer."""
    return [line[min(number, len(line) - 1)] for line in lines]


def _alignment(translation: "Translation") -> dict[str, Any]:
    """Words of source and target, and for each target word the weight of each source word and of the source's end."""
    soft = translation.soft_alignment
    assert soft is not None
    weights = [[round(weight, DIGITS) for weight in row] for row in soft.weights.tolist()]
    return {"source": soft.source_words, "target": soft.target_words, "weights": weights}


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
    del http, error
    return Response(status_code=499)


def _file(path: Path) -> Callable[[HttpRequest], Awaitable[Response]]:
    content, kind = path.read_bytes(), guess_type(path.name)[0]

    async def answer(http: HttpRequest) -> Response:
        del http
        return Response(content, media_type=kind)

    return answer
