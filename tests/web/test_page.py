"""The page that translates by itself: its programs against ours, run by Node.js; its files; and all in a Chromium.

The last needs the npm package onnxruntime-web: ONNXRUNTIME_WEB=FILE in the environment. With TAKE_PICTURES=FOLDER it
leaves pictures there, for a person to look at.
"""

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

from nmt.cli import export
from nmt.config.schema import DecodingConfig, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.data.vocabulary import word_model
from nmt.decoding.batched_search import longest_translation, shortest_translation
from nmt.decoding.engines import coverage_penalty
from nmt.decoding.graph_files import Graphs
from nmt.decoding.runtime import Engine
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.search.rules import rules_of
from nmt.symbols import END
from nmt.web.export import PAGE, _subwords
from nmt.web.package import PROGRAM, RUNTIME
from tests.decoding.tables import beam_search, random_tables
from tests.known_model import save_known_model
from tests.random_model import save_random_model
from tests.serving.browser import CHROMIUM, DRIVER, Browser

NODE = shutil.which("node")
PACKAGE = os.environ.get("ONNXRUNTIME_WEB")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js")

CORPUS = ["The old dog sleeps.", "Two men are reading the newspaper.", "Ein alter Hund schläft.", "dog dogs 12 ½ ﬁ"] * 3
CHARACTERS = (
    " \t\n\0\x01\x1c\x85\xa0\xad\u2003\u200b\u200d\u2028\u3000\u2581\ufeff\ufffd"
    "aAbdgoeinst.,!?'\"<>@&0129éÅÅÅßẞİıſﬁ½①™…ＡｶﾞﷺΩЖשכ中あกक्षกำ한"
    "\u0300\u0301\u0308\u0323\u1100\u1161\u11a8😀👨❤️🇩🇪𝐀\U0002f800"
)
TEXTS = [
    *CORPUS[:4], "", " ", "  two   spaces ", "▁ ▁a", "<BT> a dog", " <BT>a", "▁<BT> x<BT>",
    "</s> <unk> <0x41>", "a@@ b dog@@", "👨‍👩‍👧 🇩🇪", "e\u0301e\u0308\u0323", "\u1112\u1161\u11ab", "　全角　ＡＢＣ",
]  # fmt: skip


class Rows(NamedTuple):
    """The state of the tables below: the attention so far."""

    coverage: Array

    def select(self, rows: Array) -> "Rows":
        return Rows(self.coverage[rows.ravel()])

    def covered(self) -> tuple[Array, None]:
        return self.coverage, None


def subword_models() -> dict[str, Subwords]:
    models = {}
    for kind, normalization, bytes_too, lowercase in [
        ("bpe", "nmt_nfkc", True, False), ("bpe", "nfkc", False, True), ("bpe", "identity", False, False),
        ("unigram", "nmt_nfkc", False, True), ("unigram", "nfkc", True, False), ("unigram", "identity", False, False),
        ("char", "nmt_nfkc", False, False), ("word", "nmt_nfkc", False, False),
    ]:  # fmt: skip
        given = {"type": kind, "size": 120 + 256 * bytes_too, "normalization": normalization, "lowercase": lowercase}
        settings = SubwordsConfig.model_validate({**given, "byte_fallback": bytes_too})
        if kind == "unigram":
            settings = settings.model_copy(update={"size": 60 + 256 * bytes_too})
        models[f"{kind} {normalization}"] = Subwords.train(CORPUS, settings=settings)
    for name in ("bpe nfkc", "unigram identity", "word nmt_nfkc"):
        models[f"{name} with symbols"] = models[name].with_symbols(["<bt>", "dog"])
    return models | {
        "vocabulary": Subwords(word_model(["dog", "two", "▁", "a"], "")),
        "joiner": Subwords(word_model(["a@@", "b", "dog@@"], "@@")),
    }


def decodings() -> Iterator[DecodingConfig]:
    rules = [
        {},
        {"minimum_length": 3},
        {"minimum_length_ratio": 1.1},
        {"no_repeat_ngram_size": 2},
        {"suppress_unknown": True},
    ]
    for beam in (1, 2, 5):
        for penalty in ("none", "average", 0.6):
            for more in [*rules, {"coverage_penalty": 0.7}, {"max_length_ratio": 0.0, "max_length_extra": 3}]:
                yield DecodingConfig.model_validate({"beam_size": beam, "length_penalty": penalty, **more})


def expected_search(table: Array, weights: Array, source: int, decoding: DecodingConfig, n_best: int) -> list[Any]:
    """What our search finds in a table: last token → next token; `weights`: last token → attention."""

    def step(tokens: Array, state: Rows, wanted: int | None) -> tuple[Scores, Rows]:
        return Scores(table[tokens]), Rows(state.coverage + weights[tokens])

    limit = np.array([longest_translation(source + 1, decoding)])
    shortest = np.minimum(limit - 1, shortest_translation(source, decoding))
    [found] = beam_search(
        step,
        Rows(np.zeros((1, source + 1), dtype=np.float32)),
        beam_size=decoding.beam_size,
        max_lengths=limit,
        length_penalty=decoding.length_penalty,
        n_best=n_best,
        rules=rules_of(decoding, shortest),
        supplement=partial(coverage_penalty, beta=decoding.coverage_penalty, length_penalty=decoding.length_penalty)
        if decoding.coverage_penalty
        else None,
    )
    return [[one.tokens, one.score, len(one.tokens)] for one in found]


