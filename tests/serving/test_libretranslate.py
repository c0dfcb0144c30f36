"""The requests of LibreTranslate's own tests of its API, and what else its clients rely on: all is answered as there.

https://github.com/LibreTranslate/LibreTranslate/tree/main/libretranslate/tests/test_api
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the server needs the extra serve")

from nmt.serving import api
from nmt.serving.api import Service, application
from nmt.serving.limits import Detected, Limits
from tests.serving.client import Client
from tests.serving.doubles import Backwards

BOUNDARY = "3f2a"
MULTIPART = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
HELLO = {"q": "Hello", "source": "en", "target": "es", "format": "text"}


class Spoken:
    """In place of a detector: a text is in the language whose code it ends with, or may be in any."""

    def languages(self, lines: list[str]) -> list[Detected]:
        codes = ["en", "es", "fr"]
        found = [Detected(code, 90 * " ".join(lines).endswith(code)) for code in codes]
        return sorted(found, key=lambda one: -one.confidence)


class Serving(Client):
    """A client of a service of its own; `detects`: whether it has a detector."""

    def __init__(self, *, detects: bool = True, **options: Any) -> None:
        models = Backwards(("en", "es"), ("es", "en"), ("fr", "es"))
        detector = Spoken() if detects else None
        self.service = Service(models, detector=detector, **options)  # type: ignore[arg-type]
        super().__init__(application(self.service))


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    made: list[Serving] = []
    yield lambda **options: made.append(Serving(**options)) or made[-1]  # type: ignore[func-returns-value]
    for client in made:
        client.service.batcher.close()


@pytest.fixture
def client(serve: Callable[..., Serving]) -> Serving:
    return serve()


def parts(fields: dict[str, str], file: tuple[str, bytes] | None = None) -> bytes:
    """A form in several parts, as browsers and curl -F send it."""
    body = b"".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    )
    if file is not None:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file[0]}"\r\n'
        body += head.encode() + b"Content-Type: text/plain\r\n\r\n" + file[1] + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def upload(client: Client, name: str, content: bytes, **fields: str) -> Any:
    body = parts({"source": "en", "target": "es", **fields}, (name, content))
    return client.post("/translate_file", content=body, headers=MULTIPART)


def error(answer: Any, status: int) -> str:
    assert answer.status == status, answer.text
    return str(answer.json()["error"])


def test_detect(client: Serving) -> None:
    answer = client.post("/detect", form={"q": "Hello"})
    assert answer.status == 200
    assert answer.json() == [{"language": "en", "confidence": 0}]
    assert client.post("/detect", {"q": "Bonjour fr"}).json() == [{"language": "fr", "confidence": 90}]
    assert error(client.post("/detect"), 400) == "Invalid request: missing q parameter"
    assert error(client.get("/detect"), 405)


def test_health_languages_settings_and_spec(client: Serving) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert {".txt", ".html", ".srt"} <= set(settings["supportedFilesFormat"])
    assert client.get("/spec").json()["openapi"].startswith("3.")
    for path in ("/health", "/languages", "/spec"):
        assert client.post(path).status == 405


@pytest.mark.parametrize("kind", ["json", "form", "multipart"])
def test_all_kinds_of_bodies(client: Serving, kind: str) -> None:
    fields = {**HELLO, "q": "Olé", "alternatives": "1", "api_key": ""}
    if kind == "json":
        answer = client.post("/translate", {**fields, "api_key": None})
    elif kind == "form":
        answer = client.post("/translate", form=fields)
    else:
        answer = client.post("/translate", content=parts(fields), headers=MULTIPART)
    assert answer.json() == {"translatedText": "élO", "alternatives": ["élO!"]}


def test_keys(serve: Callable[..., Serving]) -> None:
    client = serve(keys=["right"])
    assert client.post("/detect", {"q": "en", "api_key": "right"}).status == 200
    assert upload(client, "a.txt", b"a", api_key="right").status == 200
    assert upload(client, "a.txt", b"a").status == 400


def test_suggestions_are_disabled(client: Serving) -> None:
    suggested = {"q": "Hello", "s": "Hola", "source": "en", "target": "es"}
    assert error(client.post("/suggest", suggested), 403) == "Suggestions are disabled on this server."


@pytest.mark.parametrize(("source", "target"), [("en-US", "es"), ("EN_gb", "es-419"), ("en", "ES")])
def test_codes_with_a_region(client: Serving, source: str, target: str) -> None:
    answer = client.post("/translate", {**HELLO, "source": source, "target": target})
    assert answer.json() == {"translatedText": "olleH"}


def test_without_a_detector(serve: Callable[..., Serving]) -> None:
    client = serve(detects=False)
    assert error(client.post("/detect", {"q": "Hello"}), 403).startswith(
        "Language detection is disabled on this server: it needs two languages, and its package's extra detect"
    )
    why = error(client.post("/translate", {**HELLO, "source": "auto"}), 400)
    assert why == "source is auto, but en and fr can be translated; choose one, or install the extra detect there"
    answer = client.post("/translate", {**HELLO, "source": "Auto", "target": "EN"}).json()
    assert answer["detectedLanguage"] == {"language": "es", "confidence": 0}
    assert "/detect" not in client.get("/spec").json()["paths"]
    assert client.get("/frontend/settings").json()["languageDetection"] is False


def test_a_file(client: Serving) -> None:
    answer = upload(client, "notes.txt", "one\r\nnaïve two\n".encode())
    assert answer.status == 200, answer.text
    (url,) = answer.json().values()
    assert url.startswith("http://test/download_file/")
    path = url.removeprefix("http://test")
    file = client.get(path)
    assert file.content.decode() == "eno\r\nevïan owt\n"
    assert file.headers["content-disposition"] == 'attachment; filename="notes_es.txt"'
    assert file.headers["content-type"] == "application/octet-stream"
    assert client.get(path[:-9] + "other.txt").status == 404
    numbers = client.get("/metrics").text
    assert 'nmt_requests_total{path="/download_file/{name}",status="200"} 1.0' in numbers
    assert "nmt_kept_bytes 16.0" in numbers


@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        (
            "page.HTML",  # of which the language is stated
            b'<html xml:lang="en" lang="en-GB"><p lang="en">a <b>two</b></p>',
            '<html xml:lang="es" lang="es"><p lang="en">a <b>owt</b></p>',
        ),
        ("page.htm", b'<html lang="fr"><p>two</p>', '<html lang="fr"><p>owt</p>'),
        ("film.srt", b"1\n00:00:01,000 --> 00:00:02,000\nDos\n", "1\n00:00:01,000 --> 00:00:02,000\nsoD\n"),
        ("mark.txt", b"\xef\xbb\xbfone", "eno"),
        ("empty.txt", b"", ""),
    ],
)
def test_files_by_their_names(client: Serving, name: str, content: bytes, written: str) -> None:
    (url,) = upload(client, name, content).json().values()
    assert client.get(url.removeprefix("http://test")).text == written


@pytest.mark.parametrize("name", ["../../etc/passwd.txt", "a/b\\c.txt", '"; x="\u00e9.txt', "..\\..txt"])
def test_no_name_leaves_its_place(client: Serving, name: str) -> None:
    answer = upload(client, name.replace('"', '\\"'), b"one")
    if answer.status == 200:
        key = answer.json()["translatedFileUrl"].removeprefix("http://test/download_file/")
        assert set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert client.get(f"/download_file/{key}").text == "eno"
    else:
        assert error(answer, 400)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("", b"", "Invalid request: empty file"),
        ("a.docx", b"", "Invalid request: file format not supported; supported: "),
        ("a.txt", b"\xff", "a.txt, line 1"),
        ("a.srt", b"no times", "a.srt"),
        ("a.txt", b"x" * 3000, "Invalid request: request (3000) exceeds text limit (2000)"),
    ],
)
def test_wrong_files(serve: Callable[..., Serving], name: str, content: bytes, why: str) -> None:
    client = serve(limits=Limits(characters=100, texts=20))
    assert error(upload(client, name, content), 400).startswith(why)


def test_what_is_no_file(client: Serving) -> None:
    body = parts({"source": "en", "target": "es"})
    assert error(client.post("/translate_file", content=body, headers=MULTIPART), 400) == (
        "Invalid request: missing file parameter"
    )
    assert error(client.post("/translate_file", {**HELLO, "file": "a.txt"}), 400)
    body = parts(HELLO)
    for cut in (b"", body[:-8], body.replace(b'name="q"', b""), body + body[10:]):
        answer = client.post("/translate", content=cut, headers=MULTIPART)
        assert answer.status in (200, 400)


def test_files_are_kept_for_a_while_and_few_of_them(client: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MOST_KEPT", 10)
    urls = [upload(client, "a.txt", content).json()["translatedFileUrl"] for content in (b"one", b"four56", b"seven")]
    found = [client.get(url.removeprefix("http://test")).status for url in urls]
    assert found == [404, 404, 200]


def test_files_are_forgotten_after_a_while(client: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "KEPT", 0.2)

    async def later() -> None:
        body = parts({"source": "en", "target": "es"}, ("a.txt", b"one"))
        assert (await client.request_in_loop("POST", "/translate_file", body, MULTIPART)).status == 200
        assert len(client.service.kept) == 1
        await asyncio.sleep(0.4)

    asyncio.run(later())
    assert client.service.kept == {}


def test_the_description_is_of_what_is_served(client: Serving) -> None:
    described = client.get("/spec").json()
    for path, methods in described["paths"].items():
        for method in methods:
            assert client.request(method.upper(), path).status not in (404, 405) or "{" in path
    for path in ("/translate", "/translate_file", "/detect", "/languages", "/frontend/settings", "/health"):
        assert path in described["paths"]
    for name in re.findall(r'"\$ref": "#/components/(\w+)/(\w+)"', json.dumps(described)):
        assert name[1] in described["components"][name[0]]
    fields = described["components"]["schemas"]["Fields"]
    assert fields["required"] == ["q", "source", "target"]
    assert {"format", "alternatives", "alignments", "glossary", "protect"} < set(fields["properties"])


@pytest.mark.parametrize(
    "piece", [b"\r", b"\r\n--", b"\r\n--3f2", b"\r\n--3f2a\r\n", b"\r\n--3f2a\r\na:b\r\n", b"\xff"]
)
def test_hostile_forms_are_read_in_bounded_time(serve: Callable[..., Serving], piece: bytes) -> None:
    """A megabyte of anything, of which nothing is told to the log."""
    client = serve(limits=Limits())
    body = parts({"source": "en"})[:-9] + piece * ((1 << 20) // len(piece) - 100)
    began = time.process_time()
    assert error(client.post("/translate", content=body[: 1 << 20], headers=MULTIPART), 400)
    assert time.process_time() - began < 5
