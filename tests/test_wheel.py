"""The wheel: every file of the package and the example configurations, and nothing else; it is built without a network.

That a wheel in an environment of its own trains the demo, without the sources beside it, is one of the slow proofs.
"""

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nmt import __version__
from nmt.cli.commands import COMMANDS
from tests.conftest import ROOT

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
    run(*nmt, "train", "--config", "demo", "--set", "training.max_updates=20", "--device", "cpu", folder=tmp_path)
    text = ["--input", "data/synthetic/test.en", "--output", "test.de", "--device", "cpu"]
    run(*nmt, "translate", "--model", "runs/demo", *text, folder=tmp_path)
    assert len((tmp_path / "test.de").read_text(encoding="utf-8").splitlines()) == 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "environment", "runs", "test.de"]
