"""What nmt-translate and nmt-eval share: values of options, and files to write that cannot be written."""

import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from nmt.cli import train, translate
from nmt.cli.common import describe
from nmt.cli.options import ENSEMBLES, translation_values
from nmt.cli.outputs import check_output, opened_for_writing
from nmt.config.schema import DecodingConfig, EnsembleName
from nmt.decoding.options import TranslationOptions
from nmt.errors import UserError

FULL = Path("/dev/full")  # a device of Linux on which every write fails as on a full disk


def searched(*arguments: str) -> dict[str, Any]:
    """The options of a translation that were read."""
    problems: list[str] = []
    values = translation_values(vars(translate.parser().read(arguments)[0]), problems)
    assert problems == []
    TranslationOptions(**values)
    return values


def test_a_whole_number_is_digits_and_all_wrong_values_are_told() -> None:
    options, problems = translate.parser().read(["--chunk-lines", "12"])
    assert (options.chunk_lines, problems) == (12, [])
    wrong = ["0", "-1", "+1", " 5", "1_0", "1.0", "\u0663", "", "9" * 18, "9" * 5000]
    options, problems = translate.parser().read([*(f"--chunk-lines={text}" for text in wrong), "--precision=fp1"])
    assert options.chunk_lines is None
    *numbers, precision = problems
    assert len(numbers) == len(wrong)
    for line in numbers:
        assert re.fullmatch(r"--chunk-lines .*: allowed: a whole number, at least 1", line)
    assert precision == "--precision fp1: unknown; choose one of float32, bfloat16, int8"


def test_a_number_has_limits() -> None:
    assert train.parser().read(["--rank-timeout", "0.5"])[0].rank_timeout == 0.5
    wrong = ["0", "-1", "nan", "inf", "1e400", "ten", ""]
    _, problems = train.parser().read([f"--rank-timeout={text}" for text in wrong])
    assert [problem.partition(": ")[2] for problem in problems] == [
        "allowed: a number, at least 0.1 and at most 10,000"
    ] * len(wrong)


def test_the_names_that_are_offered_are_those_that_there_are() -> None:
    """The options name them by themselves, for they import no PyTorch."""
    assert get_args(EnsembleName) == ENSEMBLES


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
    assert settings.keys() == DecodingConfig.model_fields.keys() - {"protect"}  # which may have several values
    arguments = [f"--{name.replace('_', '-')}={str(value).lower()}" for name, value in settings.items()]
    settings["protect"] = ["numbers", r"ART-\d+"]
    arguments += ["--protect", *settings["protect"]]
    assert searched(*arguments) == settings
    assert searched("--protect") == {"protect": []}
    assert searched() == {}


def test_several_keys_are_set_by_one_option_or_by_several() -> None:
    options, _ = train.parser().read(["--set", "name=a", "seed=2", "--resume", "--set", "model={}"])
    assert (options.overrides, options.resume) == (["name=a", "seed=2", "model={}"], True)
    assert train.parser().read([])[0].overrides == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("--length-penalty=none", "none"),
        ("--length-penalty=1e-1", 0.1),
        ("--length-penalty=.5", 0.5),
        ("--length-penalty=2.", 2.0),
        ("--max-length-ratio=3", 3.0),
        ("--suppress-unknown", True),
        ("--suppress-unknown=false", False),
    ],
)
def test_values(argument: str, value: object) -> None:
    assert list(searched(argument).values()) == [value]


@pytest.mark.parametrize(
    ("arguments", "named", "allowed"),
    [
        *(
            (["--beam-size", text], "--beam-size", "a whole number, at least 1 and at most 1,000")
            for text in ("0", "2.0", "1e3", "nan", "true", "", "9" * 5000, "1_0", "\u0663", " 3", "+3")
        ),
        (["--minimum-length=-1"], "--minimum-length", "a whole number, at least 0 and at most 1,000"),
        (["--batch-sentences=null"], "--batch-sentences", "a whole number, at least 1 and at most 1,000,000,000"),
        (["--suppress-unknown=perhaps"], "--suppress-unknown", "true or false"),
        (["--sample", "--top-p=2"], "--top-p", "a number, more than 0 and at most 1"),
        (["--n-best=0"], "--n-best", "a whole number, at least 1"),
    ],
)
def test_a_wrong_value_is_named_as_the_command_names_it(arguments: list[str], named: str, allowed: str) -> None:
    values = translation_values(vars(translate.parser().read(arguments)[0]), [])
    with pytest.raises(UserError) as caught:
        TranslationOptions(**values)
    assert re.fullmatch(
        rf"nmt-any: error: {named} is .*; allowed: {re.escape(allowed)}", describe("nmt-any", caught.value)
    )


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
