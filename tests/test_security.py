"""What docs/security.md says of the code: nothing is unpickled or executed, nothing calls the network, and limits are
those of the page. Of what a hostile file can do, the tests of each reader tell."""

import ast
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.cli import evaluate, train, translate
from nmt.config import key_checks, yaml_text
from nmt.config.yaml_text import write_yaml
from nmt.data import corpus
from nmt.models import model_file
from nmt.tensor_file import LARGEST_HEADER, VERSION
from tests.fuzz.samples import configuration, write_corpora
from tests.hostile_files import write_parts
from tests.test_layers import PACKAGE, sources

ROOT = PACKAGE.parent
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")

MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "dbm", "multiprocessing",
    "subprocess", "pty", "runpy", "code", "importlib", "ctypes", "cffi",
    "socket", "ssl", "http", "urllib", "urllib3", "requests", "ftplib", "smtplib", "xmlrpc", "webbrowser", "asyncio",
    "huggingface_hub",
}  # fmt: skip
NAMES = {
    "eval", "exec", "compile", "__import__", "breakpoint", "system", "popen", "fork", "forkpty", "startfile",
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list",
    "recv_object_list", "rpc", "hub", "torch.load", "torch.save", "unsafe_load", "full_load", "UnsafeLoader",
    "FullLoader",
}  # fmt: skip
PREFIXES = ("exec", "spawn", "posix_spawn")  # of functions of os
ALLOWED = {
    ("nmt/cli/commands.py", "importlib"): {"import_module"},  # of the command that runs
    ("nmt/cli/common.py", "importlib.metadata"): {"distributions"},  # nmt-toolkit or nmt-runtime
    ("nmt/cli/serve.py", "importlib.util"): {"find_spec"},  # whether the parts of nmt-serve are installed
    ("nmt/decoding/graph_files.py", "importlib.metadata"): {"distributions"},  # of the packages that make graphs
    ("nmt/decoding/text/sentences.py", "importlib.util"): {"find_spec"},  # whether sentencex is there
    ("nmt/processes/several.py", "socket"): {"create_connection", "gaierror", "timeout"},  # to the first process
    # nmt-serve listens; nothing of it connects.
    ("nmt/serving/api.py", "asyncio"): {
        "FIRST_COMPLETED", "Future", "TimeoutError", "ensure_future", "get_running_loop", "to_thread", "wait",
        "wait_for", "wrap_future",
    },
    ("nmt/serving/server.py", "asyncio"): {"Transport", "get_running_loop", "run", "sleep"},
    ("nmt/serving/server.py", "socket"): {"getaddrinfo", "socket", "SOCK_STREAM", "SOL_SOCKET", "SO_REUSEADDR"},
    ("nmt/serving/requests.py", "urllib.parse"): set(),  # of a form
}  # fmt: skip


def uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The forbidden modules and names that a file imports or calls, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.split(".")[0] in MODULES:
                yield module, node.lineno
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in NAMES)
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            is_mode = node.attr == "eval"  # a network's, or a plain method: `eval` by itself is what executes text
            if f"{owner}.{node.attr}" in NAMES or (node.attr in NAMES and not is_mode and owner not in ("re", "regex")):
                yield f"{owner}.{node.attr}", node.lineno
            elif owner == "os" and node.attr.startswith(PREFIXES):
                yield f"os.{node.attr}", node.lineno
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            yield "allow_pickle", node.value.lineno


@pytest.mark.parametrize("file", sources(PACKAGE), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled_or_executed_and_nothing_calls_the_network(file: Path) -> None:
    name = file.relative_to(ROOT).as_posix()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for used, line in uses(tree):
        allowed = ALLOWED.get((name, used))
        assert allowed is not None, f"{name}, line {line}: {used}"
        attributes = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == used
        }
        assert attributes <= allowed, f"{name}: {used}.{', '.join(attributes - allowed)}"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from multiprocessing import Pool",
        "import urllib.request",
        "import torch\ntorch.load('a')",
        "from torch import load\neval('1')",
        "import os\nos.system('a')",
        "import os\nos.execv('a', [])",
        "from torch import distributed\ndistributed.all_gather_object([], 1)",
        "import numpy as np\nnp.load('a', allow_pickle=True)",
        "from yaml import UnsafeLoader",
        "def f():\n    from subprocess import run",
    ],
)
def test_the_test_finds_them(text: str) -> None:
    assert list(uses(ast.parse(text)))


def test_the_test_lets_others_be() -> None:
    text = "import re\nre.compile('a')\nnetwork.eval()\nnp.load('a', allow_pickle=False)\nimport socketserver_like"
    assert not list(uses(ast.parse(text)))


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    limits = dict(re.findall(r"^\| ([^|]+?) +\| ([\d,]+)[^|]*\|", PAGE, re.MULTILINE))
    assert {name: int(number.replace(",", "")) for name, number in limits.items()} == {
        "text of a configuration, or of one `--set`": yaml_text.LONGEST_TEXT,
        "keys and values": yaml_text.MOST_VALUES,
        "levels of nesting": yaml_text.DEEPEST,
        "mistakes that are reported at once": key_checks.MOST_PROBLEMS,
        "a line of any text": corpus.LONGEST_LINE,
        "a document": corpus.LARGEST_TEXT,
        "the header of a model, state or shortlist": LARGEST_HEADER,
        "the largest weight of a model": int(model_file.LARGEST_WEIGHT),
    }
    assert f"format {VERSION}" in PAGE


def test_the_commands_work_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object, **options: object) -> None:
        raise AssertionError(f"the network was asked for: {arguments}")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refused)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refused)
    write_corpora(tmp_path)
    (tmp_path / "config.yaml").write_text(write_yaml(configuration(tmp_path)))
    run, output, source = tmp_path / "run", tmp_path / "translated", tmp_path / "valid.en"
    assert train.main(["--config", str(tmp_path / "config.yaml"), "--output", str(run), "--device", "cpu"]) == 0
    options = ["--model", str(run), "--input", str(source), "--output", str(output), "--device", "cpu"]
    assert translate.main(options) == 0
    assert evaluate.main(["--hypotheses", str(output), "--reference", str(tmp_path / "valid.de")]) == 0


def test_what_a_file_says_does_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither clear it nor name its window; letters of any language stay as they are."""
    model, sentences = tmp_path / "model.safetensors", tmp_path / "sentences"
    header = {"nmt-toolkit": json.dumps({"kind": "\x1b[2J\x1b]0;näme\x07\r\x9b1m", "version": VERSION})}
    write_parts(model, {"__metadata__": header}, b"")
    sentences.write_text("a\n", encoding="utf-8")
    assert translate.main(["--model", str(model), "--input", str(sentences), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("but a \\x1b[2J\\x1b]0;näme\\x07\\r\\x9b1m\n")
