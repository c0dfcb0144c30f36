"""A real server and real clients: LibreTranslate's own, many at once, and some that wait when the server is stopped."""

import json
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

import nmt.serving.server
from nmt import signals
from nmt.cli import serve
from nmt.cli.models import Models
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import UserError
from nmt.serving.api import Service, application
from nmt.serving.server import listening
from tests.random_model import exported, text
from tests.serving.doubles import Backwards
from tests.serving.process import Server

LINES = text(30).splitlines()


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    made = Server("--model", f"en-de={model}", "--model", str(model))
    yield made
    code, errors = made.stop()
    assert code == 0, errors
    assert [line for line in errors if not line.startswith("nmt-serve: ")] == []


def ask(port: int, q: object, **fields: object) -> tuple[int, dict[str, object]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=200)
    body = json.dumps({"q": q, "source": "en", "target": "de", **fields})
    connection.request("POST", "/translate", body, {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.status, json.load(response)
    connection.close()
    return answer


@pytest.mark.slow
def test_a_client_of_libretranslate(server: Server, model: Path) -> None:
    api = pytest.importorskip("libretranslatepy", reason="the tests' extra has it").LibreTranslateAPI(server.url)
    (best,) = Translator.load(model).translate([LINES[0]])
    assert api.translate(LINES[0], "en", "de") == best[0].text
    assert api.translate(LINES[0], "auto", "en") == best[0].text
    assert [language["code"] for language in api.languages()] == ["en", "de"]
    pytest.importorskip("lingua", reason="it is in the extra detect")
    assert api.detect("Zwei Hunde spielen im Schnee.")[0]["language"] == "de"


@pytest.mark.slow
def test_answers_are_those_of_the_translator(server: Server, model: Path) -> None:
    """Of many clients at once, with and without what they may ask for besides."""
    translator = Translator.load(model)
    options = TranslationOptions(n_best=3, alignments=True, word_scores=True, split_sentences="en")
    expected = list(translator.translate(LINES, options))
    alone = [best[0].text for best in translator.translate(LINES, TranslationOptions(split_sentences="en"))]
    with ThreadPoolExecutor(20) as pool:
        plain = [pool.submit(ask, server.port, line) for line in LINES]
        rich = [
            pool.submit(ask, server.port, line, alternatives=2, alignments=True, word_scores=True) for line in LINES
        ]
        together = pool.submit(ask, server.port, "\n".join(LINES), alignments=False)
        assert together.result() == (200, {"translatedText": "\n".join(alone)})
        assert [future.result() for future in plain] == [(200, {"translatedText": line}) for line in alone]
    for future, best, line in zip(rich, expected, LINES, strict=True):
        status, answer = future.result()
        assert status == 200
        assert [answer["translatedText"], *answer["alternatives"]] == [one.text for one in best]  # type: ignore[misc]
        (alignment,) = answer["alignments"]  # type: ignore[misc]
        assert alignment["source"] == line.split()
        assert alignment["target"] == best[0].text.split()
        (scores,) = answer["wordScores"]  # type: ignore[misc]
        assert best[0].word_scores is not None
        assert scores["words"] == best[0].word_scores.words
        assert scores["scores"] == [pytest.approx(score, abs=1e-3) for score in best[0].word_scores.scores]
        assert best[0].soft_alignment is not None
        weights = best[0].soft_alignment.weights.tolist()
        assert alignment["weights"] == [[pytest.approx(weight, abs=1e-3) for weight in row] for row in weights]
    with urlopen(f"{server.url}/metrics") as response:
        batches = re.search(r"nmt_batch_lines_count (\d+)", response.read().decode())
    assert batches is not None
    assert int(batches[1]) < len(LINES)  # of more than three times as many lines


@pytest.mark.slow
@pytest.mark.parametrize("number", signals.WORDS)
def test_a_signal_loses_no_request(model: Path, number: int) -> None:
    """Whatever was accepted is answered, then the server refuses, and ends with 0."""
    clients = 12
    former = signal.signal(number, signal.default_int_handler)  # what is ignored, as in the background, stays ignored
    server = Server("--model", f"en-de={exported(model)}", "--beam-size", "12", "--max-texts", "30")
    signal.signal(number, former)
    with ThreadPoolExecutor(clients) as pool:
        answers = [pool.submit(ask, server.port, LINES) for _ in range(clients)]
        while f"nmt_characters_total {clients * sum(map(len, LINES))}.0\n" not in _metrics(server):
            time.sleep(0.01)
        code, errors = server.stop(number)
        statuses = [answer.result()[0] for answer in answers]
    assert statuses == [200] * clients
    assert (code, errors[2:]) == (0, [])
    with pytest.raises(ConnectionRefusedError):
        ask(server.port, "a")


def served() -> tuple[Service, socket.socket, Thread]:
    """A server in a thread."""
    service = Service(Backwards())  # type: ignore[arg-type]
    opened = listening("127.0.0.1", 0)
    options = {"program": "nmt-serve"}
    thread = Thread(target=nmt.serving.server.serve, args=(application(service), service, opened), kwargs=options)
    opened.listen()  # the thread does so too, but perhaps not before the client connects
    thread.start()
    return service, opened, thread


@pytest.mark.slow
@pytest.mark.parametrize("has_uvloop", [True, False])
def test_a_client_that_does_not_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, has_uvloop: bool
) -> None:
    """It asks for 15 MB, more than sockets hold, and reads none of it; the log has no word of it."""
    monkeypatch.setattr(nmt.serving.server, "GRACE", 1)
    if has_uvloop:
        pytest.importorskip("uvloop", reason="there is none for Windows")
    else:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    service, opened, thread = served()
    with socket.create_connection(opened.getsockname()) as client:
        client.sendall(b"GET /script.js HTTP/1.1\r\nhost: test\r\n\r\n" * 4000)
        answered, before, sent = 0.0, -1.0, {"path": "/script.js", "status": "200"}
        while not answered or answered > before:  # until no answer goes out any more
            time.sleep(0.5)
            answered, before = service.metrics.registry.get_sample_value("nmt_requests_total", sent) or 0, answered
        service.stopping = True
        thread.join(60)
        assert not thread.is_alive()
    assert not caplog.records


def test_a_head_that_is_sent_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of the first request of a connection nor that of the next one; a body, and no request, may take
    longer."""
    monkeypatch.setattr(nmt.serving.server, "HEAD", 0.5)
    service, opened, thread = served()
    body = b"q=one&source=en&target=de"
    head = b"POST /translate HTTP/1.1\r\nhost: test\r\ncontent-type: application/x-www-form-urlencoded\r\n"
    with (
        socket.create_connection(opened.getsockname(), 20) as silent,
        socket.create_connection(opened.getsockname(), 20) as slow,
    ):
        silent.sendall(b"GET / HT")
        slow.sendall(head + b"content-length: %d\r\n\r\n" % len(body))
        assert silent.recv(1) == b""
        time.sleep(0.2)
        slow.sendall(body)
        answer = slow.recv(10_000)
        assert b'{"translatedText":"eno"}' in answer
        time.sleep(1)
        slow.sendall(b"GET / HT")
        assert slow.recv(1) == b""
    service.stopping = True
    thread.join(60)
    assert not thread.is_alive()


def _metrics(server: Server) -> str:
    with urlopen(f"{server.url}/metrics") as response:
        return str(response.read().decode())


def test_wrong_options(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with values, files and models is told at once."""
    keys = tmp_path / "keys"
    keys.write_text("\n")
    wrong = ["--model", str(model), "--model", "x/none", "--api-keys", str(keys), "--beam-size", "0"]
    typed = ["--max-texts", "0", "--max-seconds", "no", "--cors", "example.org", "--port", "x"]
    assert serve.main([*typed, *wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith("nmt-serve: 7 problems:\n")
    for option in ("--max-texts 0: ", "--max-seconds no: ", "--cors example.org: ", "--port x: "):
        assert option in said
    for part in ("--beam-size is 0; ", "x/none: no such model file", f"--api-keys {keys}: the file is empty"):
        assert part in said


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://example.org", "https://example.org"),
        ("HTTPS://Example.org", "https://example.org"),
        ("https://a.example:80", "https://a.example:80"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("*", "*"),
    ],
)
def test_an_origin_is_read_as_browsers_send_it(given: str, sent: str) -> None:
    assert serve.parser().read(["--cors", given])[0].cors == [sent]


@pytest.mark.parametrize(
    "given",
    [
        *("example.org", "https://", "https://a.example/", "https://a.example/x", "https://a.example?x", "null", ""),
        *(
            "https://me@a.example",
            "https://a.example:",
            "https://a.example:443",
            "http://a.example:80",
            "ftp://a.example",
        ),
        *("https://b\u00fccher.example", "http://a:070", "http://a:65536", "http://[0:0:0::1]", "http://[1:2]"),
    ],
)
def test_an_origin_that_no_browser_sends(given: str) -> None:
    _, (problem,) = serve.parser().read(["--cors", given, "--cors", "*"])
    assert problem.startswith(f"--cors {shlex.quote(given)}: an origin is scheme and host, perhaps with a port, such")


def test_a_path_may_look_like_a_pair(model: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What exists by the whole name is meant, as in nmt-eval."""
    shutil.copyfile(model, here / "my-run=v2")
    (here / "my-terms=v2").write_text("dog\tHund\n", encoding="utf-8")
    assert serve.main(["--model", "my-run=v2", "--glossary", "my-terms=v2", "--beam-size", "x"]) == 2
    assert capsys.readouterr().err.startswith("nmt-serve: error: --beam-size is 'x'; ")
    assert serve.main(["--model", "no-run=v2", "--glossary", "no-terms=v2", "--port", "0"]) == 2
    told = capsys.readouterr().err.splitlines()[1:]
    assert [line.split(":")[0] for line in told] == ["  - v2", "  - --glossary", "  - v2"]
    assert serve.main(["--model", "en-de=", "--port", "0"]) == 2
    assert capsys.readouterr().err == "nmt-serve: error: en-de=: no such model file or run folder\n"


def test_an_export_leaves_the_gpu_to_other_models(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = {}

    def load(models: Models) -> None:
        devices[models.paths[0].name] = models.device
        raise UserError("not loaded")

    other = shutil.copy(model, tmp_path / "export")
    monkeypatch.setattr("nmt.models.model_file.is_export", lambda path: path.name == "export")
    monkeypatch.setattr("nmt.cli.models.device_name", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(Models, "load", load)
    assert serve.main(["--model", str(other), "--model", f"en-de={model}", "--port", "0"]) == 2
    assert devices == {"export": "cpu", model.name: "cuda"}


def test_a_glossary_is_for_one_pair(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tball\n")
    assert serve.main(["--model", str(model), "--glossary", f"en-fr={terms}", "--port", "0"]) == 2
    assert capsys.readouterr().err.endswith("--glossary: no model translates en → fr\n")
    assert serve.main(["--model", str(model), "--model", f"en-de={model}", "--glossary", str(terms)]) == 2
    assert f"say for which of the models it is, as in --glossary en-de={terms}" in capsys.readouterr().err
    twice = ["--glossary", str(terms), "--glossary", f"EN-en={terms}"]
    assert serve.main(["--model", str(model), *twice, "--port", "0"]) == 2
    assert capsys.readouterr().err.endswith("--glossary: there are several for en → en; put all terms into one file\n")


def test_a_port_that_is_taken(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve.main(["--model", str(model), "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert error == f"nmt-serve: error: cannot listen on --host 127.0.0.1 --port {port}: Address already in use\n"


def test_a_port_is_one_servers_on_windows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SO_REUSEADDR would let another one have it; another option of Linux stands for what Windows has instead."""
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    with listening("127.0.0.1", 0) as opened:
        options = socket.SO_REUSEADDR, socket.SO_KEEPALIVE
        assert [opened.getsockopt(socket.SOL_SOCKET, option) for option in options] == [0, 1]


def test_two_models_for_one_pair(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = shutil.copy(model, tmp_path / "other.safetensors")
    assert serve.main(["--model", str(model), "--model", str(other), "--port", "0"]) == 2
    assert capsys.readouterr().err == (
        f"nmt-serve: error: {model} and {other} both translate en → en; give one of them, or name the languages of "
        f"one, as in --model en-de={other}\n"
    )
    assert serve.main(["--model", str(model), "--model", f"EN-EN={other}", "--port", "0"]) == 2
    assert f"{model} and {other} both translate en → en; " in capsys.readouterr().err


def test_without_the_extra(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert serve.main(["--model", str(model)]) == 2
    assert capsys.readouterr().err == "nmt-serve: error: uvicorn is not installed: pip install 'nmt-toolkit[serve]'\n"
