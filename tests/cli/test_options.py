"""What nmt-translate and nmt-eval share: values of options, and files to write that cannot be written."""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.options import read_count, read_how
from nmt.cli.outputs import check_output, check_outputs, opened_for_writing
from nmt.cli.parsers.shared import PRECISIONS, add_search_options, add_unknown_word_options
from nmt.config.schema import DecodingConfig
from nmt.errors import UserError, checked
from nmt.ops.packed_weights import PRODUCTS

FULL = Path("/dev/full")  # a device of Linux on which every write fails as on a full disk


def searched(*arguments: str) -> tuple[dict[str, Any], list[str]]:
    """The options that were read, and the problems."""
    parser = argparse.ArgumentParser()
    add_search_options(parser)
    add_unknown_word_options(parser)
    reading, problems = read_how(vars(parser.parse_args(arguments))), []
    while True:
        try:
            problems.append(next(reading))
        except StopIteration as end:
            return end.value, problems


def test_a_count_is_digits() -> None:
    assert checked(read_count("--chunk-lines", "12", least=1)) == 12
    assert checked(read_count("--chunk-lines", None, least=1)) is None


@pytest.mark.parametrize("text", ["0", "-1", "+1", " 5", "1_0", "1.0", "\u0663", "", "9" * 18, "9" * 5000])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(UserError, match=r"--chunk-lines .*: allowed: a whole number, at least 1"):
        checked(read_count("--chunk-lines", text, least=1))


def test_the_precisions_that_are_offered_are_those_that_there_are() -> None:
    """The options name them by themselves, for they import no PyTorch."""
    assert tuple(PRODUCTS) == PRECISIONS


def test_every_key_of_the_decoding_section_is_an_option_by_its_name() -> None:
    settings = {
        "beam_size": 7,
        "length_penalty": 0.5,
        "max_length_ratio": 1.5,
        "max_length_extra": 19,
        "batch_tokens": 11,
        "batch_sentences": 17,
        "minimum_length": 13,
        "minimum_length_ratio": 0.5,
        "no_repeat_ngram_size": 3,
        "suppress_unknown": True,
        "coverage_penalty": 0.25,
    }
    assert settings.keys() == DecodingConfig.model_fields.keys()
    arguments = [f"--{name.replace('_', '-')}={str(value).lower()}" for name, value in settings.items()]
    assert searched(*arguments) == (settings, [])
    assert searched() == ({}, [])


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--length-penalty=none", "length_penalty", "none"),
        ("--length-penalty=0", "length_penalty", 0.0),
        ("--length-penalty=1e-1", "length_penalty", 0.1),
        ("--length-penalty=.5", "length_penalty", 0.5),
        ("--length-penalty=2.", "length_penalty", 2.0),
        ("--max-length-ratio=3", "max_length_ratio", 3.0),
        ("--min-length=3", "minimum_length", 3),
        ("--min-length-ratio=.5", "minimum_length_ratio", 0.5),
        ("--suppress-unknown", "suppress_unknown", True),
        ("--suppress-unknown=false", "suppress_unknown", False),
    ],
)
def test_values(argument: str, name: str, value: object) -> None:
    assert searched(argument) == ({name: value}, [])


@pytest.mark.parametrize("text", ["0", "-3", "2.0", "1e3", "nan", "true", "", "9" * 5000, "1_0", "\u0663", " 3", "+3"])
def test_what_is_no_size(text: str) -> None:
    options, (problem,) = searched(f"--beam-size={text}", "--batch-tokens=5")
    assert options["batch_tokens"] == 5
    assert problem.startswith(f"--beam-size {shlex.quote(text)}: allowed: a whole number, at least 1 and at most 1")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--min-length=-1", "--min-length -1: allowed: a whole number, at least 0 and at most 1,000"),
        ("--min-length-ratio=half", "--min-length-ratio half: allowed: a number, at least 0 and at most 100"),
        ("--batch-sentences=null", "--batch-sentences null: allowed: a whole number, at least 1 and at most 1,000,000"),
        ("--no-repeat-ngram-size=2.5", "--no-repeat-ngram-size 2.5: allowed: a whole number, at least 0"),
        ("--length-penalty=0_1", "--length-penalty 0_1: allowed: "),
        ("--suppress-unknown=perhaps", "--suppress-unknown perhaps: allowed: true or false"),
    ],
)
def test_what_is_no_rule(argument: str, expected: str) -> None:
    _, (problem,) = searched(argument)
    assert problem.startswith(expected)
    assert "null" not in problem.removeprefix(argument.replace("=", " "))


def test_paths_that_cannot_be_asked_about_are_problems_too(tmp_path: Path) -> None:
    name = str(tmp_path / ("a" * 300))
    (problem,) = check_outputs({"--output": name}, others=[("--input", tmp_path)])
    assert problem.startswith(name)


def test_a_file_in_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """The file itself could be written, but not the new one beside it that is to take its place."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "out").touch()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("run by root, who may write everywhere")
    with pytest.raises(UserError, match=r"the folder .* cannot be written to"):
        check_output("--output", str(folder / "out"), others=[])


@pytest.mark.parametrize("end", [".gz", ".GZ"])
def test_output_is_not_compressed(tmp_path: Path, end: str) -> None:
    """Files that are read may be, so that a user may expect it; text under such a name nothing could unpack."""
    name = str(tmp_path / f"text{end}")
    with pytest.raises(UserError) as error:
        check_output("--output", name, others=[])
    told = f"--output {name}: output is not compressed; give a name without {end}, and gzip the file then"
    assert error.value.messages == (told,)


@pytest.mark.skipif(not FULL.exists(), reason="needs the device /dev/full")
def test_a_full_disk() -> None:
    with pytest.raises(UserError, match="/dev/full: cannot be written"), opened_for_writing(str(FULL)) as file:
        file.write(b"text")


@pytest.mark.skipif(not FULL.exists(), reason="needs the device /dev/full")
def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Yes, they do.\n", encoding="utf-8")
    command = [sys.executable, "-m", "nmt.cli.evaluate", "--hypotheses", "text", "--reference", "text"]
    with FULL.open("wb") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("nmt-eval: error: standard output: cannot be written")
