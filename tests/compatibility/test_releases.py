"""Files of every earlier release: models translate as they did, runs end as they would have without the upgrade."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.cli import score, train, translate
from nmt.training.checkpoint import read_state

HERE = Path(__file__).resolve().parent
RELEASES = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
MODELS = [model for release in RELEASES for model in sorted(release.glob("*.safetensors")) if model.stem != "final"]
TIMES = {"seconds", "target_tokens_per_second"}

each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_there_is_a_release() -> None:
    assert RELEASES
    assert len(MODELS) >= 3 * len(RELEASES)


@each_model
def test_a_model_translates_as_it_did(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "translated"
    arguments = ["--model", str(model), "--input", str(model.parent / "valid.en"), "--output", str(output)]
    assert translate.main([*arguments, "--device", "cpu"]) == 0
    assert output.read_bytes() == model.with_suffix(".translated").read_bytes()


@each_model
def test_a_model_scores_as_it_did(model: Path, tmp_path: Path) -> None:
    output, release = tmp_path / "scores", model.parent
    pair = ["--source", str(release / "valid.en"), "--target", str(release / "valid.de"), "--output", str(output)]
    assert score.main(["--model", str(model), *pair, "--device", "cpu"]) == 0
    scores, recorded = (
        [float(line) for line in path.read_text().splitlines()] for path in (output, model.with_suffix(".scores"))
    )
    assert scores == pytest.approx(recorded, abs=2e-4)  # four digits behind the point are written


@each_release
def test_a_shortlist_is_read(release: Path, tmp_path: Path) -> None:
    arguments = ["--model", str(release / "bahdanau.safetensors"), "--input", str(release / "valid.en")]
    arguments += ["--shortlist", str(release / "bahdanau.shortlist"), "--output", str(tmp_path / "translated")]
    assert translate.main([*arguments, "--device", "cpu"]) == 0
    assert len((tmp_path / "translated").read_text(encoding="utf-8").splitlines()) == 12


@pytest.mark.parametrize("cache", ["kept", "gone"])
@each_release
def test_a_run_is_resumed_to_its_end(release: Path, cache: str, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release, folder)
    if cache == "gone":
        shutil.rmtree(folder / "cache")
    run = folder / "run"
    saved = run / "config.yaml"
    saved.write_text(saved.read_text(encoding="utf-8").replace("/fixture", str(folder.resolve())), encoding="utf-8")
    arguments = ["--config", str(folder / "bahdanau.yaml"), "--output", str(run), "--device", "cpu"]
    assert train.main([*arguments, "--resume"]) == 0

    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    recorded = json.loads((release / "final.json").read_text(encoding="utf-8"))
    assert [place(record) for record in records] == [place(record) for record in recorded]
    for ours, theirs in zip(records, recorded, strict=True):
        for name in theirs.keys() - TIMES - {"split"}:
            assert math.isclose(ours[name], theirs[name], rel_tol=1e-4, abs_tol=1e-4), (place(theirs), name)
    weights = read_state(run / "state.safetensors").tensors
    for name, weight in load_file(release / "final.safetensors").items():
        torch.testing.assert_close(weights[name], weight, rtol=1e-5, atol=1e-5)
    best = sorted((record["bleu"], -record["step"]) for record in recorded if record["split"] == "valid")[-2:]
    last = max(record["step"] for record in recorded)
    kept = {int(path.stem.removeprefix("update-")) for path in (run / "checkpoints").iterdir()}
    assert kept == {-step for _, step in best} | {last}


def place(record: dict[str, Any]) -> tuple[int, str]:
    return record["step"], record["split"]
