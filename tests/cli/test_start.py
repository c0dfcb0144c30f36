"""How commands begin and end: --help, --version, wrong options, the list of commands, and a reader that is gone."""

import json
import os
import re
import signal
import subprocess
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path

import pytest

from nmt import __version__
from nmt.cli import commands, evaluate, options, shortlist
from nmt.cli.commands import COMMANDS, loaded
from nmt.config.schema import SamplingConfig
from nmt.decoding.options import TranslationOptions
from nmt.decoding.shortlist import train_shortlist
from nmt.evaluation import comparison, metrics
from scripts.make_configuration_reference import NAMES, json_schema
from tests.random_model import exported, text

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = tuple(COMMANDS)
FULL = Path("/dev/full")  # a device of Linux on which every write fails as on a full disk
HEAVY = {
    "torch",
    "numpy",
    "pydantic",
    "sacrebleu",
    "sentencepiece",
    "yaml",
    "tqdm",
    "starlette",
    "nmt.config",
    "nmt.data.corpus",
}
ANSWER = """
import sys
from nmt.cli import start
for sys.argv in {commands}:
    try:
        code = start.main()
    except SystemExit as end:
        code = end.code
    print(sorted({heavy} & set(sys.modules)), code or 0, end=chr(12), flush=True)
    print(end=chr(12), file=sys.stderr)
"""


def answers(*commands: str) -> list[tuple[list[str], str]]:
    """The lines of standard output, and the errors, of executables; one interpreter runs them, and says after each what
    it has imported."""
    calls = [["C:\\some/where\\" + program, *arguments] for program, *arguments in map(str.split, commands)]
    script = ANSWER.format(commands=calls, heavy=HEAVY)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    told = zip(ended.stdout.split("\f"), ended.stderr.split("\f"), strict=True)
    return [(output.splitlines(), errors) for output, errors in told][:-1]


def test_what_is_answered_at_once_imports_nothing_heavy() -> None:
    for program, (lines, errors) in zip(PROGRAMS, answers(*(f"{one} --help" for one in PROGRAMS)), strict=True):
        assert (lines[0].split()[:2], lines[-1], errors) == (["usage:", program], "[] 0", "")
    wrong = answers(*(f"{one} --versoin=b --zebra c" for one in PROGRAMS))
    for program, (lines, errors) in zip(PROGRAMS, wrong, strict=True):
        assert lines == ["[] 2"]
        assert errors.splitlines()[:2] == [
            f"{program}: 2 problems:",
            "  - --versoin: unknown; did you mean --version?",
        ]
    assert answers("nmt-score --version", "nmt --version") == [
        ([f"nmt-score {__version__}", "[] 0"], ""),
        ([f"nmt {__version__} (nmt-toolkit)", "[] 0"], ""),
    ]


