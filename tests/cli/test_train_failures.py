"""What goes wrong in the midst of training: memory that ends, losses that are no numbers, files that are damaged."""

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.batch import Batch
from nmt.models.model_file import load_model
from nmt.models.seq2seq import Seq2Seq
from nmt.training.averaging import averaged_checkpoints
from nmt.training.objective import BatchLoss, batch_loss
from nmt.training.states import State, read_state
from tests.cli.conftest import FEW, Train, complaint, records, stop_at_update
from tests.cli.test_train import scripted_losses
from tests.conftest import flip_a_bit
from tests.end_to_end.conftest import assert_same

Capture = pytest.CaptureFixture[str]


def test_memory_that_does_not_hold_validation(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice is what helps there: validation ignores data.max_length."""

    def short_of_memory(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12345 bytes.")

    monkeypatch.setattr("nmt.experiment.validation.corpus_loss", short_of_memory)
    assert train(tiny, tmp_path / "run", *FEW) == 2
    said = complaint(capsys)
    assert "not enough memory for validation: lower decoding.batch_tokens" in said
    assert "data.max_length" not in said


# ------------------------------------------------------------------------------------------------- a run that diverges


def state_of(output: Path) -> State:
    return read_state(output / "state.safetensors")


def trained_tensors(state: State) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in state.tensors.items() if not name.startswith("random.")}


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    """A weight is multiplied by some -10⁸ in each update, so that the fifth overflows; the loss before it was finite.

    It was the only state that was saved then, 16 of its 44 tensors without a number.
    """
    optimizer = "training.optimizer={name: sgd, learning_rate: 1e9, momentum: 0.9, weight_decay: 0.1}"
    settings = (optimizer, "training.gradient_clip_norm=null", "training.save_every=1 update")
    assert train(tiny, tmp_path / "run", *settings) == 2
    said = complaint(capsys)
    assert re.search(
        r"after update 5 \(epoch 0.56, learning rate 1e\+09\): 16 of 44 tensors",
        said,
    )
    for advice in ("training.optimizer.learning_rate", "training.gradient_clip_norm", "--output"):
        assert advice in said
    state = state_of(tmp_path / "run")
    assert state.numbers["progress"]["update"] == 4
    assert all(tensor.isfinite().all() for tensor in trained_tensors(state).values())
    assert not (tmp_path / "run" / "best.safetensors").exists()


@pytest.mark.parametrize(("updates", "count"), [(9, 3), (1, 1)])
def test_a_loss_beyond_that_of_guessing_is_a_failure(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, updates: int, count: int
) -> None:
    """After three validations in a row, or where training is over; resumed, it fails again and trains no more."""
    settings = (*FEW, "training.optimizer.learning_rate=1e6", f"training.max_updates={updates}")
    assert train(tiny, tmp_path / "run", *settings) == 2
    said = complaint(capsys)
    assert f"training diverged after update {count} (epoch {count / 9:.2f}, " in said
    assert re.search(r"validation loss [\d.]+e\+\d+(, 3 in a row)? above 2 × ln\(100\) = 9\.21, where", said)
    assert ("3 in a row" in said) == (count == 3)
    assert re.search(r"the best model so far is that of update \d+, loss", said)
    assert "finished" not in (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    before = state_of(tmp_path / "run").numbers
    assert train(tiny, tmp_path / "run", *settings, "--resume") == 2
    assert f"training diverged after update {count}" in complaint(capsys)
    assert state_of(tmp_path / "run").numbers == before


def test_divergence_null_never_stops(
    tmp_path: Path, tiny: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    """That the model is of no use is told here, and not first by who reads it."""
    settings = ("training.optimizer.learning_rate=1e6", "training.max_epochs=1")
    assert train(tiny, tmp_path / "run", *settings, "training.divergence=null") == 0
    best = tmp_path / "run" / "best.safetensors"
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"warning: {best}: of no use: its weights ")


def test_a_validation_loss_that_is_no_number(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "nmt.training.corpus_loss.batch_loss", lambda *_, **__: BatchLoss(torch.tensor(0.0), torch.tensor(math.nan))
    )
    assert train(tiny, tmp_path / "run", *FEW) == 2
    assert re.search(r"after update 1 \(epoch 0.11, learning rate 0\.02\): validation loss nan", complaint(capsys))


def not_a_number_with_pair(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loss of a batch that has this pair of the corpus be no number."""

    def broken(model: Seq2Seq, batch: Batch, *, smoothing: float) -> BatchLoss:
        losses = batch_loss(model, batch, smoothing=smoothing)
        factor = math.nan if row in batch.indices else 1.0
        return BatchLoss(losses.objective * factor, losses.nll * factor)

    monkeypatch.setattr("nmt.training.objective.batch_loss", broken)


@pytest.mark.slow
def test_updates_that_are_no_numbers_are_left_out_up_to_a_limit(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch of each of 3 epochs has the pair; a run that was interrupted counts on, and ends like the whole one."""
    not_a_number_with_pair(17, monkeypatch)
    assert train(tiny, tmp_path / "stops") == 2
    said = complaint(capsys)
    assert re.search(r"training diverged after update \d \(epoch [01].*: loss nan, gradient", said)
    assert train(tiny, tmp_path / "two", "training.skip_non_finite=2") == 2
    said = complaint(capsys)
    assert re.search(
        r"diverged after update 2\d \(epoch [23].*loss nan, gradient norm nan \(training.skip_non_finite: 2\)", said
    )

    settings = ("training.skip_non_finite=3", "training.log_every=1", "training.save_every=4 updates")
    assert train(tiny, tmp_path / "whole", *settings) == 0
    log = (tmp_path / "whole" / "train.log").read_text(encoding="utf-8")
    assert re.findall(r"warning: update .* left out, (\d) of at most (\d)", log) == [("1", "3"), ("2", "3"), ("3", "3")]
    rows = [line for line in records(tmp_path / "whole") if line["split"] == "train"]
    assert [line["step"] for line in rows] == list(range(1, 28))
    assert [line["loss"] for line in rows].count(None) == 3
    assert [line.get("skipped_updates", 0) for line in rows] == sorted(line.get("skipped_updates", 0) for line in rows)
    assert rows[-1]["skipped_updates"] == 3

    with monkeypatch.context() as patch:
        stop_at_update(patch, 16)
        assert train(tiny, tmp_path / "halves", *settings) == 2
    assert train(tiny, tmp_path / "halves", *settings, "--resume") == 0
    assert_same(tmp_path / "whole", tmp_path / "halves")


# ------------------------------------------------------------------------------------------- a state that is damaged

AVERAGED = ("training.keep_best=2", "training.average_best=2", "training.save_every=4 updates")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny: Path, train: Train) -> Path:
    """The folder of a run that nothing has happened to: 27 updates, 3 validations and that of an average."""
    output = tmp_path_factory.mktemp("whole") / "run"
    assert train(tiny, output, *AVERAGED) == 0
    return output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "newest", "previous", "is_gone"),
    [(16, 12, 9, True), (10, 9, 9, False), (18, 16, 12, False), (None, 27, 27, False)],
)
def test_a_damaged_state_gives_way_to_the_one_before(
    tmp_path: Path,
    tiny: Path,
    train: Train,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    whole: Path,
    moment: int | None,
    newest: int,
    previous: int,
    is_gone: bool,
) -> None:
    """Before some update, right after a validation, or when all is done: the run ends with the same bytes."""
    output = tmp_path / "run"
    if moment is None:
        shutil.copytree(whole, output)
    else:
        with monkeypatch.context() as patch:
            stop_at_update(patch, moment)
            assert train(tiny, output, *AVERAGED) == 2
    assert state_of(output).numbers["progress"]["update"] == newest
    if is_gone:
        (output / "state.safetensors").unlink()
    else:
        flip_a_bit(output / "state.safetensors")
    capsys.readouterr()
    assert train(tiny, output, *AVERAGED, "--resume") == 0
    said = capsys.readouterr().err
    reason = "is gone" if is_gone else "damaged"
    assert re.search(rf"warning: {output}/state.safetensors: {reason}.*; going on from the state before it, of", said)
    assert f"of update {previous}\n" in said
    assert_same(whole, output)


@pytest.mark.parametrize("finished", [False, True])
def test_a_best_model_that_is_gone_is_restored(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, whole: Path, finished: bool
) -> None:
    """From its checkpoint; not in a finished run that averages, whose best model may be no checkpoint."""
    output = tmp_path / "run"
    shutil.copytree(whole, output)
    best = output / "best.safetensors"
    if not finished:
        (output / "state.safetensors").unlink()  # the one before is that of the last validation
    best.unlink()
    assert train(tiny, output, *AVERAGED, "--resume") == 0
    said = capsys.readouterr().err
    if finished:
        assert "restored" not in said
        assert not best.exists()
    else:
        assert f"restored from {output}/checkpoints/update-00000027.safetensors" in said
        assert_same(whole, output)


def test_two_damaged_states(tmp_path: Path, tiny: Path, train: Train, capsys: Capture, whole: Path) -> None:
    output = tmp_path / "run"
    shutil.copytree(whole, output)
    for name in ("state.safetensors", "state.1.safetensors"):
        flip_a_bit(output / name)
    before = {path: path.read_bytes() for path in output.rglob("*.safetensors")}
    assert train(tiny, output, *AVERAGED, "--resume") == 2
    said = capsys.readouterr().err
    assert "pairs read" not in said  # the corpora, which may be large
    assert f"{output}/state.safetensors: damaged" in said
    assert f"{output}/state.1.safetensors: damaged" in said
    assert f"--init-from {output}/best.safetensors" in said
    assert {path: path.read_bytes() for path in output.rglob("*.safetensors")} == before


# -------------------------------------------------------------------------------------- a checkpoint that is damaged


@pytest.mark.parametrize("count", [2, 3])
def test_a_checkpoint_that_cannot_be_averaged_is_left_out(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The best of two or three: the run ends all the same, with the best model that it had or an average of others."""
    output = tmp_path / "run"

    def damaged_before(*arguments: Any, **keywords: Any) -> Any:
        flip_a_bit(output / "checkpoints" / "update-00000003.safetensors")
        return averaged_checkpoints(*arguments, **keywords)

    scripted_losses(monkeypatch, 3.0, 2.0, 1.0, 0.5)
    monkeypatch.setattr("nmt.training.trainer.averaged_checkpoints", damaged_before)
    assert train(tiny, output, *FEW, f"training.keep_best={count}", f"training.average_best={count}") == 0
    said = capsys.readouterr().err
    assert re.search(r"warning: left out of the average: \S+/update-00000003\.safetensors: damaged", said)
    assert "finished: 3 updates" in said
    origin = load_model(output).training
    if count == 2:
        assert "no average: it needs at least two of the best checkpoints, and 1 can be read" in said
        assert origin["updates"] == 3
        assert "average_of_updates" not in origin
    else:
        assert "average of 2 checkpoints: loss 0.5, better" in said
        assert origin["average_of_updates"] == [1, 2]
