"""The benchmark of training: what its line says, and what its variants are."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import train_speed
from benchmarks.reference_task import VARIANTS
from nmt.models.model_file import load_model
from tests.benchmarks.conftest import PAIRS

pytestmark = pytest.mark.usefixtures("threads")


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed here, so one update is warming up enough."""
    monkeypatch.setattr(train_speed, "WARM_UP", 1)


def line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The last line of stdout."""
    figures: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return figures


def test_the_line(tiny_config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--config", str(tiny_config), "--updates", "3", "--threads", "1"]
    assert train_speed.main(arguments) == 0
    figures = line(capsys)
    assert (figures["task"], figures["variant"], figures["device"]) == ("tiny", "reference", "cpu")
    assert (figures["precision"], figures["kernels"]) == ("float32", "auto")
    assert figures["computing"] == "fused kernels, products in float32"
    assert (figures["threads"], figures["updates"], figures["pairs"]) == (1, 3, PAIRS)
    assert figures["pieces"] == [120, 120]
    assert figures["parameters"] * 4 / 2**20 == pytest.approx(figures["parameters_mib"], abs=0.06)
    assert figures["target_tokens_per_second"] > 0
    assert figures["overall_target_tokens_per_second"] > 0
    assert 50 < figures["peak_resident_mib"] < 100_000
    assert "peak_device_mib" not in figures


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_trains(variant: str, tiny_config: Path, tmp_path: Path) -> None:
    saved = tmp_path / "model.safetensors"
    arguments = ["--config", str(tiny_config), "--updates", "1", "--variant", variant, "--save", str(saved)]
    assert train_speed.main(arguments) == 0
    sections = load_model(saved).config.model_dump(mode="json")
    for override in VARIANTS[variant]:
        key, _, value = override.partition("=")
        setting: Any = sections
        for part in key.split("."):
            setting = setting[part]
        assert str(setting).lower() == value, override
