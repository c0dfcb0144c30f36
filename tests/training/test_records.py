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
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from nmt.config import Config
from nmt.ops.loss import perplexity
from nmt.training.progress import Progress
from nmt.training.records import Records, readable
from nmt.training.samples import Sample

DATA = {
    "source_language": "en",
    "target_language": "de",
    "train": [{"source": "/a", "target": "/b"}],
    "valid": {"source": "/c", "target": "/d"},
    "max_length": 50,
}
TRAINING = {"optimizer": {"name": "adam", "learning_rate": 0.25}, "max_epochs": 1}
CONFIG = Config.model_validate({"name": "run", "seed": 7, "data": DATA, "training": TRAINING})
RETAIN = {"corpus": "old", "metric": "perplexity", "tolerance": 0.5}
RETAINING = Config.model_validate({**CONFIG.model_dump(), "training": {**TRAINING, "validation": {"retain": RETAIN}}})
BY_PERPLEXITY = Config.model_validate(
    {**CONFIG.model_dump(), "training": {**TRAINING, "validation": {"metric": "perplexity"}}}
)


def record(step: int, **numbers: float) -> dict[str, Any]:
    return {"step": step, "epoch": step / 10, "split": "train", "loss": 2.5, "perplexity": 12.18, **numbers}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def resumed(
    folder: Path,
    size: int,
    last: int,
    said: list[str] | None = None,
    *,
    validated: bool = False,
    config: Config = CONFIG,
) -> Records:
    """Continue the records of a state of `size` bytes, saved at update `last` before or after its validation."""
    progress = Progress(update=last, validated=last if validated else -1)
    return Records(folder, config, {"recorded": size}, progress.is_after, [].append if said is None else said.append)


def write(folder: Path, size: int, *steps: int, said: list[str] | None = None) -> int:
    """Continue the records at `size`, those of the state before the first of the steps; returns the new size."""
    records = resumed(folder, size, steps[0] - 1 if size else 0, said)
    for step in steps:
        records.write(record(step))
    end = records.saved()["recorded"]
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
        records = resumed(tmp_path, saved, 2)
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


