"""What goes wrong in the midst of training: memory that ends, losses that are no numbers, files that are damaged."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Train = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def complaint(capsys: Capture) -> str:
    """What was reported; never a traceback."""
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors[errors.index("nmt-train: ") :]


def test_memory_that_does_not_hold_validation(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice is what helps there: validation ignores data.max_length, and is greedy by default."""

    def short_of_memory(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12345 bytes.")

    monkeypatch.setattr("nmt.cli.validation.corpus_loss", short_of_memory)
    for more in ([], ["training.validation.beam_size=3"]):
        assert train(tiny, tmp_path / "run", *more) == 2
        said = complaint(capsys)
        assert "the memory does not suffice for validation: lower decoding.batch_tokens (2000)" in said
        assert ("training.validation.beam_size (3)" in said) == bool(more)
        assert re.search(r"the longest lines of \S+valid\.en and \S+valid\.de \(\d+ and \d+ pieces\)", said)
        assert "data.max_length" not in said
        shutil.rmtree(tmp_path / "run")
