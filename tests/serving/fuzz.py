"""Ten thousand requests, right, wrong and absurd, to a real server: it may answer 2xx or 4xx, and take no more memory.

python -m tests.serving.fuzz [--requests 10000] [--seed 1]
"""

import argparse
import json
import socket
import sys
import tempfile
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.random_model import WORDS, save_random_model
from tests.serving.process import Server

METHODS = ("POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE")
PATHS = (
    *("/translate", "/translate_file", "/detect", "/suggest", "/", "/languages", "/health", "/metrics", "/spec"),
    *("/download_file/x", "/frontend/settings", "/script.js", "/nothing"),
)
TYPES = ("application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=b")
PARTS = (  # of forms in several parts, and of what is none
    *(b"--b\r\n", b"--b--", b"\r\n", b"\r\n\r\n", b"one two", b"\xff", b"Content-Disposition: form-data; "),
    *(b'name="file"; filename="a.txt"', b'name="q"', b'name="source"\r\n\r\nen\r\n', b'name="target"\r\n\r\nde\r\n'),
    b'--b\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n',
    b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n',
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n<b>a dog</b>\r\n',
    b"Content-Transfer-Encoding: base64\r\n",
)
MOST_GROWTH = 40  # MB of the second half of the requests: buffers of sizes that had not come before


class Sent(NamedTuple):
    method: str
    path: str
    kind: str | None
    body: bytes


def bodies() -> st.SearchStrategy[tuple[str | None, bytes]]:
    """The type of a body, and the body, in most cases one that is almost right."""
    right = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
    anything = st.characters() | st.sampled_from("\ud800\udfff\x00\n\r\t\u2028\ufeff\u202e\U0001f600é▁⁇&<>")
    texts = (
        right | st.text(anything, max_size=60) | st.text(anything, min_size=1, max_size=3).map(lambda text: text * 900)
    )
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3))
    fields = st.fixed_dictionaries(
        {"q": texts | st.lists(texts, max_size=5) | values},
        optional={
            "source": st.sampled_from(["en", "auto", "de", "", "EN", "\udc00"]) | values,
            "target": st.sampled_from(["en", "de", "auto", ""]) | values,
            "format": st.sampled_from(["text", "paragraphs", "html", "srt", "vtt", ""]) | values,
            "alternatives": st.integers(-2, 9) | values,
            "alignments": st.booleans() | values,
            "word_scores": st.booleans() | values,
            "glossary": st.dictionaries(texts, texts, max_size=3) | values,
            "forbidden": st.lists(texts, max_size=3) | values,
            "protect": st.lists(st.sampled_from(["numbers", r"\d+", "(", ".*", "(a|a)+b", "a{999999}"]) | texts)
            | values,
            "split_sentences": st.booleans() | values,
            "api_key": values,
        },
    )
    right_fields = st.fixed_dictionaries(
        {"q": right | st.lists(right, max_size=5) | st.text(max_size=60), "source": st.sampled_from(["en", "auto"])},
        optional={"alternatives": st.integers(0, 2), "alignments": st.booleans(), "format": st.just("text")},
    )
    tags = st.lists(st.sampled_from([*WORDS, *"<>&\"'=/ ", "<b>", "</b>", "<p>", "<a title='", "&amp;", "<!--", "-->"]))
    in_html = st.fixed_dictionaries({"q": tags.map("".join), "source": st.just("en"), "format": st.just("html")})
    right_fields = right_fields | in_html
    likely = st.builds(lambda drawn: {"target": "de", **drawn}, right_fields)
    almost = fields.map(lambda drawn: {"source": "en", "target": "de", **drawn})
    objects = (likely | likely | likely | almost | values).map(lambda value: json.dumps(value).encode())
    forms = st.dictionaries(st.sampled_from(["q", "source", "target", "alternatives", "x"]), texts, max_size=5)
    in_form = forms.map(lambda form: urlencode({"source": "en", "target": "de", **form}, errors="replace").encode())
    broken = objects.flatmap(lambda body: st.integers(0, len(body)).map(lambda end: body[:end]))
    deep = st.integers(1, 30_000).map(lambda depth: b"[" * depth)
    as_parts = st.tuples(st.just(TYPES[3]), st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join))
    kinds = st.none() | st.sampled_from(TYPES)
    as_right = st.tuples(st.just(TYPES[0]), objects)
    as_json = st.tuples(st.just(TYPES[0]), objects | broken | deep)
    as_form = st.tuples(st.just(TYPES[1]), in_form | st.binary(max_size=80))
    return as_right | as_parts | as_json | as_form | st.tuples(kinds, st.binary(max_size=200) | objects)


def requests() -> st.SearchStrategy[Sent]:
    likely = st.tuples(st.sampled_from(PATHS[:3]), bodies()).map(lambda drawn: Sent("POST", drawn[0], *drawn[1]))
    odd = st.tuples(st.sampled_from(METHODS), st.sampled_from(PATHS), bodies()).map(
        lambda drawn: Sent(drawn[0], drawn[1], *drawn[2])
    )
    return likely | likely | odd


def send(port: int, sent: Sent) -> int:
    """The status of the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        headers = {} if sent.kind is None else {"content-type": sent.kind}
        connection.request(sent.method, sent.path, sent.body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def send_noise(port: int, noise: bytes) -> None:
    """Bytes that are no HTTP; whether they get an answer does not matter."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(noise)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statuses: Counter[int] = Counter()
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        model = save_random_model(Path(folder) / "model.safetensors")
        server = Server("--model", f"en-de={model}", "--max-characters", "2000", "--replace-unknown")

        @seed(options.seed)
        @settings(max_examples=options.requests, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(requests(), st.binary(max_size=100) | st.none())
        def fuzz(sent: Sent, noise: bytes | None) -> None:
            if noise is not None and sum(statuses.values()) % 10 == 0:
                send_noise(server.port, noise)
            status = send(server.port, sent)
            statuses[status] += 1
            assert 200 <= status < 500, (status, sent)
            if sum(statuses.values()) % (options.requests // 10) == 0:
                memory.append(server.memory())
                print(f"{sum(statuses.values())} requests, {memory[-1]:.0f} MB, {dict(statuses)}", flush=True)

        fuzz()
        assert send(server.port, Sent("POST", "/translate", TYPES[0], bytes(10_000_000))) == 413
        assert send(server.port, Sent("GET", "/health", None, b"")) == 200
        code, errors = server.stop()
    growth = memory[-1] - memory[len(memory) // 2]
    print(f"statuses {dict(sorted(statuses.items()))}; second half: {growth:+.0f} MB; exit code {code}{errors}")
    return 0 if code == 0 and growth < MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
