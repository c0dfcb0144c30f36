"""The API as a client sees it: LibreTranslate's fields and answers, every refusal with its reason, and metrics."""

import asyncio
import io
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the server needs the extra serve")

from nmt.serving import api, requests
from nmt.serving.api import Service, application
from nmt.serving.limits import Limits
from tests.serving.client import Answer, Client
from tests.serving.doubles import MOST, Backwards

LIMITS = Limits(characters=20, texts=3, body=500, waiting=2, seconds=20.0)


class Served:
    """Starts servers, and closes them."""

    def __init__(self) -> None:
        self.models = Backwards(("en", "de"), ("fr", "de"), ("de", "en"))
        self.lines: list[str] = []
        self.services: list[Service] = []

    def __call__(self, *, limits: Limits = LIMITS, origins: tuple[str, ...] = (), **options: Any) -> Client:
        service = Service(self.models, limits=limits, log=self.lines.append, **options)  # type: ignore[arg-type]
        self.services.append(service)
        return Client(application(service, origins=origins))


@pytest.fixture
def start() -> Iterator[Served]:
    made = Served()
    yield made
    made.models.go.set()
    for service in made.services:
        service.batcher.close()


@pytest.fixture
def client(start: Served) -> Client:
    return start()


def ask(client: Client, q: object = "one two", **fields: object) -> Any:
    """The answer to a request in JSON, which must be accepted."""
    response = client.post("/translate", {"q": q, "source": "en", "target": "de", **fields})
    assert response.status == 200, response.text
    return response.json()


def refused(response: Any, status: int) -> str:
    """Why a request was refused."""
    assert response.status == status, response.text
    assert response.headers["content-type"] == "application/json"
    (error,) = response.json().items()
    assert error[0] == "error"
    return str(error[1])


def test_a_byte_order_mark(client: Client) -> None:
    """As some programs on Windows write it."""
    body = b'\xef\xbb\xbf{"q": "one", "source": "en", "target": "de"}'
    response = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert response.json() == {"translatedText": "eno"}


def test_equal_lines_are_translated_once(client: Client, start: Served) -> None:
    """So are blank ones: they are as good as free, however many there are."""
    fields = {"alternatives": 1, "alignments": True}
    answer = ask(client, ["one\n\ntwo\none\n\n", "two"], **fields)
    assert start.models.batches == [["one", "", "two"]]
    assert answer["translatedText"] == ["eno\n\nowt\neno\n\n", "owt"]
    assert answer["alternatives"] == [["eno!\n!\nowt!\neno!\n!\n"], ["owt!"]]
    assert [line["source"] for line in answer["alignments"][0]] == [["one"], [], ["two"], ["one"], []]


def test_a_list(client: Client) -> None:
    assert ask(client, ["one", "", "two"]) == {"translatedText": ["eno", "", "owt"]}
    assert ask(client, []) == {"translatedText": []}


def test_lines_stay_lines(client: Client, start: Served) -> None:
    """Each is translated by itself, as a line of a file; a carriage return before its end is no part of it."""
    assert ask(client, "one\n\ntwo\r\nsix") == {"translatedText": "eno\n\nowt\r\nxis"}
    assert start.models.batches == [["one", "", "two", "six"]]


def test_fields_in_the_address(client: Client) -> None:
    """As some clients of LibreTranslate send them: deep-translator all of them, others the key."""
    path = "/translate?q=na%C3%AFve%20one&source=en&target=de"
    assert client.post(path).json() == {"translatedText": "evïan eno"}
    assert client.post("/translate?source=en&format=text", form={"q": "one", "target": "de"}).status == 200
    assert client.post(f"{path}&x=1", RIGHT).json() == {"translatedText": "eno"}
    assert refused(client.post(f"{path}&q=two"), 400) == "'q' is given more than once"


