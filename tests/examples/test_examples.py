"""The examples of docs/scale.md translate as nmt-translate does; those of Ray and Spark where these are installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli.translate import main
from tests.conftest import ROOT
from tests.random_model import exported, save_random_model, text

LINES = 45
EXAMPLES = ROOT / "examples"


class Task:
    """A model, a text, and what nmt-translate makes of it."""

    def __init__(self, folder: Path) -> None:
        self.model = exported(save_random_model(folder / "best.safetensors"))
        self.source, self.output = folder / "source", folder / "out"
        self.source.write_text(text(LINES), encoding="utf-8")
        expected = folder / "expected"
        assert main(["--model", str(self.model), "--input", str(self.source), "--output", str(expected)]) == 0
        self.expected = expected.read_bytes()

    def run(self, *command: object, **variables: str) -> None:
        places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": places, "OMP_NUM_THREADS": "1", **variables}
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def python(self, name: str, *options: object, **variables: str) -> None:
        arguments = ("--model", self.model, "--input", self.source, "--output", self.output, *options)
        self.run(sys.executable, EXAMPLES / name, *arguments, **variables)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return Task(tmp_path_factory.mktemp("examples"))


@pytest.mark.slow
def test_processes(task: Task) -> None:
    task.python("processes.py", "--workers", 2)
    assert task.output.read_bytes() == task.expected


@pytest.mark.slow
def test_slurm(task: Task, tmp_path: Path) -> None:
    """Each task of the array by itself, out of order; with 2 shards instead of the script's 8, to save time."""
    if shutil.which("nmt-translate", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("needs the commands beside this Python: pip install --editable .")
    script = (EXAMPLES / "slurm_shards.sh").read_text(encoding="utf-8")
    assert (script.count("--array=1-8\n"), script.count("shards=8\n")) == (1, 1)
    shorter = tmp_path / "slurm_shards.sh"
    shorter.write_text(script.replace("shards=8", "shards=2"), encoding="utf-8")
    for number in (2, 1):
        arguments = (task.model, task.source, task.output)
        task.run("bash", shorter, *arguments, SLURM_ARRAY_TASK_ID=str(number))
    task.run("nmt-translate", "--merge", "--output", task.output)
    assert task.output.read_bytes() == task.expected


def test_ray(task: Task) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: pip install 'ray[data]'")
    task.python("ray_data.py", "--workers", 2)
    assert task.output.read_bytes() == task.expected


def test_spark(task: Task) -> None:
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("needs Spark and Java: pip install pyspark pandas pyarrow")
    variables = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    task.python("spark.py", **variables)
    assert task.output.read_bytes() == task.expected
