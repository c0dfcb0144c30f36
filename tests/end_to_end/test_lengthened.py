"""A run that has ended, and is resumed with a later end, goes on as if it had been so long from the start."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.cli.train import main
from nmt.models.model_file import load_model
from tests.end_to_end.conftest import STATE, assert_same_state, settings, shown, timeless, translations

pytestmark = pytest.mark.slow

LONG: dict[str, Any] = {
    "max_updates": 20,
    "batch_size": 10,
    "accumulate": 1,
    "validate_every": "6 updates",
    "early_stopping": {"metric": "bleu", "patience": 50},
}


def train(config: Path, output: Path, *more: str, **training: Any) -> int:
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    content["training"] |= training
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return main(["--config", str(config), "--output", str(output), "--device", "cpu", *more])


def numbers_shown(run: Path) -> dict[str, dict[int, Any]]:
    """What TensorBoard shows, but for texts, of which it forgets none."""
    return {tag: values for tag, values in shown(run).items() if not tag.startswith("translation")}


@pytest.fixture(scope="module")
def config(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lengthened") / "tiny.yaml"
    content = settings(corpus)
    content["training"] |= LONG
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(config: Path) -> Path:
    """The folder of a run that was so long from the start."""
    output = config.parent / "whole"
    assert train(config, output) == 0
    return output


def test_a_lengthened_run_is_as_one_that_was_so_long(config: Path, whole: Path, tmp_path: Path) -> None:
    """It ended between two validations and two reports, with an average of checkpoints."""
    output = tmp_path / "run"
    assert train(config, output, **{**LONG, "max_updates": 10}) == 0
    assert len(timeless(output / "metrics.jsonl")) < len(timeless(whole / "metrics.jsonl"))
    assert train(config, output, "--resume", **LONG) == 0
    assert_same_state(whole / STATE, output / STATE)
    assert timeless(whole / "metrics.jsonl") == timeless(output / "metrics.jsonl")
    assert repr(numbers_shown(whole)) == repr(numbers_shown(output))
    assert translations(whole) == translations(output)
    assert len(translations(output)) == 4  # of the updates 6, 12, 18, and 20
    assert (whole / "config.yaml").read_bytes() == (output / "config.yaml").read_bytes()
    models = [sorted(path.relative_to(folder) for path in folder.rglob("*.safetensors")) for folder in (whole, output)]
    assert models[0] == models[1]
    best, expected = (load_model(folder / "best.safetensors") for folder in (output, whole))
    assert best.training == expected.training
    for name, weight in expected.weights.items():
        assert weight.equal(best.weights[name]), name