def test_alternatives(client: Client) -> None:
    assert ask(client, "one", alternatives=2) == {"translatedText": "eno", "alternatives": ["eno!", "eno!!"]}
    assert ask(client, ["one", "two"], alternatives=1) == {
        "translatedText": ["eno", "owt"],
        "alternatives": [["eno!"], ["owt!"]],
    }


def test_alignments(client: Client) -> None:
    """The last weight of a row is that of the end."""
    one = {"source": ["one", "."], "target": ["eno", "."], "weights": [[0.75, 0.125, 0.125], [0.125, 0.125, 0.75]]}
    other = {"source": ["six"], "target": ["xis"], "weights": [[0.75, 0.25]]}
    assert ask(client, "one .\nsix", alignments=True) == {
        "translatedText": "eno .\nxis",
        "alignments": [one, other],
    }
    assert ask(client, ["six"], alignments="true") == {"translatedText": ["xis"], "alignments": [[other]]}


def test_word_scores(client: Client) -> None:
    """Of the best translation, for each line."""
    one, other = ({"words": words, "scores": [-0.5] * len(words), "end": -0.25} for words in (["eno", "owt"], []))
    answer = ask(client, "one two\n\n", word_scores=True, alternatives=1)
    assert answer == {"translatedText": "eno owt\n\n", "alternatives": ["eno owt!\n!\n"], "wordScores": [one, other]}
    assert ask(client, ["<b>one</b> two"], format="html", word_scores=True)["wordScores"] == [[one]]
    assert "wordScores" not in ask(client, word_scores=False)


@pytest.mark.parametrize("in_form", [False, True])
def test_options_for_one_request(client: Client, start: Served, in_form: bool) -> None:
    """Every field that has the name of an option of the translator is that option."""
    fields = {"glossary": {"one": "eins"}, "forbidden": ["zwei"], "protect": ["numbers"], "split_sentences": False}
    if in_form:
        texts = {name: json.dumps(value) for name, value in fields.items()}
        assert client.post("/translate", form={"q": "one", "source": "en", "target": "de", **texts}).status == 200
    else:
        ask(client, "one", **fields)
    ask(client, "two", glossary=None, split_sentences=True)
    ask(client, "six", split_sentences="de-AT")
    first, second, third = (kind.options for kind in start.models.kinds)
    assert third.split_sentences == "de-AT"
    assert first.glossary is not None
    assert [term.instead for term in first.glossary.occurrences("one")] == ["eins"]
    assert first.forbidden == ("zwei",)
    assert (first.protect, first.split_sentences) == (["numbers"], False)
    assert (second.glossary, second.forbidden, second.protect, second.split_sentences) == (None, (), None, "en")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"glossary": "one"}, "`glossary` is 'one'; must be a Glossary, or a mapping of terms"),
        (
            {"glossary": {f"a{number}": "b" for number in range(10_001)}},
            "Invalid request: glossary parameter must have",
        ),
        ({"forbidden": "one"}, "`forbidden` is 'one'; allowed: a list"),
        ({"forbidden": [1] * 100_000}, "`forbidden` is 1; allowed: a list"),
        ({"protect": "numbers"}, "`protect` is 'numbers'; allowed: a list"),
        ({"protect": [".*"]}, "`protect` is ['.*']; '.*' matches empty text or whole sentences"),
        ({"protect": ["a"] * 51}, "`protect` is ['a', 'a', 'a', 'a', 'a', 'a', ...]; List should have at most 50"),
        ({"split_sentences": 7}, "Invalid request: split_sentences parameter Input should be a valid"),
    ],
)
def test_wrong_options(start: Served, changes: dict[str, object], why: str) -> None:
    client = start(limits=Limits())
    assert refused(client.post("/translate", {**RIGHT, **changes}), 400).startswith(why)


