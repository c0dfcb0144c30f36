"""--list-configs, and --config with the name of an example: which file is read, and where its paths lead."""

from pathlib import Path

import pytest

from nmt.cli import train
from nmt.config.loading import read_config
from nmt.examples import data, description, examples
from tests.conftest import ROOT, make_synthetic_corpus


@pytest.fixture(autouse=True)
def elsewhere(here: Path) -> Path:
    return here


def errors(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What nmt-train says when it refuses the arguments."""
    assert train.main([*arguments, "--device", "cpu"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize(("which", "patterns"), [([], ["*.yaml"]), (["all"], ["*.yaml", "research/*.yaml"])])
def test_examples_are_listed_with_what_they_are(
    which: list[str], patterns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["--list-configs", *which]) == 0
    listed, _, rest = capsys.readouterr().out.partition("\n\n")
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == [path.stem for pattern in patterns for path in sorted((ROOT / "configs").glob(pattern))]
    assert "  A small model on a synthetic corpus: all the way from one YAML file to a scored translation" in listed
    assert f" {ROOT / 'configs'}\n" in rest
    assert ("--list-configs all" in rest) == (which == [])


@pytest.mark.parametrize("path", examples().values(), ids=lambda path: path.name)
def test_headers_have_a_description_and_data(path: Path) -> None:
    assert 50 < len(description(path)) < 250
    assert description(path).endswith(".")
    assert len(data(path)) > 20
    assert ": " not in data(path)[:10], "not the next part of the header"


def test_an_example_reads_and_writes_in_the_current_folder(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_synthetic_corpus(Path("data/synthetic"), train=200, valid=5, test=1)
    sizes = [f"model.{key}=8" for key in ("embedding_size", "encoder.hidden_size", "decoder.hidden_size")]
    changes = [part for value in ("training.max_updates=1", "subwords.size=100", *sizes) for part in ("--set", value)]
    assert train.main(["--config", "demo", *changes, "--device", "cpu"]) == 0
    config = read_config(elsewhere / "runs" / "demo" / "config.yaml").config
    assert config.data.train[0].source == elsewhere / "data" / "synthetic" / "train.en"
    assert (elsewhere / "runs" / "demo" / "best.safetensors").is_file()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["data", "runs"]
    capfd.readouterr()


def test_without_its_data_an_example_says_what_makes_them(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    (line,) = errors(capsys, "--config", "demo").splitlines()
    assert line.endswith(
        "configs/demo.yaml, line 10: data: the example's files are not in this folder; its header says: "
        "data/synthetic, which the command nmt-synthetic makes"
    )
    (elsewhere / "configs").mkdir()
    (elsewhere / "configs" / "demo.yaml").write_bytes(examples()["demo"].read_bytes())
    assert len(errors(capsys, "--config", "configs/demo.yaml").splitlines()) == 5, "only the files, if it is no example"


def test_of_an_example_with_data_the_file_is_named_that_is_not_there(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    make_synthetic_corpus(Path("data/synthetic"), train=2, valid=1, test=1)
    capsys.readouterr()
    (elsewhere / "data" / "synthetic" / "valid.de").unlink()
    (line,) = errors(capsys, "--config", "demo").splitlines()
    assert "demo.yaml, line 18: data.valid.target: " in line
    assert f"{elsewhere / 'data' / 'synthetic' / 'valid.de'}: no such file" in line


def test_a_file_wins_over_an_example_and_a_folder_does_not(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    (elsewhere / "demo").mkdir()
    assert "the example's files are not in this folder" in errors(capsys, "--config", "demo")
    (elsewhere / "demo").rmdir()
    (elsewhere / "demo").write_text("name: mine")
    assert "demo: data: this key is missing" in errors(capsys, "--config", "demo")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("demoo", "demoo: no such configuration file; nearest of the examples: demo"),
        ("configs/multi30k_en_de.yaml", "; nearest of the examples: multi30k_en_de"),
        ("demo.yaml", "; nearest of the examples: demo"),  # besides dem.yaml
        ("zebra", "zebra: no such configuration file; nmt-train --list-configs lists examples"),
        ("my_file", "my_file: no such configuration file; nearest of the examples: my_files"),  # and not Makefile
    ],
)
def test_a_name_that_nothing_has(capsys: pytest.CaptureFixture[str], name: str, told: str) -> None:
    for other in ("dem.yaml", "Makefile"):
        Path(other).touch()
    assert errors(capsys, "--config", name).endswith(f"{told}\n")
