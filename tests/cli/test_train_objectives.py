"""Training with another objective, or with other weights validated, as a user runs it: what is kept, what resumes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.batch import Batch
from nmt.models.model_file import load_model
from nmt.symbols import PIECES
from nmt.training.states import read_state
from nmt.training.update import UpdateResult, update
from tests.cli.conftest import Train, stop_at_update
from tests.end_to_end.conftest import assert_same


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        ("training.moving_average={decay: 0.9}", "training.keep_best=2", "training.average_best=2"),
        ("training.r_drop={weight: 5}", "training.accumulate=2", "training.label_smoothing=0.1"),
        (
            "training.word_replacement={source: 0.1, target: 0.2}",
            "training.scheduled_sampling={probability: 0.5, updates: 10}",
            "training.recurrent_dropout=0.3",
        ),
    ],
)
def test_an_interrupted_training_resumes_exactly(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...]
) -> None:
    """From a state that was saved within an epoch."""
    settings = (*changes, "training.max_epochs=2", "training.save_every=2 updates")
    assert train(tiny, tmp_path / "whole", *settings) == 0
    with monkeypatch.context() as patch:
        stop_at_update(patch, 8)
        assert train(tiny, tmp_path / "halves", *settings) == 2
    assert train(tiny, tmp_path / "halves", *settings, "--resume") == 0
    assert_same(tmp_path / "whole", tmp_path / "halves")


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        ((), True),
        (("training.word_replacement={source: 0.3, target: 0.3}",), False),
        (("training.scheduled_sampling={probability: 1.0, updates: 1}",), False),
        (("training.minimum_risk={size: 3}",), False),
    ],
)
def test_what_the_seed_decides(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, changes: tuple[str, ...], alike: bool
) -> None:
    """From the same weights, in the same order and without dropout, only what one option draws tells seeds apart."""
    order = ("training.shuffle=never", "training.batch_order=sorted")
    settings = (*order, *changes, "model.encoder.dropout=0", "training.max_updates=2")
    for seed in "12":
        assert train(tiny, tmp_path / seed, *settings, f"seed={seed}", "--init-from", trained) == 0
    last = "checkpoints/update-00000002.safetensors"
    first, second = (load_model(tmp_path / seed / last).weights for seed in "12")
    assert all(torch.equal(weight, second[name]) for name, weight in first.items()) is alike


def test_the_moving_average_is_what_is_kept(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all updates but the second, which is skipped; training goes on from the last weights."""
    after: list[torch.Tensor] = []

    def watched(model: Any, *arguments: Any, **keywords: Any) -> UpdateResult:
        if not after:
            after.append(model.output_weight.detach().double().clone())
        if len(after) == 2 and len(skipped) == 0:
            skipped.append(1)
            return UpdateResult(float("nan"), 7, 1.0, 1)
        result = update(model, *arguments, **keywords)
        after.append(model.output_weight.detach().double().clone())
        return result

    skipped: list[int] = []
    monkeypatch.setattr("nmt.training.trainer.update", watched)
    settings = ("training.moving_average={decay: 0.6}", "training.max_epochs=1", "training.skip_non_finite=1")
    assert train(tiny, tmp_path / "run", *settings) == 0
    expected, *later = after
    assert len(later) == 8
    for t, weight in enumerate(later, start=1):
        d = min(0.6, (1 + t) / (10 + t))
        expected = d * expected + (1 - d) * weight
    state = read_state(tmp_path / "run" / "state.safetensors").tensors
    (name,) = [
        name
        for name, tensor in state.items()
        if name.startswith("model.") and tensor.shape == later[-1].shape and torch.equal(tensor.double(), later[-1])
    ]
    kept = state[name.replace("model.", "average.", 1)]
    torch.testing.assert_close(kept.double(), expected, rtol=1e-5, atol=1e-6)
    best = load_model(tmp_path / "run" / "best.safetensors").weights
    assert torch.equal(best[name.removeprefix("model.")], kept)


def test_the_decoder_reads_more_and_more_words_of_its_own(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None in the first update, half of them after 4, and from the ninth on all, some of which are the true ones."""
    shares: list[float] = []

    def watched(model: Any, optimizer: Any, group: list[Batch], **keywords: Any) -> UpdateResult:
        (batch,) = group
        true = batch.target[:, :-1]
        shares.append(float((batch.target_input != true)[true >= len(PIECES)].double().mean()))
        return update(model, optimizer, group, **keywords)

    monkeypatch.setattr("nmt.training.trainer.update", watched)
    settings = ("training.scheduled_sampling={probability: 1.0, updates: 8}", "training.max_updates=12")
    assert train(tiny, tmp_path / "run", *settings, "training.max_epochs=2") == 0
    assert shares[0] == 0.0
    assert 0.3 < shares[4] < 0.6
    assert min(shares[8:]) > 0.7