def test_another_option_is_a_field_with_its_name(
    client: Client, start: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    class MoreFields(requests.Fields):
        beam_size: int = 1

    monkeypatch.setattr(requests, "Fields", MoreFields)
    ask(client, "one", beam_size=7)
    ask(client, "two")
    assert [kind.options.beam_size for kind in start.models.kinds] == [7, None]


def test_markup(client: Client) -> None:
    """Tags stay around their words, and in alternatives."""
    html = "<p>a <b>two</b></p>"
    answer = ask(client, html, format="html", alternatives=1)
    assert answer == {"translatedText": "<p>a <b>owt</b></p>", "alternatives": ["<p>a <b>owt</b>!</p>"]}
    assert ask(client, ["<hr>", "a &lt; b"], format="html") == {"translatedText": ["<hr>", "a &lt; b"]}
    assert ask(client, "one <b>two</b>", format="html", source="fr") == {"translatedText": "eno <b>owt</b>"}


def test_languages(client: Client) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "fr", "name": "French", "targets": ["de"]},
    ]


def test_settings(client: Client) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 20
    assert settings["keyRequired"] is False
    assert settings["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }
    assert settings["pairs"][1] == {"source": "fr", "target": "de", "alternatives": MOST - 1, "alignments": False}


FORM = {"content-type": "application/x-www-form-urlencoded"}
RIGHT = {"q": "one", "source": "en", "target": "de"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ["a", None]}, "Invalid request: q parameter must be a text, or a list of texts"),
        ({"q": "x" * 21}, "Invalid request: request (21) exceeds text limit (20)"),
        ({"q": ["", "", "", ""]}, "Invalid request: request (4) exceeds text limit (3)"),
        ({"q": "a\ud800"}, "the body is not JSON"),
        ({"source": 1}, "Invalid request: source parameter Input should be a valid string"),
        ({"source": "de", "target": "fr"}, "French (fr) is not available as a target language from German (de)"),
        ({"target": "x" * 99}, f"{'x' * 40}... is not supported"),
        ({"format": "pdf"}, "pdf format is not supported; supported: text, "),
        ({"format": "srt"}, "q"),
        ({"format": "html", "alignments": True}, "alignments go with format text, not html"),
        (
            {"q": ["a\n" * 9, "a " * 9], "alignments": True},
            "alignments would have 90 weights, at most 80",
        ),
        ({"alternatives": MOST}, f"Invalid request: alternatives parameter must be <= {MOST - 1}"),
        ({"alternatives": 10**999}, "Invalid request: alternatives parameter "),
        ({"alignments": "perhaps"}, "Invalid request: alignments parameter Input should be a valid boolean"),
        ({"source": "fr", "alignments": True}, "alignments: the model for fr → de has no attention to read them from"),
    ],
)
def test_wrong_fields(start: Served, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], why: str) -> None:
    monkeypatch.setattr("nmt.serving.requests.MOST_WEIGHTS", 80)
    client = start(limits=Limits(characters=20, texts=3))
    response = client.post("/translate", {**RIGHT, **changes})
    assert refused(response, 400).startswith(why)
    assert start.models.batches == []


def test_all_mistakes_are_told_at_once(client: Client) -> None:
    response = client.post("/translate", {"q": 1, "source": "xx", "target": "de", "alternatives": "many"})
    why = refused(response, 400)
    assert "q parameter must be a text" in why
    assert "alternatives parameter is not a number" in why
    response = client.post("/translate", {"q": "x" * 21, "source": "xx", "target": "de"})
    assert "text limit (20); " in refused(response, 400)
    assert "xx is not supported" in refused(response, 400)


