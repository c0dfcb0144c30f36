"""What the documents say exists: files behind links, options in commands, figures instead of placeholders."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.cli import evaluate, train, translate

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data" / "README.md", *(ROOT / "docs").glob("*.md")]
PARSERS = {
    "nmt-train": train._parser(),
    "nmt-translate": translate._parser(),
    "nmt-eval": evaluate._parser(),
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_figures(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"@[A-Z0-9]+@", text), "a placeholder was never filled in"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of ours in the documents and in the headers of the configurations."""
    for path in [*DOCUMENTS, *(ROOT / "configs").glob("*.yaml")]:
        text = re.sub(r"\\\n[# ]*", " ", path.read_text(encoding="utf-8"))
        for line in re.findall(
            r"^(?:[#$ ]|Command:)*((?:\.venv/bin/)?nmt-(?:train|translate|eval) -.*)$", text, re.MULTILINE
        ):
            yield path.name, line.partition("  #")[0]


@pytest.mark.parametrize(("document", "line"), list(commands()))
def test_commands_have_the_options_that_they_show(document: str, line: str) -> None:
    program, *arguments = shlex.split(line)
    known, unknown = PARSERS[Path(program).name].parse_known_args(arguments)
    assert known is not None
    assert not unknown, f"{document}: {line}"


def test_commands_are_found() -> None:
    assert len(list(commands())) >= 10
