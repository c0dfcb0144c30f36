"""metrics.jsonl, TensorBoard and the log line of a measurement, and how a resumed run continues them."""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt.training.corpus_loss import Validation
from nmt.training.progress import Progress
from nmt.training.records import Records, readable
from nmt.training.samples import Sample


def record(step: int, **numbers: float) -> dict[str, Any]:
    return {"step": step, "epoch": step / 10, "split": "train", "loss": 2.5, "perplexity": 12.18, **numbers}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def resumed(folder: Path, state: dict[str, Any], progress: Progress, log: list[str] | None = None) -> Records:
    """Continue the records of a state that was saved at `progress`."""
    return Records(folder, state, progress, [].append if log is None else log.append)


def write(folder: Path, state: dict[str, Any], *steps: int, log: list[str] | None = None) -> dict[str, Any]:
    """Continue the records of a state, the one before the first of the steps; returns what the next state says."""
    records = resumed(folder, state, Progress(update=steps[0] - 1 if state else 0), log)
    for step in steps:
        records.write(record(step))
    state = records.saved()
    records.close()
    return state


def board(folder: Path) -> EventAccumulator:
    everything = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0, "tensors": 0})
    everything.Reload()
    return everything


def shown(folder: Path, tag: str = "train/loss") -> list[int]:
    """The steps that TensorBoard shows of a tag."""
    return [event.step for event in board(folder).Scalars(tag)]


def test_a_resumed_run_cuts_back_to_the_saved_state(tmp_path: Path) -> None:
    """Steps 3 and 4 were written after the state was saved; TensorBoard forgets them as well."""
    state = write(tmp_path, {}, 1, 2)
    write(tmp_path, state, 3, 4)
    write(tmp_path, state, 3, 5)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 5]
    assert shown(tmp_path) == [1, 2, 3, 5]


@pytest.mark.parametrize("validated", [False, True])
def test_of_one_step_a_part_is_saved(tmp_path: Path, validated: bool) -> None:
    """The state is saved before a validation, whose record then is of the step of the last training record."""
    valid = {**record(2, bleu=31.5), "split": "valid"}
    state = write(tmp_path, {}, 1, 2)
    progress = Progress(update=2)
    if validated:
        records = resumed(tmp_path, state, progress)
        records.write(valid)
        state, progress = records.saved(), Progress(update=2, validated=2)
        records.close()
    for _ in range(3):
        records = resumed(tmp_path, state, progress)
        records.write(record(3) if validated else valid)
        records.close()  # killed before the state is saved
    ends = [(3, "train")] if validated else []
    expected = [(1, "train"), (2, "train"), (2, "valid"), *ends]
    assert [(line["step"], line["split"]) for line in lines(tmp_path)] == expected
    assert shown(tmp_path, "train/loss") == [step for step, split in expected if split == "train"]
    assert shown(tmp_path, "valid/bleu") == [2]


@pytest.mark.parametrize("change", [lambda content: content[:-5], lambda content: content[:30], lambda content: b""])
def test_a_damaged_file_of_events_hides_nothing_behind_it(tmp_path: Path, change: Any) -> None:
    """By a kill in the middle of writing, or by somebody."""
    state = write(tmp_path, {}, 1, 2)
    (path,) = (tmp_path / "tensorboard").iterdir()
    path.write_bytes(change(path.read_bytes()))
    write(tmp_path, state, 3)
    assert shown(tmp_path)[-2:] == [2, 3]


def test_a_new_run_in_a_used_folder_forgets_all(tmp_path: Path) -> None:
    write(tmp_path, {}, 1, 2)
    write(tmp_path, {}, 2)
    assert [line["step"] for line in lines(tmp_path)] == [2]
    assert shown(tmp_path) == [2]