def test_of_very_many_mistakes_the_first_are_told(start: Served) -> None:
    """A subtitle file of broken times would be answered with five times its size."""
    client = start(limits=Limits())
    times = "00:00:01,000 -> 00:00:02\n" * 150
    why = refused(client.post("/translate", {**RIGHT, "q": times, "format": "srt"}), 400)
    assert why.count("; expected times") == 20
    assert why.endswith("q: 130 more lines are malformed")


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (b'{"q": "one"', "application/json", "the body is not JSON: "),
        (b'["one"]', "application/json", "Invalid JSON format: the body must be an object"),
        (b"NaN", "application/json", "Invalid JSON format: the body must be an object"),
        (b'{"q": "\xff"}', "application/json; charset=utf-8", "the body is not JSON: invalid unicode"),
        (b'{"a":' * 80, "application/json", "the body is not JSON: "),
        (b"", "application/json", "the body is not JSON: "),
        (b"", "", "Invalid request: missing q parameter; Invalid request: missing source parameter"),
        (b"q=%ff&source=en&target=de", "application/x-www-form-urlencoded", "the form is not UTF-8"),
        ("q=é".encode(), "application/x-www-form-urlencoded", "the form is not UTF-8"),
        (b"q=%ED%A0%80", "application/x-www-form-urlencoded", "the form is not UTF-8"),
        (b"&".join([b"a=b"] * 101), "application/x-www-form-urlencoded", "the form has more than 100 fields"),
        (
            b' {"q": "one"}',
            "application/x-www-form-urlencoded",
            f"the body looks like JSON, but its content-type is {FORM['content-type']}; send content-type: ",
        ),
        (b"q=a", "text/plain", "content-type: must be application/json, application/x-www-form-urlencoded, or multi"),
        (b"q=a", "", "content-type: must be application/json, application/x-www-form-urlencoded, or multi"),
    ],
)
def test_wrong_bodies(client: Client, content: bytes, kind: str, why: str) -> None:
    response = client.post("/translate", content=content, headers={"content-type": kind} if kind else {})
    assert refused(response, 400).startswith(why)


def test_a_body_that_is_too_large(client: Client) -> None:
    response = client.post("/translate", content=b"x" * 501)
    assert refused(response, 413) == "the body has more than 500 bytes"


