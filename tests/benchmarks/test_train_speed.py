"""The benchmark of training: what its line says, what its variants are, and how a rival is run in turn."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import train_speed
from benchmarks.reference_task import REFERENCE, VARIANTS, Task
from nmt.models.model_file import load_model
from tests.benchmarks.conftest import PAIRS
from tests.conftest import ROOT

SCRIPT = ROOT / "benchmarks" / "train_speed.py"

pytestmark = pytest.mark.usefixtures("_threads")


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


@pytest.mark.parametrize(("precision", "kernels"), [("bfloat16", "fused"), ("float32", "plain")])
def test_precision_and_kernels_are_chosen(
    precision: str, kernels: str, tiny_config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--precision", precision, "--kernels", kernels]
    assert train_speed.main(["--config", str(tiny_config), "--updates", "1", *how]) == 0
    assert line(capsys)["computing"] == f"{kernels} kernels, products in {precision}"


def test_a_combination_without_effect_is_refused(tiny_config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--precision", "bfloat16", "--kernels", "plain"]
    assert train_speed.main(["--config", str(tiny_config), "--updates", "1", *how]) == 2
    assert "has no effect with training.kernels: plain" in capsys.readouterr().err


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


def test_variants_change_the_reference_task() -> None:
    """Each is a configuration of its own, with nothing that repeats the reference."""
    for variant, overrides in VARIANTS.items():
        configs = [Task(REFERENCE, name, (), "float32", "auto", "cpu", None).load() for name in ("reference", variant)]
        assert (configs[0] == configs[1]) == (variant == "reference")
        assert len(set(overrides)) == len(overrides)


def test_updates_beyond_an_epoch_accumulate_and_sample(tiny_config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """40 pairs in batches of 16 are three batches, so two updates of two batches an epoch, the second of one."""
    sets = ["training.accumulate=2", "subwords={size: 120, sampling: {alpha: 0.1}}"]
    options = [word for override in sets for word in ("--set", override)]
    assert train_speed.main(["--config", str(tiny_config), "--updates", "4", *options]) == 0
    assert line(capsys)["updates"] == 4


@pytest.mark.slow
def test_as_a_script_in_turn_with_a_rival(tiny_config: Path, tmp_path: Path) -> None:
    (tmp_path / "rival.py").write_text('print("warming up")\nprint(\'{"target_tokens_per_second": 0.5}\')\n')
    rival = shlex.join([sys.executable, str(tmp_path / "rival.py")])
    command = [sys.executable, SCRIPT, "--config", tiny_config, "--updates", "1", "--threads", "1"]
    finished = subprocess.run(
        [*command, "--against", rival, "--runs", "1"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    figures = json.loads(finished.stdout)
    assert figures["runs"] == {"ours": [figures["target_tokens_per_second"]], "rival": [0.5]}
    assert figures["rival_target_tokens_per_second"] == 0.5
    assert figures["ratio"] == pytest.approx(figures["target_tokens_per_second"] / 0.5, abs=1e-3)
    assert finished.stderr.count("rival: 0.5 target tokens/s") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "absent.yaml"], "absent.yaml"),
        (["--set", "model.attention.score=nosuch"], "nosuch"),
        (["--set", "training.batchsize=3"], "batch_size"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train_speed.main([*arguments, "--updates", "1"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--updates", "0"], "'0' is not a whole number"),
        (["--variant", "nosuch"], "lstm_luong_general"),
        (["--save", "file", "--against", "rival"], "--save has no effect with --against"),
    ],
)
def test_mistakes_of_options(arguments: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(train_speed.main, arguments)
