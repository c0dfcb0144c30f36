"""A file that is not there: every option that reads one names the nearest file in the folder."""

from pathlib import Path

import pytest

from nmt.cli.commands import loaded

TEXT = "corpus/text.enn: no such file; nearest: corpus/text.en"
MODEL = "runs/my_first_modell: no such model file or run folder; nearest: runs/my_first_model"
FOLDER = "copus/text.en: no such file; there is no folder copus; nearest: corpus"
COMMANDS = [
    ("nmt-translate --model runs/my_first_modell --input corpus/text.en", MODEL),
    ("nmt-translate --input copus/text.en", FOLDER),
    ("nmt-translate --input corpus/text.enn --format html", TEXT),
    ("nmt-translate --input corpus/text.en --prefix corpus/text.enn", TEXT),
    ("nmt-translate --input corpus/text.en --shortlist corpus/text.enn", f"--shortlist {TEXT}; make one with"),
    ("nmt-eval --hypotheses corpus/text.en --reference corpus/text.enn", TEXT),
    ("nmt-serve --model en-de=runs/my_first_modell --api-keys corpus/text.enn", TEXT),
    ("nmt-shortlist --source corpus/text.enn --target corpus/text.en --output out", TEXT),
    ("nmt-train --config TINY --output run --init-from runs/my_first_modell", MODEL),
]


@pytest.mark.parametrize(("command", "told"), COMMANDS)
def test_the_nearest_file_is_named(
    command: str, told: str, here: Path, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "corpus").mkdir(exist_ok=True)
    (here / "corpus/text.en").write_text("the dog sees the cat .\n", encoding="utf-8")
    (here / "runs/my_first_model").mkdir(parents=True)
    program, *arguments = command.replace("TINY", str(tiny)).split()
    assert loaded(program, arguments)() == 2
    assert told in capsys.readouterr().err