DAMAGE: dict[str, tuple[Any, list[int]]] = {
    "removed": (lambda first, second, third: b"", []),
    "cut short": (lambda first, second, third: first + second[:-9], [1]),
    "without its line end": (lambda first, second, third: first + second + third[:-1], [1, 2]),
    "lost to a crash": (lambda first, second, third: first + second[:-9] + b"\0" * 9, [1]),
    "a line more": (lambda first, second, third: b"[]\n" + first + second + third, [1, 2, 3]),
    "a line overwritten": (lambda first, second, third: first + b"x" * 99 + b"\n" + third, [1, 3]),
    "a line end lost": (lambda first, second, third: first + second[:-1] + third, [1]),
    "numbers edited": (lambda *records: b"".join(records).replace(b"2.5", b'"2"'), []),
    "no UTF-8": (lambda first, second, third: first + b"\xff\n" + second + third, [1, 2, 3]),
    "a line of zeros": (lambda *records: b"\0" * 70_000 + b"".join(records), [2, 3]),
    "a digit edited": (lambda *records: b"".join(records).replace(b"12.18", b"12.58", 1), [1, 2, 3]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_loses_only_itself(tmp_path: Path, name: str) -> None:
    """The records before and after it stay, and one line of the log says so, unless all are there."""
    state = write(tmp_path, {}, 1, 2, 3)
    path, (damage, kept) = tmp_path / "metrics.jsonl", DAMAGE[name]
    path.write_bytes(damage(*path.read_bytes().splitlines(keepends=True)))
    log: list[str] = []
    state = write(tmp_path, state, 4, log=log)
    assert [line["step"] for line in lines(tmp_path)] == [*kept, 4]
    expected = [] if name in ("a line more", "no UTF-8") else [f"warning: {path}: has changed"]
    assert [line[: len(expected[0])] for line in log] == expected
    write(tmp_path, state, 5, log=log)
    assert len(log) == len(expected)
    assert [line["step"] for line in lines(tmp_path)] == [*kept, 4, 5]


def test_a_line_that_a_kill_cut_short_is_no_damage(tmp_path: Path) -> None:
    state = write(tmp_path, {}, 1, 2)
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 3, "ep')
    log: list[str] = []
    write(tmp_path, state, 3, log=log)
    assert log == []
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_events_of_other_programs_stay(tmp_path: Path) -> None:
    write(tmp_path, {}, 1)
    theirs = tmp_path / "tensorboard" / "events.out.tfevents.1700000000.host.123.0"
    theirs.write_bytes(b"theirs")
    write(tmp_path, {}, 1)
    assert theirs.read_bytes() == b"theirs"


def test_a_link_in_place_of_the_records_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "victim").write_text("mine\n", encoding="utf-8")
    (tmp_path / "run" / "metrics.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=r"is a link, and links are not followed here: .*metrics\.jsonl"):
        resumed(tmp_path / "run", {}, Progress())
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "mine\n"


def test_what_is_no_finite_number_is_null(tmp_path: Path) -> None:
    records = resumed(tmp_path, {}, Progress())
    records.write(record(1, perplexity=math.inf, gradient_norm=math.nan))
    records.close()
    (line,) = lines(tmp_path)
    assert (line["perplexity"], line["gradient_norm"]) == (None, None)


def test_readable_lines() -> None:
    numbers = {
        "learning_rate": 5e-4,
        "gradient_norm": 1.239,
        "target_tokens_per_second": 12345.6,
    }
    assert readable({**record(1500, **numbers), "seconds": 1.0}) == (
        "epoch 150.00 · update 1,500 · loss 2.5000 · perplexity 12.18 · rate 0.0005 · gradient 1.24 · 12,346 tokens/s"
    )
    scored = "epoch 0.70 · update 7 · loss 2.5000 · perplexity 12.18 · BLEU 31.42"
    assert readable({**record(7, bleu=31.416), "split": "valid"}) == f"validation · {scored}"
    assert readable({**record(7, bleu=31.416), "split": "average"}) == f"average of checkpoints · {scored}"


def test_large_numbers_are_readable() -> None:
    """Those of a run that diverges; tokens a second are written in full."""
    numbers = {**record(7, guided_loss=3e6, target_tokens_per_second=2e6), "loss": 7574488.2526, "perplexity": math.inf}
    assert readable(numbers) == (
        "epoch 0.70 · update 7 · loss 7.57e+06 · perplexity inf · guided 3e+06 · 2,000,000 tokens/s"
    )
    watched = {"old.loss": 207.06, "old.perplexity": math.exp(207.0661), "old.bleu": math.nan}
    assert readable({**record(7, **watched), "perplexity": 999_999.99, "split": "valid"}) == (
        "validation · epoch 0.70 · update 7 · loss 2.5000 · perplexity 999999.99 · old: loss 207.0600 · "
        "old: perplexity 8.47e+89 · old: BLEU nan"
    )


# ------------------------------------------------------------------------------------------- what TensorBoard alone has


SAMPLES = [
    Sample("a dog", "ein Hund", "Hund", ["▁a", "▁dog", "</s>"], ["▁H", "und"], np.eye(2, 3, dtype=np.float32)),
    Sample("a cat", "ein Kater", "", ["▁a", "▁cat", "</s>"], [], np.zeros((0, 3), dtype=np.float32)),
    Sample("a man", "ein Mann", "Mann", ["▁a", "▁man", "</s>"], ["▁Mann"], None),  # of a model without attention
]


def validate(records: Records, step: int, bleu: float) -> None:
    """Record a validation whose only metric is BLEU."""
    records.write({**record(step, bleu=bleu), "split": "valid"})
    records.show(step, Validation({}, SAMPLES))


def test_translations_and_attention_of_a_validation(tmp_path: Path) -> None:
    records = resumed(tmp_path, {}, Progress())
    for step in (1, 2):
        validate(records, step, 10.0)
    records.close()
    events = board(tmp_path)
    assert events.Tags()["images"] == ["attention/1"]
    texts = [tag for tag in events.Tags()["tensors"] if tag.startswith("translation")]
    assert texts == [f"translation/{number}/text_summary" for number in (1, 2, 3)]
    (first, second) = events.Images("attention/1")
    assert (first.step, second.step) == (1, 2)
    assert Image.open(io.BytesIO(first.encoded_image_string)).size == (first.width, first.height)
    (text, _) = events.Tensors("translation/3/text_summary")
    assert text.tensor_proto.string_val[0].decode().splitlines()[2] == "    translation  Mann"


def test_a_resumed_run_shows_what_was_saved_as_it_was(tmp_path: Path) -> None:
    """The second validation was shown after the state was saved, so it is shown anew; the first stays as it was."""
    records = resumed(tmp_path, {}, Progress())
    validate(records, 1, 10.0)
    state = records.saved()
    validate(records, 2, 20.0)
    records.close()
    before = board(tmp_path)
    records = resumed(tmp_path, state, Progress(update=1, validated=1))
    validate(records, 2, 30.0)
    validate(records, 3, 25.0)
    records.close()
    after = board(tmp_path)
    assert [event.step for event in after.Images("attention/1")] == [1, 2, 3]
    assert after.Images("attention/1")[0] == before.Images("attention/1")[0]
    assert [(event.step, event.value) for event in after.Scalars("valid/bleu")] == [(1, 10.0), (2, 30.0), (3, 25.0)]


def test_a_longer_translation_is_drawn_in_part(tmp_path: Path) -> None:
    """Of a model that does not end its translations."""
    records = resumed(tmp_path, {}, Progress())
    sample = SAMPLES[0]._replace(target_pieces=["▁H"] * 500, weights=np.ones((500, 3), dtype=np.float32))
    records.show(1, Validation({}, [sample]))
    records.close()
    (image,) = board(tmp_path).Images("attention/1")
    assert image.height < 60 * 20 + 100


def test_translations_after_the_saved_state_are_removed(tmp_path: Path) -> None:
    """Of validations that the run has not reached any more; files of other names are nobody's."""
    for name in ("update-00000003.txt", "update-00000004.txt", "update-00000005.txt", "mine.txt"):
        (tmp_path / "validations").mkdir(exist_ok=True)
        (tmp_path / "validations" / name).touch()
    for validated, left in ((4, 3), (3, 2)):
        resumed(tmp_path, {}, Progress(update=4, validated=validated)).close()
        assert len(list((tmp_path / "validations").iterdir())) == left