def test_two_distributions_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(commands, "installed", lambda: ["nmt-toolkit", "nmt-runtime"])
    assert commands.loaded("nmt", ["--version"])() == 0
    told = f"nmt {__version__} (nmt-toolkit and nmt-runtime; uninstall both, and install one)\n"
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_shows_the_options_that_most_people_need(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In ASCII, which a terminal of any encoding shows."""
    parser = COMMANDS[program].parser()
    text = parser.format_help()
    shown = re.findall("^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE)
    assert len(shown) <= 14
    assert text.isascii()
    if len(shown) < len(parser._actions):
        with pytest.raises(SystemExit) as end:
            parser.read(["--help-all"])
        assert not end.value.code
        everything = re.findall("^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
        assert len(everything) == len(parser._actions)
        assert f"{program} --help-all shows {len(everything) - len(shown)} more options." in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-beam-sizee", "5"], "-beam-sizee: unknown; did you mean --beam-size?"),
        (["--Input=text"], "--Input: unknown; did you mean --input?"),
        (["--scores", "text"], "text: belongs to no option; give a value after its option's name"),
        (["--model"], "argument --model: expected one argument"),
        (["--beam"], "--beam: unknown; did you mean --beam-size?"),
        (["--model-dir"], "--model-dir: unknown; did you mean --model?"),  # and not --output, as for nmt-train
        (["--lr", "3"], "--lr: unknown; nmt-translate --help-all lists all options"),
        (["-o", "out"], "-o: unknown; did you mean --output?"),
        (["--batch-size", "3"], "--batch-size: unknown; did you mean --batch-sentences?"),
        (["--zebra\x1b[2J"], "--zebra\\x1b[2J: unknown; nmt-translate --help-all lists all options"),
        (["--input", "one", "--input=two"], "--input: is given 2 times; it takes one value"),
        (["--prefix", ""], "--prefix: the path is empty"),
    ],
)
def test_a_wrong_option(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        COMMANDS["nmt-translate"].parser().read(arguments)
    assert end.value.code == 2
    assert capsys.readouterr() == ("", f"nmt-translate: error: {told}\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--lr", "3"], "--lr: unknown; set it in the configuration, or with --set training.optimizer.learning_rate=3"),
        (
            ["--hidden-size=a b", "--resume"],
            (
                "--hidden-size: unknown; set it in the configuration, or with "
                "--set 'model.encoder.hidden_size=a b' --set 'model.decoder.hidden_size=a b'"
            ),
        ),
        (
            ["--epochs", "--resume"],
            "--epochs: unknown; set it in the configuration, or with --set training.max_epochs=VALUE",
        ),
        (["--xy", "3"], "--xy: unknown; nmt-train --help lists all options"),
        (["--save_dir", "x"], "--save_dir: unknown; did you mean --output?"),
        (["--list-configs", "wrong"], "--list-configs wrong: unknown; choose one of all"),
        (["--resume", "my file.yml"], "my file.yml: belongs to no option; write --config 'my file.yml'"),
    ],
)
def test_a_wrong_option_of_training(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        COMMANDS["nmt-train"].parser().read(arguments)
    assert end.value.code == 2
    assert capsys.readouterr() == ("", f"nmt-train: error: {told}\n")


@pytest.mark.parametrize(
    ("program", "arguments", "told"),
    [
        (
            "nmt-translate",
            ["--model", "", "--input", "", "--output=", "--prefix", "a", "--prefix", "a", "--zebra"],
            [
                "--model: the path is empty",
                "--input: the path is empty",
                "--output: the path is empty",
                "--prefix: is given 2 times; it takes one value",
                "--zebra: unknown; nmt-translate --help-all lists all options",
            ],
        ),
        (
            "nmt-eval",
            ["--hypotheses", "a", "", "--runs", "b", "", "--json", ""],
            ["--hypotheses: the path is empty", "--runs: the path is empty", "--json: the path is empty"],
        ),
        (
            "nmt-shortlist",
            ["--source", "a", "b", "--source", "c", "--output", ""],
            ["--source: is given 2 times; give all of them after one --source", "--output: the path is empty"],
        ),
    ],
)
def test_wrong_places(program: str, arguments: list[str], told: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        COMMANDS[program].parser().read(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err == "\n  - ".join([f"{program}: {len(told)} problems:", *told]) + "\n"


@pytest.mark.parametrize("more", [[], ["--nothing"]])
def test_wrong_values_are_told_by_every_command(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Beside what is missing, and beside what is no option: forgotten, a wrong value would be the default."""
    for program, command in COMMANDS.items():
        checked = [one for one in command.parser()._actions if one.choices or one.type not in (None, Path)]
        names = [one.option_strings[-1] for one in checked if one.default is not SUPPRESS]
        if names:
            assert command.main([*(f"{name}=-1" for name in names), *more]) == 2
            told = capsys.readouterr().err
            assert [name for name in names if f"{name} -1: " not in told] == [], program


def test_later_settings_change_earlier_ones() -> None:
    """What follows the image's name adds to the options of its Dockerfile."""
    (entry_point,) = re.findall("^ENTRYPOINT (.+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    program, *options = json.loads(entry_point)
    parsed, _ = COMMANDS[program].parser().read([*options, "--host", "::", "--model", "/other", "--beam-size", "7"])
    assert (parsed.host, parsed.model, parsed.beam_size) == ("::", ["/model", "/other"], "7")
    twice, _ = COMMANDS["nmt-translate"].parser().read(["--beam-size", "5", "--beam-size", "7"])
    assert twice.beam_size == "7"


# -------------------------------------------------------------------------------------------------------------- nmt


def test_nmt_lists_the_commands() -> None:
    ((lines, errors),) = answers("nmt --help")
    assert errors == ""
    assert lines[-1] == "[] 0"
    for program, command in COMMANDS.items():
        assert f"  {program.removeprefix('nmt-'):12}{command.summary}" in lines


def test_a_wrong_command() -> None:
    told = {
        "nmt tranlsate": "tranlsate: unknown command; did you mean translate?",
        "nmt dance": "dance: unknown command; choose one of init, train, translate, eval, align, score, serve",
        "nmt": "a command is missing; choose one of init, train, translate, eval, align, score, serve",
    }
    for message, (lines, errors) in zip(told.values(), answers(*told), strict=True):
        assert lines == ["[] 2"]
        assert errors.startswith(f"nmt: error: {message}")


# ---------------------------------------------------------------------------------- what help texts repeat from others


def test_every_key_of_the_search_is_an_option_in_the_words_of_the_schema() -> None:
    helps = {
        action.dest: " ".join((action.help or "").split()) for action in COMMANDS["nmt-translate"].parser()._actions
    }
    for name, node in json_schema(NAMES)["$defs"]["DecodingConfig"]["properties"].items():
        assert helps[name][1:].startswith(" ".join(node["description"].split())[1:].rstrip("."))
    for name, field in SamplingConfig.model_fields.items():
        default = "off" if field.default is None else str(field.default)
        assert helps[name].endswith(f"(default: {default})")


def test_help_shows_the_names_and_defaults_that_hold() -> None:
    help_text = " ".join(ArgumentParser.format_help(evaluate.parser()).split())
    for names in (metrics.METRICS, metrics.TOKENIZERS):
        assert ", ".join(names) in help_text
    assert f"(default: {','.join(metrics.USUAL)})" in help_text
    assert f"at least 40 (default: {comparison.RESAMPLES:,})" in help_text
    defaults = train_shortlist.__kwdefaults__
    assert defaults["translations"] == shortlist.TRANSLATIONS
    assert defaults["most_frequent"] == shortlist.MOST_FREQUENT
    assert TranslationOptions().end_links == options.END_LINKS


# --------------------------------------------------------------------------------------------- a reader that is gone


@pytest.fixture
def closed_pipe() -> int:
    """The end for writing of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "nmt translate --model MODEL --input text",
        "nmt eval --hypotheses text --reference text",
        "nmt train --list-configs",
        "nmt --help",
    ],
)
def test_a_command_without_a_reader_ends_like_others(
    command: str, model: Path, tmp_path: Path, closed_pipe: int
) -> None:
    """As `cat` in `cat text | head -1`: silent, with the code of SIGPIPE."""
    (tmp_path / "text").write_text(text(3))
    program = [sys.executable, "-m", *command.replace("MODEL", str(exported(model))).split()]
    ended = subprocess.run(program, cwd=tmp_path, stdout=closed_pipe, stderr=subprocess.PIPE, text=True)
    os.close(closed_pipe)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


# ------------------------------------------------------------------- standard output that takes nothing, or only ASCII


@pytest.mark.skipif(not FULL.exists(), reason="needs the device /dev/full")
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [
        ("nmt --help", ""),
        ("nmt train --version", "1"),
        ("nmt train --list-configs", ""),
        ("nmt synthetic --output corpus", "1"),
    ],
)
def test_a_full_disk_is_told(command: str, unbuffered: str, tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", *command.split()],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.endswith(": error: standard output: cannot be written (No space left on device)")


def test_a_closed_standard_output_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert loaded("nmt", ["--version"])() == 0


def test_what_is_not_ascii_is_written_in_any_encoding(tmp_path: Path) -> None:
    """In UTF-8, as translations and scores are; bytes of a path that are not, as messages have them."""
    ended = subprocess.run(
        [sys.executable, "-m", "nmt", "synthetic", "--output", b"\xff\xc3\xa4"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith("\\udcffä: train 6000, valid 300, test 500 pairs\n".encode())