DAMAGE: dict[str, tuple[Any, list[int], list[bytes]]] = {
    "removed": (lambda first, second, third: b"", [], []),
    "cut short": (lambda first, second, third: first + second[:-9], [1], [b"<second"]),
    "without its line end": (lambda first, second, third: first + second + third[:-1], [1, 2], [b"<third"]),
    "lost to a crash": (lambda first, second, third: first + second[:-9] + b"\0" * 9, [1], [b"<second"]),
    "a line more": (lambda first, second, third: b"[]\n" + first + second + third, [1, 2, 3], [b"[]"]),
    "a line overwritten": (lambda first, second, third: first + b"x" * 99 + b"\n" + third, [1, 3], [b"x" * 99]),
    "a line shortened": (lambda first, second, third: first + second[20:] + third, [1, 3], [b"<second"]),
    "a line end lost": (lambda first, second, third: first + second[:-1] + third, [1], [b"<second", b"<third"]),
    "numbers edited": (
        lambda *records: b"".join(records).replace(b"2.5", b'"2"'),
        [],
        [b"<first", b"<second", b"<third"],
    ),
    "no UTF-8": (lambda first, second, third: first + b"\xff\n" + second + third, [1, 2, 3], [b"\xff"]),
    "a line of zeros": (lambda *records: b"\0" * 70_000 + b"".join(records), [2, 3], [b"\0", b"<first"]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_loses_only_itself(tmp_path: Path, name: str) -> None:
    """Whatever it was is set aside, and told; the records before and after it stay, in TensorBoard too."""
    size = write(tmp_path, 0, 1, 2, 3)
    path = tmp_path / "metrics.jsonl"
    damage, kept, aside = DAMAGE[name]
    records = dict(zip((b"<first", b"<second", b"<third"), path.read_bytes().splitlines(keepends=True), strict=True))
    path.write_bytes(damage(*records.values()))
    said: list[str] = []
    write(tmp_path, size, 4, said=said)
    assert [line["step"] for line in lines(tmp_path)] == [*kept, 4]
    assert shown(tmp_path, purge=False) == [*kept, 4]
    assert len(said) == 1
    assert ("cannot be read" in said[0]) == bool(aside)
    assert ("become shorter" in said[0]) == (not aside)
    damaged = tmp_path / "metrics.jsonl.damaged"
    assert damaged.exists() == bool(aside)
    content = damaged.read_bytes() if aside else b""
    for part in aside:
        assert records.get(part, part)[25:50] in content
    again: list[str] = []
    write(tmp_path, (tmp_path / "metrics.jsonl").stat().st_size, 5, said=again)
    assert again == []
    assert [line["step"] for line in lines(tmp_path)] == [*kept, 4, 5]


@pytest.mark.parametrize(
    "line",
    [
        *("null", "7", "[]", "{}", '{"step": 1}', '{"step": 1, "split": ["train"]}', '{"step": "1", "split": "train"}'),
        *('{"step": true, "split": "train"}', '{"step": 1e400, "split": "train"}', '{"step": -1, "split": "valid"}'),
        *('{"step": 1, "split": "other"}', '{"step": 1, "split": "train", "loss": {}}', "[" * 100_000),
        *('{"step": 1, "split": "train", "loss": NaN}', '{"step": 1, "split": "train", "\\ud800": 1}'),
        *(f'{{"step": {10**30}, "split": "train"}}', f'{{"step": 1, "split": "train", "loss": {10**400}}}'),
        *(f'{{"step": {"9" * 5000}, "split": "train"}}', '{"step": 1, "split": "train", "loss": true}'),
    ],
)
def test_records_of_wrong_types(tmp_path: Path, line: str) -> None:
    size = write(tmp_path, 0, 1)
    path = tmp_path / "metrics.jsonl"
    content = path.read_bytes()
    path.write_bytes(f"{line}\n".encode() + content)
    said: list[str] = []
    write(tmp_path, size, 2, said=said)
    assert len(said) == 1
    assert [entry["step"] for entry in lines(tmp_path)] == [1, 2]
    assert (tmp_path / "metrics.jsonl.damaged").read_text(encoding="utf-8").rstrip("\n") == line


def test_a_damaged_file_is_cut_back_to_the_state_too(tmp_path: Path) -> None:
    """By the steps of its records: the bytes are not where they were. Steps 3 and 4 came after the state."""
    size = write(tmp_path, 0, 1, 2)
    write(tmp_path, size, 3, 4)
    path = tmp_path / "metrics.jsonl"
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(content[0] + b"damaged, and longer than it was before: " + b"".join(content[1:]))
    write(tmp_path, size, 3)
    assert [line["step"] for line in lines(tmp_path)] == [1, 3]


@pytest.mark.parametrize("validated", [True, False])
def test_a_damaged_file_of_which_one_step_is_saved_in_part(tmp_path: Path, validated: bool) -> None:
    size = write(tmp_path, 0, 1, 2)
    records = resumed(tmp_path, size, 2)
    records.write({**record(2, bleu=31.5), "split": "valid"})
    records.close()
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"damaged\n" + path.read_bytes())
    resumed(tmp_path, size, 2, validated=validated).close()
    expected = [(1, "train"), (2, "train"), *([(2, "valid")] if validated else [])]
    assert [(line["step"], line["split"]) for line in lines(tmp_path)] == expected


def test_a_line_that_a_kill_cut_short_is_no_damage(tmp_path: Path) -> None:
    size = write(tmp_path, 0, 1, 2)
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 3, "ep')
    said: list[str] = []
    write(tmp_path, size, 3, said=said)
    assert said == []
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]
    assert not (tmp_path / "metrics.jsonl.damaged").exists()


def test_events_of_other_programs_stay(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    theirs = tmp_path / "tensorboard" / "events.out.tfevents.1700000000.host.123.0"
    theirs.write_bytes(b"theirs")
    (tmp_path / "tensorboard" / "events.out.tfevents.1700000000.123456.host.7").mkdir()
    write(tmp_path, 0, 1)
    assert theirs.read_bytes() == b"theirs"
    assert len(list((tmp_path / "tensorboard").iterdir())) == 3


def test_links_in_place_of_the_records_are_not_followed(tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "metrics.jsonl.damaged"):
        folder = tmp_path / f"with {name}"
        folder.mkdir()
        (tmp_path / "victim").write_text("mine\n", encoding="utf-8")
        (folder / "metrics.jsonl").write_text("damaged\n", encoding="utf-8")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match=f"is a link, and links are not followed here: .*{name}"):
            resumed(folder, 0, 0)
        assert (tmp_path / "victim").read_text(encoding="utf-8") == "mine\n"


def test_what_is_no_finite_number_is_null(tmp_path: Path) -> None:
    records = resumed(tmp_path, 0, 0)
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


def test_perplexity() -> None:
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert perplexity(800.0) == math.inf