def test_what_is_refused_before_its_body_is_read(start: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is announced to be too large, and a request that comes too soon."""
    client = start(limits=Limits(body=500, per_minute=1))
    monkeypatch.setattr(api, "read_fields", lambda *_: pytest.fail("was parsed"))
    assert refused(client.post("/translate", headers={"content-length": "501"}), 413)
    assert refused(client.post("/translate", content=b"[" * 400), 429)


def test_wrong_paths_and_methods(client: Client) -> None:
    assert refused(client.get("/nothing"), 404) == "Not Found: GET /nothing"
    assert refused(client.get("/translate"), 405) == "Method Not Allowed: GET /translate; allowed: POST"
    assert refused(client.post("/languages"), 405) == "Method Not Allowed: POST /languages; allowed: GET, HEAD"
    assert refused(client.get("/languages/"), 404)
    assert refused(client.get("/../api.py"), 404)
    assert refused(client.get("/a%0d%0ab"), 404) == "Not Found: GET /a\r\nb"
    assert client.get("/script.js", headers={"range": "bytes=9-1"}).content == client.get("/script.js").content


def test_a_model_that_fails(client: Client, start: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """The server lives on, and its log has no text."""
    body = {"source": "en", "target": "de"}
    assert refused(client.post("/translate", {**body, "q": "NaN"}), 500) == "the model computes NaN"
    assert refused(client.post("/translate", {**body, "q": "crash"}), 500) == "the server failed; its log says more"
    assert ask(client) == {"translatedText": "eno owt"}
    written = capfd.readouterr().err
    assert re.fullmatch(r"nmt-serve: ZeroDivisionError in \S+doubles\.py, line \d+\n", written)


def test_a_log_that_cannot_be_written_loses_no_answer(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    api.written_to_log("a request")
    crash = {"q": "crash", "source": "en", "target": "de"}
    assert refused(client.post("/translate", crash), 500) == "the server failed; its log says more"


def test_a_full_queue(start: Served) -> None:
    client = start()
    start.models.go.clear()
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(ask, client, "first")]
        assert start.models.begun.wait(20)
        answers += [pool.submit(ask, client, text) for text in ("second", "third")]
        _until(lambda: start.services[-1].batcher.waiting == 2)
        response = client.post("/translate", RIGHT)
        assert refused(response, 503) == "2 requests are waiting already; try again later"
        assert response.headers["retry-after"] == "5"
        start.models.go.set()
        assert [answer.result()["translatedText"] for answer in answers] == ["tsrif", "dnoces", "driht"]
    assert f"nmt_characters_total {len('firstsecondthird')}.0\n" in client.get("/metrics").text


def test_a_request_that_takes_too_long(start: Served) -> None:
    """It leaves the queue."""
    client = start(limits=Limits(seconds=0.3))
    start.models.go.clear()
    with ThreadPoolExecutor(2) as pool:
        for answer in [pool.submit(client.post, "/translate", RIGHT) for _ in range(2)]:
            assert refused(answer.result(), 503) == "no answer within 0.3 seconds; send less, or try again later"
    _until(lambda: not start.services[-1].batcher.waiting)
    start.models.go.set()
    assert ask(client) == {"translatedText": "eno owt"}


def test_a_client_that_goes(start: Served) -> None:
    """Its request leaves the queue."""
    client = start()
    start.models.go.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, client, "first")
        assert start.models.begun.wait(20)
        gone = client.request("POST", "/translate", content=b"q=x&source=en&target=de", headers=FORM, stay=False)
        assert gone.status == 499
        assert not start.services[-1].batcher.waiting
        assert not start.services[-1].held > 1
        start.models.go.set()
        assert first.result() == {"translatedText": "tsrif"}
    assert start.models.batches == [["first"]]


def test_too_many_requests_a_minute(start: Served) -> None:
    client = start(limits=Limits(per_minute=2))
    ask(client)
    ask(client)
    response = client.post("/translate", RIGHT)
    assert refused(response, 429) == "Slowdown: more than 2 requests a minute; wait a moment"
    assert 25 <= int(response.headers["retry-after"]) <= 31
    assert client.get("/languages").status == 200


def test_keys(start: Served) -> None:
    client = start(keys=["right", "änder"])
    assert refused(client.post("/translate", RIGHT), 400).startswith(
        "Please contact the server operator to get an API key"
    )
    for key in ("wrong", "righ", "right "):
        assert refused(client.post("/translate", {**RIGHT, "api_key": key}), 403) == "Invalid API key"
    assert ask(client, api_key="right") == ask(client, api_key="änder") == {"translatedText": "eno owt"}
    assert client.get("/frontend/settings").json()["keyRequired"] is True
    assert client.get("/languages").status == 200


def test_wrong_keys_have_the_rate_of_their_address(start: Served) -> None:
    """So keys cannot be guessed faster than that; who has a right one does not notice."""
    client = start(keys=["right"], limits=Limits(per_minute=2))
    for key in ("a", "b"):
        refused(client.post("/translate", {**RIGHT, "api_key": key}), 403)
    for key in ("c", None):
        refused(client.post("/translate", {**RIGHT, "api_key": key}), 429)
    ask(client, api_key="right")


def test_keys_have_rates_of_their_own(start: Served) -> None:
    client = start(keys=["one", "other"], limits=Limits(per_minute=1))
    ask(client, api_key="one")
    refused(client.post("/translate", {**RIGHT, "api_key": "one"}), 429)
    ask(client, api_key="other")


def test_other_pages_may_not_ask_unless_told(start: Served) -> None:
    origin = {"origin": "https://example.org"}
    assert "access-control-allow-origin" not in start().post("/translate", RIGHT, headers=origin).headers
    client = start(origins=("https://example.org",))
    asked = {**origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    for response in (
        client.request("OPTIONS", "/translate", headers=asked),
        client.post("/translate", RIGHT, headers=origin),
    ):
        assert response.status == 200
        assert response.headers["access-control-allow-origin"] == "https://example.org"
    other = {"origin": "https://example.com"}
    assert "access-control-allow-origin" not in client.post("/translate", RIGHT, headers=other).headers
    response = client.request("OPTIONS", "/translate", headers={**asked, **other})
    assert response.status == 400
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("allowed", "answered"),
    [("*", "*"), ("https://example.org", "https://example.org"), ("https://example.com", None)],
)
def test_other_pages_may_read_that_the_server_failed(start: Served, allowed: str, answered: str | None) -> None:
    client = start(origins=(allowed,))
    for _ in range(2):
        response = client.post("/translate", {**RIGHT, "q": "crash"}, headers={"origin": "https://example.org"})
        assert refused(response, 500) == "the server failed; its log says more"
        assert response.headers.get("access-control-allow-origin") == answered
        assert response.headers["x-content-type-options"] == "nosniff"


def test_a_server_that_stops(client: Client, start: Served) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    start.services[0].stopping = True
    health, refusal = client.get("/health"), client.post("/translate", RIGHT)
    assert health.status == 503
    assert health.json() == {"status": "stopping", "error": "the server is stopping; try again later"}
    assert refused(refusal, 503) == "the server is stopping; try again later"
    assert health.headers["retry-after"] == refusal.headers["retry-after"]


@pytest.mark.parametrize("name", ["read_request", "answer_to"])
def test_others_are_answered_while_a_document_is_read_or_written(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """All in one loop, as in the server."""
    asked, answered, before = threading.Event(), threading.Event(), getattr(api, name)

    def waiting(*request: object) -> Any:
        asked.set()
        assert answered.wait(20)
        return before(*request)

    async def both() -> tuple[Answer, Answer]:
        body = {"content-type": "application/json"}
        first = asyncio.create_task(client.request_in_loop("POST", "/translate", json.dumps(RIGHT).encode(), body))
        await asyncio.to_thread(asked.wait, 20)
        second = await client.request_in_loop("GET", "/health")
        answered.set()
        return await first, second

    monkeypatch.setattr(api, name, waiting)
    translation, health = asyncio.run(both())
    assert translation.json() == {"translatedText": "eno"}
    assert health.json() == {"status": "ok"}


def test_the_page(client: Client) -> None:
    """It loads nothing from elsewhere, and its browser is told so."""
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
    for file in re.findall(r'(?:href|src)="([^"]+)"', page.text):
        response = client.get(f"/{file}")
        assert response.status == 200
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "innerHTML" not in response.text
        assert "https://" not in response.text
    assert "<style" not in page.text
    assert not re.search(r"\son\w+=|<script>", page.text)


def test_metrics(client: Client) -> None:
    ask(client, "one\ntwo")
    client.get("/secret/text")
    client.post("/translate", {})
    text = client.get("/metrics").text
    numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert numbers['nmt_requests_total{path="/translate",status="200"}'] == "1.0"
    assert numbers['nmt_requests_total{path="/translate",status="400"}'] == "1.0"
    assert numbers['nmt_requests_total{path="other",status="404"}'] == "1.0"
    assert numbers["nmt_request_seconds_count"] == numbers['nmt_request_seconds_bucket{le="+Inf"}'] == "1.0"
    assert numbers["nmt_characters_total"] == "7.0"
    assert numbers["nmt_waiting_requests"] == "0.0"
    bounds = ("1.0", "2.0", "4.0", "+Inf")
    assert [numbers[f'nmt_batch_lines_bucket{{le="{bound}"}}'] for bound in bounds] == ["0.0", "1.0", "1.0", "1.0"]
    assert numbers["nmt_batch_lines_sum"] == "2.0"
    assert "secret" not in text


def test_the_log_has_no_text(client: Client, start: Served) -> None:
    ask(client, "secret")
    client.get("/secret?q=secret")
    assert len(start.lines) == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d POST /translate 200 \d+ ms", start.lines[0])
    assert start.lines[1].split()[2:5] == ["GET", "other", "404"]


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it takes too long")
