"""Names longer than a file system allows, and links to themselves: one message, exit code 2; the longest names work."""

from pathlib import Path

import pytest

from nmt.cli import translate
from nmt.cli.commands import loaded

LONG = "n" * 300
COMMANDS = [
    *("nmt-train --config LONG", "nmt-train --config TINY --output LONG --resume"),
    "nmt-train --config TINY --output run --init-from LONG",
    "nmt-train --config TINY --output run --set data.cache_folder=LONG",
    "nmt-train --config TINY --output run --set subwords.size=8000 --set subwords.model=LONG",
    "nmt-train --config TINY --output run --set data.valid.source=LONG",
    *("nmt-translate --model MODEL --input LONG", "nmt-translate --model LONG --input text"),
    "nmt-translate --model MODEL --input text --output LONG --resume",
    *(
        f"nmt-translate --model MODEL --input text --output out --{option} LONG"
        for option in ("prefix", "shortlist", "alignments", "plot-alignments")
    ),
    "nmt-eval --hypotheses LONG --reference text --json LONG",
    "nmt-align --alignments LONG --gold-alignments text",
    "nmt-score --model MODEL --source text --target LONG",
    "nmt-shortlist --model MODEL --source text --target text --output LONG",
    "nmt-average --model MODEL --model MODEL --output LONG",
]


@pytest.mark.parametrize(
    ("command", "name"),
    [*((command, LONG) for command in COMMANDS), *((command, "loop") for command in COMMANDS)],
)
def test_names_that_cannot_be_asked_about(
    command: str,
    name: str,
    here: Path,
    model: Path,
    tiny: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (here / "text").write_text("the dog sees the cat .\n", encoding="utf-8")
    (here / "loop").symlink_to("loop")
    given = LONG if name == LONG else str(here / name)
    values = {"MODEL": str(model), "TINY": str(tiny)}
    program, *arguments = command.split()
    options = [values.get(argument, argument).replace("LONG", given) for argument in arguments]
    assert loaded(program, options)() == 2
    said = capsys.readouterr().err
    assert f"{program}: " in said
    assert name in said
    reasons = ["no such", "is not a file", "too long" if name == LONG else "symbolic link", "File exists"]
    assert any(reason in said for reason in reasons)  # as the version of Python has it
    files = {path.relative_to(here).parts[0] for path in here.rglob("*") if path.is_file()}
    assert files <= {"text", ".cache"}


def test_the_longest_names(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / ("s" * 255), tmp_path / ("o" * 255)
    source.write_text("the dog sees the cat .\n", encoding="utf-8")
    options = ["--model", str(model), "--input", str(source), "--output", str(output), "--device", "cpu"]
    assert translate.main(options) == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 1
    assert translate.main([*options, "--resume"]) == 2
    assert ": File name too long" in capsys.readouterr().err