@needs_node
def test_it_cuts_and_searches_as_we_do(tmp_path: Path) -> None:
    draw = random.Random(3)
    texts = [*TEXTS, *("".join(draw.choices(CHARACTERS, k=draw.randint(1, 25))) for _ in range(200))]
    texts += [f"a{character}b {character}{character}" for character in CHARACTERS]
    models = subword_models()
    ids = {
        name: [[draw.choice([1, *range(4, one.size)]) for _ in range(9)] for _ in range(50)]
        for name, one in models.items()
    }
    searches, expected = [], []
    for number, decoding in enumerate(decodings()):
        source, vocabulary = number % 4 + 1, (7, 70)[number % 2]
        [table] = random_tables(1, vocabulary, seed=number)
        table = np.round(table, number % 3 + 1)  # some are equal
        weights = np.random.default_rng(number).dirichlet(np.ones(source + 1), size=vocabulary).astype(np.float32)
        count = min(decoding.beam_size, number % 3 + 1)
        expected.append(expected_search(table, weights, source, decoding, count))
        given = {"table": table.tolist(), "weights": weights.tolist(), "source": [4] * source, "count": count}
        searches.append({**given, "decoding": decoding.model_dump(), "lists": number % 5 > 1})
    for file in (*PAGE.glob("s*.js"), Path(__file__).with_name("compare.mjs")):
        shutil.copy(file, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    of_models = [{"model": _subwords(one.model), "ids": ids[name]} for name, one in models.items()]
    request = json.dumps({"texts": texts, "models": of_models, "searches": searches}).encode()
    answer = subprocess.run([NODE or "", tmp_path / "compare.mjs"], input=request, capture_output=True, timeout=60)
    assert not answer.stderr, answer.stderr.decode()
    result = json.loads(answer.stdout)
    for (name, one), found in zip(models.items(), result["cut"], strict=True):
        for text, encoded, places in zip(texts, found["encoded"], found["places"], strict=True):
            assert encoded == one.encode(text), (name, text)
            assert places == sorted(places), (name, text)
        assert found["decoded"] == [one.decode(several) for several in ids[name]], name
    for decoding, ours, theirs in zip(decodings(), expected, result["found"], strict=True):
        assert [one[::2] for one in theirs] == [one[::2] for one in ours], decoding
        assert [one[1] for one in theirs] == pytest.approx([one[1] for one in ours], abs=1e-6), decoding


def made_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with nothing in it that runs, and its checksum."""
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name in (RUNTIME, PROGRAM):
            entry = tarfile.TarInfo(name)
            entry.size = len(name)
            archive.addfile(entry, BytesIO(name.encode()))
    monkeypatch.setattr("nmt.web.package.SHA512", hashlib.sha512(path.read_bytes()).hexdigest())
    return path


def exported(model: Path, folder: Path, package: Path, *more: str) -> int:
    return export.main(["--model", str(model), "--web", str(folder), "--onnxruntime-web", str(package), *more])


def unpacked(folder: Path, name: str) -> bytes:
    return gzip.decompress((folder / json.loads((folder / "model.json").read_text())["files"][name]).read_bytes())


def test_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, and in their place in int8, beside a file of somebody else, which stays."""
    model, folder = save_random_model(tmp_path / "model.safetensors"), tmp_path / "page"
    package, results = made_package(tmp_path, monkeypatch), []
    for more in (["--precision", "float32"], []):
        assert exported(model, folder, package, *more) == 0
        engine = Engine(Graphs(unpacked(folder, "encoder"), unpacked(folder, "step")), 1)
        state = engine.start(np.array([[5, 7, END]]), np.array([3]), coverage=False)
        results.append(engine.step(np.array([2]), state, None)[0].values)
        start = re.match(
            r'const \[VERSION, FILES\] = \["\w{64}", (.*)\];\n', (folder / "service-worker.js").read_text()
        )
        assert start
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for name in ("service-worker.js", "photos-0123456789abcdef.bin"):
            digests.pop(name, None)
        assert json.loads(start[1]) == digests
        assert unpacked(folder, "program") == PROGRAM.encode()
        if more:
            (folder / "photos-0123456789abcdef.bin").touch()
    assert 0 < np.abs(results[0] - results[1]).max() < 0.1
    assert (folder / "photos-0123456789abcdef.bin").exists()
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert "<title>English → English</title>" in text
    for name in re.findall(r'(?:href|src)="([^"]+)"', text):
        assert (folder / name).is_file()


def test_what_it_does_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, package = save_random_model(tmp_path / "model.safetensors"), made_package(tmp_path, monkeypatch)

    def refused(*more: str) -> str:
        assert export.main(["--model", str(model), *more]) == 2
        assert not (tmp_path / "new").exists()
        return capsys.readouterr().err

    web = ("--web", str(tmp_path / "new"))
    assert "--onnxruntime-web FILE is missing: the package that curl -O https://" in refused(*web)
    absent = refused(*web, "--onnxruntime-web", "absent.tgz")
    assert "absent.tgz: cannot be read: No such file or directory; download https://" in absent
    # somebody's website
    (tmp_path / "service-worker.js").write_text("const CACHE = 1;")
    here = refused("--web", str(tmp_path), "--onnxruntime-web", str(package))
    assert f"--web {tmp_path}: holds other files, and no page of nmt-export; give a new folder" in here
    package.write_bytes(b"")
    other = refused(*web, "--onnxruntime-web", str(package))
    assert "package.tgz: its checksum is not that of https://registry.npmjs.org/onnxruntime-web/" in other
    unused = refused("--output", str(tmp_path / "new"), "--onnxruntime-web", str(package))
    assert "--onnxruntime-web has an effect only with --web" in unused


class Host(SimpleHTTPRequestHandler):
    """Of those that know only one address of the page."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/index.html":
            self.send_response(301)
            self.send_header("Location", "/")
            self.end_headers()
        else:
            super().do_GET()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """Of the folder `page` in the test's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(tmp_path / "page")))
    Thread(target=server.serve_forever).start()
    yield server
    server.shutdown()
    server.server_close()


RUNTIME_STUB = """
export const env = { wasm: {} };
export class Tensor {}
const run = () => { throw new Error("no memory"); };
export const InferenceSession = { create: async () => ({ inputNames: [], outputNames: [], run }) };
"""


@needs_node
def test_what_its_workers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: ThreadingHTTPServer) -> None:
    """A page is kept that was redirected; what fails is told of its text, and a long line soon."""
    model, folder, programs = (
        save_random_model(tmp_path / "model.safetensors"),
        tmp_path / "page",
        tmp_path / "programs",
    )
    assert exported(model, folder, made_package(tmp_path, monkeypatch)) == 0
    shutil.copytree(folder, programs)
    (programs / "runtime.js").write_text(RUNTIME_STUB)
    (programs / "package.json").write_text('{"type": "module"}')
    shutil.copy(Path(__file__).with_name("workers.mjs"), programs)
    command = [NODE or "", "workers.mjs", f"http://127.0.0.1:{host.server_port}/"]
    texts = json.dumps(["dog", "dog" * 40_000]).encode()
    answer = subprocess.run(command, input=texts, cwd=programs, capture_output=True, timeout=60)
    assert not answer.stderr, answer.stderr.decode()
    result = json.loads(answer.stdout)
    assert result["page"] == {"redirected": False, "type": "text/html", "text": (folder / "index.html").read_text()}
    assert {*result["names"], "service-worker.js"} == {path.name for path in folder.iterdir()}
    failed, long = {"id": 0, "error": "no memory"}, {"id": 1, "number": 0, "texts": [""], "isTooLong": True}
    assert result["answers"] == [{"isReady": True}, failed, long]


