"""metrics.jsonl, TensorBoard and the log line of a measurement, and how a resumed run continues them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt.ops.loss import perplexity
from nmt.training.records import Records, readable


def record(step: int, **numbers: float) -> dict[str, Any]:
    return {"step": step, "epoch": step / 10, "split": "train", "loss": 2.5, "perplexity": 12.18, **numbers}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def write(folder: Path, size: int, *steps: int) -> int:
    """Continue the records at `size`; returns the new size."""
    records = Records(folder, size=size)
    for step in steps:
        records.write(record(step))
    end = records.saved_size()
    records.close()
    return end


def shown(folder: Path, tag: str = "train/loss", *, purge: bool = True) -> list[int]:
    """The steps that TensorBoard has of a tag; with or without its own way of hiding what was taken back."""
    board = EventAccumulator(str(folder / "tensorboard"), purge_orphaned_data=purge)
    board.Reload()
    return [event.step for event in board.Scalars(tag)]


def test_a_new_run(tmp_path: Path) -> None:
    assert write(tmp_path, 0, 1, 2) == (tmp_path / "metrics.jsonl").stat().st_size
    assert lines(tmp_path) == [record(1), record(2)]
    assert shown(tmp_path) == [1, 2]


def test_a_resumed_run_cuts_back_to_the_saved_size(tmp_path: Path) -> None:
    """Steps 3 and 4 were written after the state was saved; TensorBoard forgets them as well."""
    saved = write(tmp_path, 0, 1, 2)
    write(tmp_path, saved, 3, 4)
    assert write(tmp_path, saved, 3, 5) > saved
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 5]
    assert shown(tmp_path) == [1, 2, 3, 5]


@pytest.mark.parametrize("purge", [True, False])
def test_of_one_step_a_part_is_saved(tmp_path: Path, purge: bool) -> None:
    """The state is saved before a validation, whose record then is of the step of the last training record."""
    valid, average = ({**record(2, bleu=31.5), "split": split} for split in ("valid", "average"))
    saved = write(tmp_path, 0, 1, 2)
    for _ in range(3):
        records = Records(tmp_path, size=saved)
        records.write(valid)
        records.write(average)
        records.close()  # killed before the state is saved
    assert [(line["step"], line["split"]) for line in lines(tmp_path)] == [
        *((1, "train"), (2, "train"), (2, "valid"), (2, "average"))
    ]
    assert shown(tmp_path, "train/loss", purge=purge) == [1, 2]
    for tag in ("valid/bleu", "valid/loss", "average/bleu", "average/perplexity"):
        assert shown(tmp_path, tag, purge=purge) == [2]
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_events_keep_their_value_and_their_time(tmp_path: Path) -> None:
    saved = write(tmp_path, 0, 1, 2)
    before = EventAccumulator(str(tmp_path / "tensorboard"))
    before.Reload()
    first = before.Scalars("train/loss")
    write(tmp_path, saved, 3)
    after = EventAccumulator(str(tmp_path / "tensorboard"))
    after.Reload()
    assert after.Scalars("train/loss")[:2] == first
    assert after.Tags()["scalars"] == ["train/loss", "train/perplexity"]


@pytest.mark.parametrize(
    "change", [lambda content: content[:-5], lambda content: content[:30] + b"\xff" * 99, lambda content: b""]
)
def test_a_damaged_file_of_events_is_made_anew(tmp_path: Path, change: Any) -> None:
    """By a kill in the middle of writing, or by somebody."""
    saved = write(tmp_path, 0, 1, 2)
    (path,) = (tmp_path / "tensorboard").iterdir()
    path.write_bytes(change(path.read_bytes()))
    write(tmp_path, saved, 3)
    assert shown(tmp_path, purge=False) == [1, 2, 3]


def test_a_new_run_in_a_used_folder_forgets_all(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2)
    write(tmp_path, 0, 2)
    assert [line["step"] for line in lines(tmp_path)] == [2]
    assert shown(tmp_path) == [2]


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        (lambda content: b"", []),
        (lambda content: content[:-1], [1]),
        (lambda content: content[:-9], [1]),
        (lambda content: content[:-9] + b"\0" * 9, [1]),
        (lambda content: b"[]\n" + content, []),
        (lambda content: content.replace(b"2.5", b'"2"'), []),
    ],
    ids=["removed", "without its line end", "cut short", "lost to a crash", "edited", "numbers edited"],
)
def test_a_damaged_file_loses_lines_but_does_not_end_the_run(tmp_path: Path, damage: Any, kept: list[int]) -> None:
    size = write(tmp_path, 0, 1, 2)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    write(tmp_path, size, 3)
    assert [line["step"] for line in lines(tmp_path)] == [*kept, 3]


def test_what_is_no_finite_number_is_null(tmp_path: Path) -> None:
    records = Records(tmp_path, size=0)
    records.write(record(1, perplexity=math.inf, gradient_norm=math.nan))
    records.close()
    (line,) = lines(tmp_path)
    assert (line["perplexity"], line["gradient_norm"]) == (None, None)


def test_readable_lines() -> None:
    numbers = {
        "learning_rate": 5e-4,
        "gradient_norm": 1.239,
        "target_tokens_per_second": 12345.6,
        "padding_share": 0.0512,
    }
    assert readable({**record(1500, **numbers), "seconds": 1.0}) == (
        "epoch 150.00 · update 1,500 · loss 2.5000 · perplexity 12.18 · rate 0.0005 · gradient 1.24 · "
        "12,346 tokens/s · padding 5.1%"
    )
    scored = "epoch 0.70 · update 7 · loss 2.5000 · perplexity 12.18 · BLEU 31.42"
    assert readable({**record(7, bleu=31.416), "split": "valid"}) == f"validation · {scored}"
    assert readable({**record(7, bleu=31.416), "split": "average"}) == f"average of checkpoints · {scored}"


def test_perplexity() -> None:
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert perplexity(800.0) == math.inf
