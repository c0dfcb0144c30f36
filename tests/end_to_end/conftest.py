"""A tiny corpus and a configuration with every random state: dropout, subword sampling, accumulation, averaging."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 training, 40 validation and 30 test pairs of the synthetic corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    script = ROOT / "scripts" / "make_synthetic_corpus.py"
    sizes = ["--train", "600", "--valid", "40", "--test", "30"]
    subprocess.run([sys.executable, script, "--output", folder, *sizes], check=True, stdout=subprocess.DEVNULL)
    return folder


def settings(corpus: Path) -> dict[str, Any]:
    return {
        "name": "tiny",
        "seed": 7,
        "data": {
            "source_language": "en",
            "target_language": "de",
            "train": [{"source": str(corpus / "train.en"), "target": str(corpus / "train.de")}],
            "valid": {"source": str(corpus / "valid.en"), "target": str(corpus / "valid.de")},
            "cache_folder": str(corpus / "cache"),
        },
        "subwords": {"type": "bpe", "size": 300, "sampling": {"alpha": 0.1}},
        "model": {
            "embedding_size": 16,
            "encoder": {"hidden_size": 24, "layers": 2, "dropout": 0.2},
            "decoder": {"hidden_size": 32, "dropout": 0.2},
        },
        "training": {
            "optimizer": {"name": "adam", "learning_rate": 5e-3},
            "schedule": {"name": "plateau", "metric": "loss", "patience": 0},
            "batch_size": 20,
            "accumulate": 2,
            "max_epochs": 8,
            "validate_every": "25 updates",
            "early_stopping": {"metric": "loss", "patience": 50},
            "label_smoothing": 0.1,
            "gradient_clip_norm": 1.0,
            "keep_best": 2,
            "average_best": 2,
            "save_every": "3 updates",
            "log_every": 7,
        },
    }


@pytest.fixture
def tiny(corpus: Path, tmp_path: Path) -> Callable[..., Path]:
    """tiny(**sections) writes the configuration, with some sections changed, and returns its path."""

    def write(**changes: dict[str, Any]) -> Path:
        merged = settings(corpus)
        for section, values in changes.items():
            merged[section] = {**merged[section], **values}
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump(merged), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def command() -> Callable[..., list[str]]:
    """command("train", …) is the command line of nmt-train in a process of its own."""

    def build(name: str, *arguments: object) -> list[str]:
        return [sys.executable, "-m", f"nmt.cli.{name}", *map(str, arguments)]

    return build
