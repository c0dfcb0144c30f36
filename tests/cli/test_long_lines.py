"""The warning about lines of several sentences, and about those that are longer than what a model was trained on."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.translate import main
from nmt.models.model_file import LONGEST_SOURCE, load_model, longest_trained, save_model
from tests.random_model import save_random_model

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

TEXT = "A dog runs . Two men are reading .\na dog\n\na dog runs across the green field and across the field\n"  # 1 + 1
Make = Callable[[Any], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A function that makes a model whose file says that its longest source line had so many pieces."""

    def made(longest: Any, **data: str) -> Path:
        file = load_model(save_random_model(tmp_path / "model.safetensors"))
        config = file.config.model_copy(update={"data": file.config.data.model_copy(update=data)})
        path = tmp_path / "other.safetensors"
        save_model(path, file._replace(config=config, training={LONGEST_SOURCE: longest}))
        return path

    return made


def warnings(capsys: pytest.CaptureFixture[str], model: Path, *options: object, code: int = 0) -> list[str]:
    source = model.with_name("source")
    if not source.exists():
        source.write_text(TEXT, encoding="utf-8")
    arguments = ["--model", model, "--input", source, "--output", source.with_name("out"), *options]
    assert main([str(one) for one in arguments]) == code
    return [line for line in capsys.readouterr().err.splitlines() if "warning" in line]


@pytest.mark.parametrize("options", [(), ("--chunk-lines", 1), ("--resume",)])
def test_one_warning_counts_both(make, capsys, options) -> None:
    (warning,) = warnings(capsys, make(12), *options)
    assert warning == (
        "nmt-translate: warning: 2 of 4 lines have several sentences or more pieces than the model was trained on "
        "(12), and may lose parts in translation; --split-sentences translates a line sentence by sentence"
    )


def test_lines_that_are_not_too_long(make, capsys) -> None:
    (warning,) = warnings(capsys, make(60))
    assert "warning: 1 of 4 lines has several sentences" in warning


def test_none_with_the_option(make, capsys) -> None:
    assert warnings(capsys, make(2), "--split-sentences") == []
    assert warnings(capsys, make(2), "--split-sentences", "--chunk-lines", 1) == []


def test_without_sentencex_there_is_the_length(make, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nmt.decoding.text.sentences.find_spec", lambda name: None)
    (warning,) = warnings(capsys, make(12))
    assert "2 of 4 lines have more pieces than the model was trained on (12)" in warning
    assert warning.endswith("(pip install 'nmt-toolkit[text]')")
    assert warnings(capsys, make(60)) == []


def test_a_language_that_has_no_code(make, capsys) -> None:
    (warning,) = warnings(capsys, make(12, source_language="Martian"))
    assert "2 of 4 lines have more pieces" in warning


def test_lines_of_a_pipe(make, capfd, monkeypatch, tmp_path) -> None:
    model = make(12)
    (tmp_path / "source").write_text(TEXT, encoding="utf-8")
    with (tmp_path / "source").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["--model", str(model), "--flush"]) == 0
    assert capfd.readouterr().err.count("warning: 2 of 4 lines") == 1


@pytest.mark.parametrize("unknown", [None, 0, -3, True, "12", 1.5])
def test_files_that_do_not_say_have_their_limit(make, unknown) -> None:
    file = load_model(make(unknown))
    assert longest_trained(file) == file.config.data.max_length == 100
    assert longest_trained(file._replace(training={LONGEST_SOURCE: 12})) == 12