@pytest.mark.slow
@pytest.mark.skipif(None in (CHROMIUM, DRIVER), reason="needs chromium and chromedriver")
@pytest.mark.skipif(PACKAGE is None, reason="needs ONNXRUNTIME_WEB=FILE, the package that nmt/web/export.py names")
def test_the_page_translates_also_offline(tmp_path: Path, host: ThreadingHTTPServer) -> None:
    source, target = ["the", "old", "dog", "sleeps"], ["heute", "schläft", "mein", "Hund"]
    model, folder = tmp_path / "model.safetensors", tmp_path / "page"
    save_known_model(model, source, target, [(0, 2), (1, 0), (2, 3), (3, 1)])
    assert exported(model, folder, Path(PACKAGE or "")) == 0
    browser = Browser(tmp_path / "profile", "--window-size=1400,800")
    status, shown = (
        "return document.querySelector('#status').textContent",
        "return document.querySelector('#target').textContent",
    )
    try:
        url = f"http://127.0.0.1:{host.server_port}/"
        browser.open(url)
        browser.until("return !document.querySelector('#offline').hidden")
        host.shutdown()
        host.server_close()
        for scheme, width in (("light", 1400), ("dark", 400)):
            browser.resize(width, 800)
            browser.prefer(scheme)
            browser.open(url)
            browser.type("#source", "the old dog sleeps\n")
            browser.until(f"{shown} == 'heute schläft mein Hund\\n'")
            browser.run("document.querySelector('#target .word:last-of-type').focus()")
            assert browser.run("return document.querySelector('#read .chosen').textContent") == "dog"
            assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
            if pictures := os.environ.get("TAKE_PICTURES"):
                browser.picture(Path(pictures) / f"web-{width}-{scheme}.png")
        browser.type("#source", "the ☃")
        browser.until(f"{status}.startsWith('Line 2: characters that the model does not know.')")
        browser.run("receive({ data: { id: state.id - 1, error: 'of a former text' } })")
        assert browser.run(f"{shown}.startsWith('heute')")
        assert browser.console() == []
    finally:
        browser.close()
