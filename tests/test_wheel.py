"""The wheel: every file of the package and the example configurations, and nothing else; it is built without a network.

That a wheel in an environment of its own trains the demo, without the sources beside it, is one of the slow proofs.
The wheel of nmt-runtime translates and serves an export where nothing that it leaves out can be imported.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from nmt import __version__
from nmt.cli import export, translate
from nmt.cli.commands import COMMANDS
from nmt.errors import LEFT_OUT
from tests.conftest import ROOT
from tests.random_model import save_random_model, text
from tests.serving.process import Server

BUILD = """
import sys
from hatchling.build import build_wheel
print(build_wheel(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / built.stdout.split()[-1]


def test_the_wheel_has_the_package_and_the_examples_and_nothing_else(wheel: Path) -> None:
    files = [path for path in (ROOT / "nmt").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    expected |= {f"nmt/{path.relative_to(ROOT)}" for path in (ROOT / "configs").rglob("*.*")}
    assert {
        "nmt/py.typed",
        "nmt/serving/page/index.html",
        "nmt/configs/demo.yaml",
        "nmt/configs/schema.json",
    } < expected
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {name for name in names if ".dist-info/" not in name} == expected
        assert len(names) == len(set(names))
        demo = archive.read("nmt/configs/demo.yaml")
        points = archive.read(f"nmt_toolkit-{__version__}.dist-info/entry_points.txt").decode()
        licenses = [name for name in names if name.endswith("/LICENSE")]
    assert demo == (ROOT / "configs" / "demo.yaml").read_bytes()
    assert {line.partition(" = ")[0] for line in points.splitlines() if " = " in line} == {"nmt", *COMMANDS}
    assert len(licenses) == 1


@pytest.mark.slow
def test_the_wheel_of_the_runtime_translates_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a page, a pipe, and requests, as the model file does with PyTorch."""
    build = [sys.executable, ROOT / "scripts" / "build_runtime.py", tmp_path]
    built = subprocess.run(build, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(built.stdout.strip()) as archive:
        archive.extractall(tmp_path / "site")
    (metadata,) = (tmp_path / "site").glob("nmt_runtime-*/METADATA")
    needed = re.findall(r"^Requires-Dist: ([\w-]+)", metadata.read_text(encoding="utf-8"), re.MULTILINE)
    assert "onnxruntime" in needed
    assert set(needed).isdisjoint([*LEFT_OUT, "nmt-toolkit"])

    monkeypatch.chdir(tmp_path)
    Path("lines").write_text(text(9), encoding="utf-8")
    Path("page.html").write_text("<p>a <b>dog</b> runs across the green field</p>\n", encoding="utf-8")
    model = str(save_random_model(tmp_path / "model.safetensors"))
    assert export.main(["--model", model, "--output", "exported"]) == 0
    files = ("lines", "page.html")
    for name in files:
        assert translate.main(["--model", model, "--input", name, "--output", f"expected.{name}"]) == 0
    lines = Path("expected.lines").read_text(encoding="utf-8")

    blocked = f"import sys\nsys.modules.update(dict.fromkeys({LEFT_OUT}))\n"  # every import of one fails
    (tmp_path / "site" / "sitecustomize.py").write_text(blocked, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    commands = [
        *(["translate", "--model", "exported", "--input", name, "--output", f"found.{name}"] for name in files),
        ["translate", "--model", "exported"],
        ["train", "--config", "demo"],
        ["translate", "--model", model, "--input", "lines"],
    ]
    program = f"from nmt.cli.commands import loaded\nprint([loaded('nmt', one)() for one in {commands}])"
    with open("lines", "rb") as source:
        ended = subprocess.run(
            [sys.executable, "-c", program], stdin=source, capture_output=True, text=True, check=True
        )
    assert ended.stdout == f"{lines}[0, 0, 0, 2, 2]\n"
    assert ended.stderr.count("torch is not installed, and this needs it: install nmt-toolkit in place of nmt-run") == 2
    for name in files:
        assert Path(f"found.{name}").read_bytes() == Path(f"expected.{name}").read_bytes()
    server = Server("--model", "exported", "--split-sentences", "false")
    asked = {"q": text(9), "source": "en", "target": "en"}
    with urlopen(f"{server.url}/translate", data=urlencode(asked).encode()) as response:
        assert json.load(response)["translatedText"] == lines
    assert server.stop()[0] == 0


def run(*command: str | Path, folder: Path) -> str:
    """The standard output of a command that has neither this repository nor its environment to go by."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    told = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout


@pytest.mark.slow
def test_a_wheel_without_the_sources_trains_the_demo(wheel: Path, tmp_path: Path) -> None:
    """In an environment that has what the package needs, from the one that runs the tests, and not the package."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "environment", folder=tmp_path)
    python = tmp_path / "environment" / "bin" / "python"
    (site,) = (tmp_path / "environment").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    needed = Path(importlib.metadata.distribution("torch").locate_file(""))  # where all the others are, too
    (site / "needed.pth").write_text(f"{needed}\n")

    where = run(python, "-c", "import nmt; print(nmt.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(site)
    nmt = (python, "-m", "nmt")
    assert run(*nmt, "train", "--list-configs", folder=tmp_path).startswith("demo  ")
    run(*nmt, "synthetic", folder=tmp_path)
    few = ["--set", "training.max_updates=2", "--set", "decoding.max_length_ratio=0.1"]
    run(*nmt, "train", "--config", "demo", *few, "--device", "cpu", folder=tmp_path)
    text = ["--input", "data/synthetic/test.en", "--output", "test.de", "--device", "cpu"]
    run(*nmt, "translate", "--model", "runs/demo", *text, folder=tmp_path)
    assert len((tmp_path / "test.de").read_text(encoding="utf-8").splitlines()) == 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "environment", "runs", "test.de"]