def test_a_digit_that_has_changed_is_told(tmp_path: Path) -> None:
    """A bit is enough for another number; which line it is in, nobody can know."""
    said: list[str] = []
    records = Records(tmp_path, CONFIG, {}, Progress().is_after, said.append)
    records.write(record(1, loss=3.25))
    state = records.saved()
    records.close()
    after_one = Progress(update=1).is_after
    Records(tmp_path, CONFIG, state, after_one, said.append).close()
    Records(tmp_path, CONFIG, {"recorded": state["recorded"]}, after_one, said.append).close()  # of an earlier version
    assert said == []
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("3.25", "3.65"), encoding="utf-8")
    Records(tmp_path, CONFIG, state, after_one, said.append).close()
    assert said == [f"{path}: has been changed since the state was saved; it stays as it is"]
    assert [line["loss"] for line in lines(tmp_path)] == [3.65]


# ------------------------------------------------------------------------------------------- what TensorBoard alone has


SAMPLES = [
    Sample("a dog", "ein Hund", "Hund", ["▁a", "▁dog", "</s>"], ["▁H", "und"], np.eye(2, 3, dtype=np.float32)),
    Sample("a cat", "ein Kater", "", ["▁a", "▁cat", "</s>"], [], np.zeros((0, 3), dtype=np.float32)),
    Sample("a man", "ein Mann", "Mann", ["▁a", "▁man", "</s>"], ["▁Mann"], None),  # of a model without attention
]


def with_validations(folder: Path, *scores: float, size: int = 0, saved: int | None = None) -> int:
    """Record validations at the next steps, whose only metric is BLEU; the state is saved after `saved` of them."""
    first = size and (folder / "metrics.jsonl").read_bytes()[:size].count(b"valid")
    records = resumed(folder, size, first, validated=True)
    for step, bleu in enumerate(scores, first + 1):
        records.write({**record(step, bleu=bleu), "split": "valid"})
        records.show(step, SAMPLES, {str(8 * step): step})
        if step == saved:
            size = records.saved()["recorded"]
    size = records.saved()["recorded"] if saved is None else size
    records.close()
    return size


def board(folder: Path) -> EventAccumulator:
    everything = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0, "tensors": 0})
    everything.Reload()
    return everything


def told(events: EventAccumulator, tag: str) -> HParamsPluginData:
    return HParamsPluginData.FromString(events.SummaryMetadata(tag).plugin_data.content)


def test_translations_attention_and_norms_of_a_validation(tmp_path: Path) -> None:
    with_validations(tmp_path, 10.0, 20.0)
    events = board(tmp_path)
    assert events.Tags()["images"] == ["attention/1"]
    texts = [tag for tag in events.Tags()["tensors"] if tag.startswith("translation")]
    assert texts == ["translation/1", "translation/2", "translation/3"]
    (first, second) = events.Images("attention/1")
    assert (first.step, second.step) == (1, 2)
    assert Image.open(io.BytesIO(first.encoded_image_string)).size == (first.width, first.height)
    (text, _) = events.Tensors("translation/3")
    assert text.tensor_proto.string_val[0].decode().splitlines()[2] == "    translation  Mann"
    (_, norms) = events.Tensors("train/gradient_norms")
    assert norms.step == 2
    assert norms.tensor_proto.double_val == pytest.approx([4.0, 4.0 * 2 ** (1 / 8), 2.0])  # 2^(16/8), and two updates


def test_a_resumed_run_shows_what_its_records_say(tmp_path: Path) -> None:
    """The second validation was shown after the state was saved, so it is shown anew; the first stays as it was."""
    size = with_validations(tmp_path, 10.0, 20.0, saved=1)
    before = board(tmp_path)
    with_validations(tmp_path, 20.0, 30.0, size=size)
    after = board(tmp_path)
    for tag in ("attention/1", "translation/2", "train/gradient_norms"):
        (mine, theirs) = (events.Images(tag) if "att" in tag else events.Tensors(tag) for events in (before, after))
        assert [event.step for event in theirs] == [1, 2, 3]
        assert theirs[0] == mine[0]


def test_a_longer_translation_is_drawn_in_part(tmp_path: Path) -> None:
    """Of a model that does not end its translations."""
    records = resumed(tmp_path, 0, 0)
    records.show(1, [SAMPLES[0]._replace(target_pieces=["▁H"] * 500, weights=np.ones((500, 3), dtype=np.float32))], {})
    records.close()
    (image,) = board(tmp_path).Images("attention/1")
    assert image.height < 60 * 20 + 100


def test_the_best_so_far(tmp_path: Path) -> None:
    """Which is the last of its tag, for the table that compares runs, and the same after the run was resumed."""
    size = with_validations(tmp_path, 10.0, 30.0, 20.0)
    for more in ([], [35.0, 1.0]):
        with_validations(tmp_path, *more, size=size)
        best = board(tmp_path).Scalars("best/bleu")
        assert [(event.step, event.value) for event in best] == [(1, 10.0), (2, 30.0)] + [(4, 35.0)] * bool(more)
    records = resumed(tmp_path, (tmp_path / "metrics.jsonl").stat().st_size, 5, validated=True)
    records.write({**record(5, bleu=40.0), "split": "average"})
    records.close()
    last = board(tmp_path).Scalars("best/bleu")[-1]
    assert (last.step, last.value) == (5, 40.0)


