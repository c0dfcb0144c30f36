"""A line of many thousand words among the validation's: training goes on, in memory that grows with the line only."""

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import data_section, make_synthetic_corpus

pytestmark = pytest.mark.slow

WORDS = 2000
MEMORY = 2 << 30  # bytes of address space, of which PyTorch takes the half


def test_training_with_a_validation_line_of_2000_words(
    tiny: Callable[..., Path], tmp_path: Path, command: Callable[..., list[str]]
) -> None:
    corpus = make_synthetic_corpus(tmp_path / "corpus", train=300, valid=5, test=1)
    for language in ("en", "de"):
        path = corpus / f"valid.{language}"
        words = path.read_text(encoding="utf-8").split()
        with open(path, "a", encoding="utf-8") as file:
            file.write(" ".join((words * WORDS)[:WORDS]) + "\n")
    data: dict[str, Any] = {**data_section(corpus), "cache_folder": str(tmp_path / "cache")}
    training = {"max_epochs": 1, "batch_size": 100, "validate_every": "1 epoch", "average_best": 0}
    config = tiny(
        data=data, training=training, decoding={"max_length_ratio": 0.1}
    )  # twice the length, the default, takes long
    done = subprocess.run(
        command("train", "--config", config, "--output", tmp_path / "run", "--device", "cpu"),
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert done.returncode == 0, done.stderr
    assert "validation · epoch 1.00" in done.stderr
