"""A further command is a module, and a line in COMMANDS: `nmt COMMAND`, its help, and its mistakes follow."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import copy_with

MODULE = '''
"""nmt-count: how many lines a file has."""

import argparse
from pathlib import Path

from nmt.cli.options import missing
from nmt.cli.parser import Parser, command, say
from nmt.errors import refuse

PROGRAM = "nmt-count"


def parser() -> Parser:
    made = Parser(PROGRAM, description="Count lines.", epilog="")
    made.add_argument("--input", type=Path, metavar="FILE", help="the text, required")
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    problems += missing({"--input FILE": (options.input, "the text")})
    refuse(problems)
    from nmt.data.corpus import read_lines

    say(f"{sum(1 for _ in read_lines(options.input))}\\n")
'''
FIRST = '    "nmt-init": Command("init", "make training text and a configuration of your files"),'
LINE = '    "nmt-count": Command("count", "count the lines of a file"),\n'


@pytest.fixture
def nmt(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `nmt` from a copy of the source to which the command was added."""
    copy_with({"cli/commands.py": [(FIRST, LINE)]}, tmp_path)
    (tmp_path / "nmt/cli/count.py").write_text(MODULE, encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "nmt", *arguments]
        return subprocess.run(program, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)

    return run


def test_adding_a_command(nmt: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\nb\n", encoding="utf-8")
    assert nmt("count", "--input", "text").stdout == "2\n"
    assert "  count       count the lines of a file\n" in nmt("--help").stdout
    assert nmt("count", "--help").stdout.startswith("usage: nmt-count ")
    missing = nmt("count")
    assert (missing.returncode, missing.stderr) == (2, "nmt-count: error: --input FILE is missing: the text\n")
    assert nmt("count", "--inptu", "text").stderr == "nmt-count: error: --inptu: unknown; did you mean --input?\n"
    assert nmt("count", "--input", "txt").stderr.startswith("nmt-count: error: txt: no such file; nearest: text")