@pytest.mark.parametrize(("start", "best"), [(5.0, [(0, 10.0), (3, 20.0)]), (math.inf, [(0, 10.0), (1, 40.0)])])
def test_the_best_so_far_retains(tmp_path: Path, start: float, best: list[tuple[int, float]]) -> None:
    """5.5 is the old perplexity that is allowed, unless it was infinite at the start: metrics.jsonl has null there."""
    validations = [(10.0, start), (40.0, 5.6), (30.0, math.inf), (20.0, 5.5)]
    size = 0
    for stop in (3, 4, 4):  # resumed before the last of them, and after it
        records = resumed(tmp_path, size, stop - 1, validated=True, config=RETAINING)
        done = len(lines(tmp_path)) if size else 0
        for step, (bleu, perplexity_of_old) in list(enumerate(validations[:stop]))[done:]:
            records.write({**record(step, bleu=bleu, **{"old.perplexity": perplexity_of_old}), "split": "valid"})
        size = records.saved()["recorded"]
        records.close()
        shown_best = [(event.step, event.value) for event in board(tmp_path).Scalars("best/bleu")]
        assert shown_best == [entry for entry in best if entry[0] < stop]


def test_an_infinite_perplexity_is_the_best_until_one_is_finite(tmp_path: Path) -> None:
    """As in training, which keeps its first model; also after the run was resumed, where metrics.jsonl has null."""
    progress, chosen = Progress(), []
    records = resumed(tmp_path, 0, 0, config=BY_PERPLEXITY)
    for step, value in enumerate((math.inf, math.inf, 30.0), 1):
        progress.update = step
        if progress.record({"perplexity": value, "loss": 1.0}, BY_PERPLEXITY.training):
            chosen.append(step)
        records.write({**record(step, perplexity=value), "split": "valid"})
    size = records.saved()["recorded"]
    records.close()
    assert chosen == [1, 3]
    live = [(event.step, str(event.value)) for event in board(tmp_path).Scalars("best/perplexity")]
    assert live == [(1, "nan"), (3, "30.0")]
    resumed(tmp_path, size, 3, validated=True, config=BY_PERPLEXITY).close()
    assert [(event.step, str(event.value)) for event in board(tmp_path).Scalars("best/perplexity")] == live


def test_hyperparameters_and_the_end(tmp_path: Path) -> None:
    size = with_validations(tmp_path, 10.0)
    start, end = "_hparams_/session_start_info", "_hparams_/session_end_info"
    events = board(tmp_path)
    info = told(events, start).session_start_info
    assert info.hparams["seed"].number_value == 7
    assert info.hparams["data.max_length"].number_value == 50
    assert info.hparams["training.optimizer.learning_rate"].number_value == 0.25
    assert info.hparams["model.encoder.bidirectional"].bool_value is True
    assert info.hparams["training.validate_every"].string_value == "1 epoch"
    assert {"name", "training.early_stopping"}.isdisjoint(info.hparams)
    assert [key for key in info.hparams if key.startswith("data.")] == ["data.max_length"]
    assert end not in events.Tags()["tensors"]
    ends = []
    for _ in range(2):  # the second time it is resumed to find that it is over
        records = resumed(tmp_path, size, 1, validated=True)
        records.end(1)
        records.close()
        events = board(tmp_path)
        assert told(events, start).session_start_info.start_time_secs == info.start_time_secs
        ends.append(told(events, end).session_end_info)
    assert ends[0].status == 1  # success
    assert ends[0] == ends[1]
    records = resumed(tmp_path, size, 1, validated=True)
    records.write({**record(2, bleu=20.0), "split": "valid"})  # with more epochs
    records.end(2)
    records.close()
    assert told(board(tmp_path), end).session_end_info.end_time_secs > ends[0].end_time_secs


def test_damage_to_the_events_costs_only_what_is_behind_it(tmp_path: Path) -> None:
    """Numbers are made again from metrics.jsonl; pictures cannot be."""
    size = with_validations(tmp_path, 10.0, 20.0)
    (path,) = (tmp_path / "tensorboard").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    with_validations(tmp_path, size=size)
    events = board(tmp_path)
    assert [event.step for event in events.Scalars("valid/bleu")] == [1, 2]
    assert [event.step for event in events.Images("attention/1")] == [1]
