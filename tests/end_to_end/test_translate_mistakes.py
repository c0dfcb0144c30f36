"""What stops nmt-translate: one clear message, the right exit code, no traceback, no half line.

Exit code 2: something given was wrong, or cannot be written; 1: the reader of the output has gone. What the options
say about themselves, one by one, is in tests/cli/test_translate.py; damaged models in
tests/models/test_model_file.py. Here it is the process that matters.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.random_model import exported, text

pytestmark = pytest.mark.slow

LINES = 100
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def model(model: Path) -> Path:
    return exported(model)


@pytest.fixture
def folder(here: Path) -> Path:
    """The working folder, with the text `source`."""
    (here / "source").write_text(text(LINES), encoding="utf-8")
    return here


def shell(model: Path, options: str, around: str) -> "subprocess.CompletedProcess[bytes]":
    """Run `around` by a shell, with the command in place of {}."""
    command = f"{shlex.quote(sys.executable)} -m nmt translate --device cpu --model {shlex.quote(str(model))} {options}"
    return subprocess.run(
        ["sh", "-c", around.replace("{}", command)], capture_output=True, env=ENVIRONMENT, timeout=300
    )


def message(lines: list[str]) -> str:
    (line,) = lines
    assert line.startswith("nmt-translate: error: ")
    return line


def whole_lines(content: bytes) -> list[str]:
    assert content == b"" or content.endswith(b"\n")
    return content.decode().split("\n")[:-1]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------------------- an output that cannot be written


def test_a_disk_that_becomes_full(folder: Path, model: Path) -> None:
    """Files may have a kilobyte: the translations have more, and what stood there before is kept."""
    (folder / "out").write_text("before\n", encoding="utf-8")
    done = shell(model, "--input source --output out --n-best 3", "ulimit -f 2; {}")
    assert done.returncode == 2
    assert "out: cannot be written (File too large)" in message(done.stderr.decode().splitlines())
    assert (folder / "out").read_text(encoding="utf-8") == "before\n"
    assert names(folder) == ["out", "source"]


def test_a_reader_that_wants_one_line(folder: Path, model: Path) -> None:
    """`| head -1` has its line; the program ends quietly, and files that are not complete do not appear."""
    (folder / "source").write_text(text(LINES) * 10, encoding="utf-8")
    options = "--input source --n-best 3 --batch-tokens 20 --alignments links"
    done = shell(model, options, "({}; echo $? >code) | head -1")
    (line,) = whole_lines(done.stdout)
    assert line.startswith("0 ||| ")
    assert line.count(" ||| ") == 2
    assert done.stderr == b""
    assert (folder / "code").read_text() == "141\n"
    assert names(folder) == ["code", "source"]


def test_standard_output_by_the_name_of_a_device(folder: Path, model: Path) -> None:
    """It goes on with the file that it was redirected to."""
    (folder / "source").write_text("a dog\n", encoding="utf-8")
    (folder / "log").write_text("precious\n", encoding="utf-8")
    done = shell(model, "--input source --output /dev/stdout", "{} >>log; {} --resume >>log")
    first, *rest = (folder / "log").read_text(encoding="utf-8").splitlines()
    assert (first, len(rest)) == ("precious", 1)
    assert message(done.stderr.decode().splitlines()).endswith(
        "--output /dev/stdout: --resume needs a file, beside which chunks are kept"
    )
    done = shell(model, "--input source --output /dev/stdout --alignments log", "{} >>log")
    assert "--alignments log: would overwrite --output /dev/stdout" in message(done.stderr.decode().splitlines())


# ------------------------------------------------------------------------------------------- what goes beside the lines


def test_what_standard_input_may_serve_for(folder: Path, model: Path) -> None:
    """Prefixes while --input is a file; or both, where it is redirected from a file, which is opened a second time."""
    (folder / "blank").write_text("\n" * LINES, encoding="utf-8")
    for options, around in (
        ("--input source --prefix /dev/stdin --output out", "cat blank | {}"),
        ("--prefix /dev/stdin --output out", "{} <blank"),
    ):
        done = shell(model, options, around)
        assert (done.returncode, done.stderr) == (0, b"")
        assert len(whole_lines((folder / "out").read_bytes())) == LINES


# ----------------------------------------------------------------------------------------------------- wrong altogether


def test_standard_input_is_read_once(folder: Path, model: Path) -> None:
    options = "--prefix /dev/stdin --constraints /dev/stdin --glossary /dev/stdin --replace-unknown --dictionary"
    done = shell(model, f"--input - {options} /dev/stdin --output out --chunk-lines 0", "printf 'a\\tdog\\n' | {}")
    told = "/dev/stdin: is standard input, which --input - already reads; give a file"
    assert done.stderr.decode().splitlines()[1:] == [
        "  - --chunk-lines 0: allowed: a whole number, at least 1",
        *(f"  - {option} {told}" for option in ("--prefix", "--constraints", "--glossary", "--dictionary")),
    ]
    assert done.returncode == 2
    assert names(folder) == ["source"]
