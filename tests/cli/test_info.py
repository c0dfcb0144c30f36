"""nmt-info: what is told of a model, and of a text for it."""

import json
from pathlib import Path

import pytest
import yaml

from nmt.cli.info import main
from nmt.models.model_file import load_model
from tests.cli.conftest import PIECES, TRAINING_PAIRS

Capture = pytest.CaptureFixture[str]


def test_a_trained_model(trained: Path, tmp_path: Path, capfd: Capture) -> None:
    text = tmp_path / "text"
    text.write_text("the dog\nthe #dog €\n€ #\n", encoding="utf-8")
    assert main(["--model", str(trained), "--input", str(text), "--json"]) == 0
    about = json.loads(capfd.readouterr().out)
    model = load_model(trained)
    assert (about["name"], about["source_language"], about["target_language"]) == ("tiny", "en", "de")
    assert (about["source_vocabulary"], about["training_pairs"]) == (PIECES, TRAINING_PAIRS)
    assert about["parameters"] == sum(weight.numel() for weight in model.weights.values())
    assert about["validation"] == model.training["validation"]
    assert about["unknown"] == {"#": 2, "€": 2}
    assert main(["--model", str(trained), "--input", str(text)]) == 0
    assert yaml.safe_load(capfd.readouterr().out) == about


def test_mistakes(tmp_path: Path, capfd: Capture) -> None:
    assert main([]) == 2
    assert capfd.readouterr().err == "nmt-info: error: --model PATH is missing: a model file, or the folder of a run\n"
    assert main(["--model", str(tmp_path)]) == 2
    assert f"{tmp_path}: holds no best.safetensors" in capfd.readouterr().err
