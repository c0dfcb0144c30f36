"""nmt-train with watched corpora: what is measured of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.models.model_file import load_model
from tests.cli.conftest import FEW, Train, records
from tests.cli.test_train_finetuning import stop_at_validation, without

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def new(tmp_path: Path, tiny: Path, corpus: Path) -> Path:
    """A configuration to train on sentences of another kind, and to watch those of the first one."""
    for name, (english, german) in {"train": ("a fox", "ein Fuchs"), "valid": ("the fox", "der Fuchs")}.items():
        (tmp_path / f"{name}.en").write_text(f"{english} runs .\n" * 24, encoding="utf-8")
        (tmp_path / f"{name}.de").write_text(f"{german} rennt .\n" * 24, encoding="utf-8")
    train, valid = (
        {"source": str(tmp_path / f"{name}.en"), "target": str(tmp_path / f"{name}.de")} for name in ("train", "valid")
    )
    old = {"name": "old", "source": str(corpus / "valid.en"), "target": str(corpus / "valid.de")}
    data = {"source_language": "en", "target_language": "de", "train": [train], "valid": valid, "watch": [old]}
    return without(tiny, tmp_path / "new.yaml", "model", "subwords", data=data, decoding={"max_length_extra": 2})


def validations(output: Path) -> list[dict[str, Any]]:
    return [record for record in records(output) if record["split"] == "valid"]


def test_a_watched_corpus_is_scored_like_that_of_validation(
    tmp_path: Path, tiny: Path, corpus: Path, train: Train, capsys: Capture
) -> None:
    """The same files have the same numbers, and the run is the one without them."""
    watch = f"data.watch=[{{name: old, source: {corpus / 'valid.en'}, target: {corpus / 'valid.de'}}}]"
    assert train(tiny, tmp_path / "run", watch, *FEW) == 0
    assert train(tiny, tmp_path / "without", *FEW) == 0
    first, second, _ = validations(tmp_path / "run")
    for record in (first, second):
        assert {f"old.{name}": record[name] for name in ("loss", "perplexity", "bleu", "chrf") if name in record} == {
            name: value for name, value in record.items() if name.startswith("old.")
        }
    assert second["old.loss"] != first["old.loss"]
    told = capsys.readouterr().err
    assert f"old: loss {first['loss']:.4f} · old: perplexity " in told
    mine, theirs = (load_model(tmp_path / name).weights for name in ("run", "without"))
    assert all(torch.equal(weight, theirs[name]) for name, weight in mine.items())


def test_a_check_that_came_later_ends_no_run(
    tmp_path: Path, new: Path, trained: Path, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A run that began when nobody had checked it goes on with the same configuration; no other begins with it."""
    old = tmp_path / "valid.en"
    options = (f"data.watch=[{{name: old, source: {old}, target: {old}}}]", "--init-from", trained)
    with monkeypatch.context() as patch:
        patch.setattr("nmt.experiment.request.contradictions", lambda config: [])
        stop_at_validation(patch, 2)
        assert train(new, tmp_path / "run", *options) == 130
    shutil.copytree(tmp_path / "run", tmp_path / "killed")
    (tmp_path / "killed" / "state.safetensors").unlink()
    for name, more in (("other", ()), ("killed", ("--resume",)), ("run", ("--resume", "training.max_epochs=4"))):
        capsys.readouterr()
        assert train(new, tmp_path / name, *options, *more) == 2
        assert f"data.watch.0: source and target are the same file, {old}" in capsys.readouterr().err
    assert train(new, tmp_path / "run", *options, "--resume") == 0
    assert [record["epoch"] for record in validations(tmp_path / "run")] == [0, 1, 2, 3]
