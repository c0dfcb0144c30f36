"""nmt-train from the configuration to the files of the run folder. Mistakes and fine-tuning have files of their own."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt.config.loading import parse_config
from nmt.evaluation.metrics import METRICS, Metric, corpus_scores
from nmt.experiment import validation
from nmt.experiment.training import logging_to, progress_bar
from nmt.models.model_file import load_model
from nmt.training.states import read_state
from tests.cli.conftest import FEW, PIECES, Train, at_validation, records, stop_at_validation

TRAIN = {
    *("step", "epoch", "split", "loss", "perplexity", "learning_rate", "gradient_norm"),
    *("target_tokens_per_second", "seconds"),
}
VALID = {"step", "epoch", "split", "loss", "perplexity", "bleu", "seconds"}

MODULES = {
    "source_embedding": PIECES * 7,  # pieces × units
    "own_target_embedding": PIECES * 7,
    "encoder": 2 * 3 * (7 * 6 + 6 * 6 + 2 * 6),  # two directions of a GRU, 7 → 6 units, with two biases
    "initial_state": 6 * 11 + 11,
    "decoder": 3 * 11 * (7 + 11 + 7 + 2)  # GRU, 7 → 11 units, feeding 7, with two biases
    + (11 * 11 + 12 * 11 + 11)  # attention: query 11, memory 12, hidden layer 11
    + (12 + 11) * 7,  # context and state → attentional vector
    "output_layer": 7 * PIECES,
}


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_model(path).weights


def assert_equal(mine: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert mine.keys() == theirs.keys()
    for name, weight in mine.items():
        assert torch.equal(weight, theirs[name]), name


# ------------------------------------------------------------------------------------------------- what a run leaves


def test_files_of_a_run(trained: Path) -> None:
    files = {path.relative_to(trained).as_posix() for path in trained.rglob("*") if path.is_file()}
    (events,) = (name for name in files if name.startswith("tensorboard/"))
    assert files - {events} == {
        *(".lock", "config.yaml", "train.log", "metrics.jsonl", "best.safetensors"),
        *("state.safetensors", "state.1.safetensors"),
        *(f"checkpoints/update-{update:08d}.safetensors" for update in (9, 18, 27)),  # the first: to lengthen the run
        *(f"validations/update-{update:08d}.txt" for update in (9, 18, 27)),
    }
    assert (trained / "best.safetensors").read_bytes() == (
        trained / "checkpoints" / "update-00000027.safetensors"
    ).read_bytes()


def test_metrics(trained: Path) -> None:
    """9 updates an epoch, a line every 4 updates and at each of 3 validations."""
    lines = records(trained)
    assert [(line["step"], line["split"]) for line in lines if line["split"] == "valid"] == [
        (9, "valid"),
        (18, "valid"),
        (27, "valid"),
    ]
    assert [line["step"] for line in lines if line["split"] == "train"] == [4, 8, 12, 16, 20, 24, 27]
    for line in lines:
        assert set(line) == (TRAIN if line["split"] == "train" else VALID)
        assert line["perplexity"] == pytest.approx(2.718281828 ** line["loss"])
        assert line["epoch"] == pytest.approx(line["step"] / 9, abs=1e-4)
    first, last = lines[0], lines[-1]
    assert 4.1 < first["loss"] < 5.1  # ln 100 = 4.61, the loss of a model that knows nothing
    assert last["loss"] < first["loss"] - 0.7
    assert first["learning_rate"] == 0.02
    assert all(earlier["seconds"] <= later["seconds"] for earlier, later in pairwise(lines))


KINDS = ("scalars", "images", "tensors")


def board(output: Path) -> EventAccumulator:
    everything = EventAccumulator(str(output / "tensorboard"), size_guidance=dict.fromkeys(KINDS, 0))
    everything.Reload()
    return everything


def test_tensorboard_shows_the_same_sentences_at_each_validation(trained: Path, corpus: Path) -> None:
    """Of 12 sentences every third; with the attention of each translation."""
    events = board(trained)
    texts = [(corpus / f"valid.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")]
    for number, place in enumerate((0, 3, 6, 9), 1):
        shown = events.Tensors(f"translation/{number}/text_summary")
        assert [text.step for text in shown] == [9, 18, 27]
        for text in shown:
            block = text.tensor_proto.string_val[0].decode().split("\n")
            assert [line.split()[0] for line in block] == ["source", "reference", "translation"]
            assert [line.split()[1:] for line in block[:2]] == [side[place].split() for side in texts]
        pictures = {event.step: event.encoded_image_string for event in events.Images(f"attention/{number}")}
        assert set(pictures) <= {9, 18, 27}  # none of an empty translation
        assert len(set(pictures.values())) == len(pictures)
    assert 27 in pictures


def test_each_validation_leaves_its_translations(trained: Path, corpus: Path) -> None:
    references = (corpus / "valid.de").read_text(encoding="utf-8").splitlines()
    validations = [record for record in records(trained) if record["split"] == "valid"]
    for record in validations:
        path = trained / "validations" / f"update-{record['step']:08d}.txt"
        translations = path.read_text(encoding="utf-8").splitlines()
        assert corpus_scores(translations, references, metrics=("bleu",))["bleu"].score == record["bleu"]
    assert len(list((trained / "validations").iterdir())) == len(validations) == 3


def test_log(trained: Path) -> None:
    text = (trained / "train.log").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (  )?\S", line) for line in lines), text
    messages = [line[len("2026-01-01 00:00:00 ") :] for line in lines]
    assert messages[0].startswith(f"run folder {trained}, cpu, PyTorch {torch.__version__}")
    assert sum(message.startswith("training corpus: 108 pairs read, 108 kept") for message in messages) == 1
    assert sum(message.startswith("epoch 1: 9 batches, ") for message in messages) == 1
    assert any(
        re.fullmatch(
            r"epoch 0\.44 · update 4 · loss [\d.]+ · perplexity [\d.]+ · rate 0\.02 · gradient [\d.]+ · "
            r"[\d,]+ tokens/s",
            message,
        )
        for message in messages
    )
    assert any(message.startswith("validation · epoch 3.00 · update 27 · loss") for message in messages)
    best = re.escape(str(trained / "best.safetensors"))
    assert re.fullmatch(rf"finished: 3 epochs, \d+\.\d minutes; the best model is {best}", messages[-1])


def test_the_saved_configuration_trains_the_same_model(tiny: Path, tmp_path: Path, train: Train) -> None:
    assert train(tiny, tmp_path / "run", *FEW) == 0
    assert train(tmp_path / "run" / "config.yaml", tmp_path / "again") == 0
    for name in ("config.yaml", "best.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_the_model_holds_the_configuration_and_its_history(trained: Path) -> None:
    model = load_model(trained)
    assert model.config == parse_config((trained / "config.yaml").read_text(encoding="utf-8"))
    assert model.sizes == (PIECES, PIECES)
    assert model.training["updates"] == 27
    assert (
        model.training["validation"]["loss"]
        == [line for line in records(trained) if line["split"] == "valid"][-1]["loss"]
    )


def scripted_losses(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """Let the validations of the next run give these losses, one after the other."""
    script = iter(values)

    def scripted(*_: object) -> dict[str, float]:
        loss = next(script)
        return {"loss": loss, "perplexity": 2.718281828**loss}

    monkeypatch.setattr(validation, "corpus_loss", scripted)


@pytest.mark.parametrize(("average", "wins"), [(0.5, True), (1.0, False)])
def test_average_of_the_best_checkpoints(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch, average: float, wins: bool
) -> None:
    """The average of updates 1 and 3 becomes the best model if its loss is below 1.0, the best of them."""
    scripted_losses(monkeypatch, 1.0, 3.0, 2.0, average)
    output = tmp_path / "run"
    assert train(tiny, output, *FEW, "training.keep_best=2", "training.average_best=2") == 0
    *_, last = records(output)
    assert set(last) == VALID
    assert (last["split"], last["step"], last["loss"]) == ("average", 3, average)
    parts = [weights(output / "checkpoints" / f"update-{update:08d}.safetensors") for update in (1, 3)]
    best = load_model(output)
    if wins:
        assert best.training["average_of_updates"] == [1, 3]
        for name, weight in best.weights.items():
            torch.testing.assert_close(weight, (parts[0][name] + parts[1][name]) / 2, rtol=0, atol=1e-6)
    else:
        assert_equal(best.weights, parts[0])
    state = read_state(output / "state.safetensors")  # the average is no part of training
    assert_equal({name: state.tensors[f"model.{name}"] for name in parts[1]}, parts[1])
    text = (output / "train.log").read_text(encoding="utf-8")
    assert "average of checkpoints · epoch 0.33 · update 3" in text
    assert f"average of 2 checkpoints: loss {average:.4g}, {'better' if wins else 'no better'}" in text


def test_a_run_that_is_resumed_before_its_last_validation_begins_no_epoch(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 1)
        assert train(tiny, tmp_path / "run", "training.max_epochs=1") == 130
    assert train(tiny, tmp_path / "run", "training.max_epochs=1", "--resume") == 0
    text = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert re.findall(r" epoch (\d+): ", text) == ["1"]
    assert "finished: 1 epoch" in text
    assert "nothing to resume" not in text


def test_where_there_is_nothing_to_resume_the_log_says_so(here: Path, tiny: Path, train: Train) -> None:
    """As in another folder, or under a mistyped name; the path is shown as a whole."""
    assert train(tiny, Path("rnu"), "training.max_updates=1", "--resume") == 0
    text = (here / "rnu" / "train.log").read_text(encoding="utf-8")
    assert f"nothing to resume: {here / 'rnu'} has no saved state; training starts from the beginning\n" in text


# -------------------------------------------------------------------------------------------------------- the command


class SameLength(sacrebleu.metrics.base.Metric):
    """100 minus the mean difference in words, with the interface of sacreBLEU's metrics."""

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"words": len(refs[0].split())}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        return [abs(len(hypothesis.split()) - ref_kwargs["words"]), 1]

    def _compute_score_from_stats(self, stats: list[Any]) -> Any:
        return SimpleNamespace(score=100.0 - stats[0] / stats[1])

    def _aggregate_and_compute(self, stats: list[list[Any]]) -> Any:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


def test_adding_a_metric(tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that steers training is a line in METRICS of nmt/evaluation/metrics.py; nothing else knows its name."""
    monkeypatch.setitem(METRICS, "words", Metric("words", "higher", lambda *_: SameLength()))  # type: ignore[arg-type, return-value]
    steered = ["training.validation.metric=words", "training.schedule={name: plateau, metric: words, patience: 0}"]
    assert train(tiny, tmp_path / "run", *FEW, *steered, "training.keep_best=3") == 0
    measured = [record["words"] for record in records(tmp_path / "run") if record["split"] == "valid"]
    assert len(measured) == 3
    best = load_model(tmp_path / "run" / "best.safetensors").training["validation"]["words"]
    assert best == max(measured)
    assert f" · words {best:.2f}" in (tmp_path / "run" / "train.log").read_text(encoding="utf-8")


def test_references_that_bleu_cannot_take_apart(
    tmp_path: Path, tiny: Path, corpus: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the validation corpus and of a watched one."""
    target, pairs = tmp_path / "valid.de", (corpus / "valid.de").read_bytes().count(b"\n")
    target.write_text("Zwei Hunde.\n" * pairs, encoding="utf-8")
    watch = f"data.watch=[{{name: old, source: {corpus / 'valid.en'}, target: {target}}}]"
    settings = (f"data.valid.target={target}", watch, "training.validation={tokenize: 13a, metric: bleu}")
    assert train(tiny, tmp_path / "run", *settings, "--dry-run") == 0
    told = capsys.readouterr().err
    for name in ("validation references", "references of old"):
        assert f"warning: 100% of the {name} have fewer than the four words that BLEU counts together" in told
    assert train(tiny, tmp_path / "run", *settings, "training.validation.metric=accuracy", "--dry-run") == 0
    assert "BLEU" not in capsys.readouterr().err


def test_dry_run(tmp_path: Path, tiny: Path, train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    languages = ("data.source_language=German", "data.target_language=gsw-CH")
    assert train(tiny, tmp_path / "run", "data.max_length=7", *languages, "--dry-run") == 0
    text, told = capsys.readouterr()
    (warning,) = re.findall("warning: data.*", told)  # dialects have codes
    code = "sentences and glossaries need the code of a language; German is de"
    assert warning == f"warning: data.source_language is 'German'; {code}"
    for pattern in (
        r"training corpus: 108 pairs read, (?!108)\d+ kept \(\d+\.\d\d%; left out: \d+ longer than data\.max_length",
        r"validation corpus: 12 pairs read, 12 kept; source: [\d,]+ pieces, \d+\.\d a sentence, 0 unknown \(0\.00%\)",
        "\n".join([f"parameters: {sum(MODULES.values()):,}", *(f"  {name}: {n:,}" for name, n in MODULES.items())]),
        r"batches: \d in the first epoch, \d\.\d\d% padding",
        r"largest batch: \d+ sentences, \d+ source and \d+ target positions; memory ([\d,]+ MiB|not measured)",
    ):
        assert re.search(pattern, text), (pattern, text)
    assert len(re.findall(r"sample \d+\n  source: ▁the .*\n  target: ▁der ", text)) == 3
    assert not list(tmp_path.iterdir())


def test_the_cache_lies_beside_the_run_folder(tmp_path: Path, tiny: Path, train: Train) -> None:
    assert train(tiny, tmp_path / "runs" / "tiny", "data.cache_folder=null", "--dry-run") == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [".cache"]


def test_a_terminal_shows_how_fast_training_is(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of its own from the first update on; the log has nothing of it."""

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    def at_once(*arguments: Any, **options: Any) -> Any:
        bar = progress_bar(*arguments, **options)
        bar.mininterval, bar.miniters = 0, 1
        return bar

    monkeypatch.setattr("nmt.experiment.training.progress_bar", at_once)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert train(tiny, tmp_path / "run", "training.max_epochs=1") == 0
    lines = re.findall(r"epoch 1: +(\d+)% of 9 batches, \S+ left(.*?)(?=\r|\n|$)", terminal.getvalue())
    pace = r", loss \d\.\d+, [\d,]+ target tokens/s"
    shares = [int(share) for share, text in lines if re.match(pace, text)]
    assert (shares[0], shares[-1]) == (11, 100)
    assert any(re.match(rf"{pace}, \d\d:\d\d left of the run", text) for _, text in lines)
    assert "target tokens" not in (tmp_path / "run" / "train.log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command(tmp_path: Path, tiny: Path) -> None:
    """Nothing but the log, and no warning, reaches stderr; PyTorch's compiler is not imported."""
    program = Path(sys.executable).with_name("nmt-train")
    if not program.exists():
        pytest.skip("nmt-train is not installed beside this Python")
    command = [program, "--config", tiny, "--output", tmp_path / "run", "--set", "training.max_updates=2"]
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}  # a line on stderr for each import
    process = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8", env=environment)
    assert process.returncode == 0
    assert process.stdout == ""
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    told = process.stderr.splitlines()
    imported = [line.split("|")[-1].strip() for line in told if line.startswith("import time:")]
    assert "torch.optim" in imported
    assert "torch._dynamo" not in imported
    assert [line for line in told if not line.startswith("import time:")] == [line[20:] for line in log.splitlines()]


# -------------------------------------------------------------------------------------------------- while it is running


@pytest.mark.parametrize("limit", [10, 20_000])
def test_a_full_disk(
    tmp_path: Path,
    tiny: Path,
    train: Train,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit: int,
) -> None:
    """The system lets no file grow beyond `limit` bytes: the metrics fail (10), or the models and the state do."""
    resource = pytest.importorskip("resource", reason="limits of a process are a thing of Unix")
    output = tmp_path / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    saved: list[bytes] = []

    def fill() -> None:
        saved.append((output / "state.safetensors").read_bytes())
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    with monkeypatch.context() as patch:
        at_validation(patch, 2, fill)
        try:
            code = train(tiny, output, *FEW)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    errors = capsys.readouterr().err
    assert f"nmt-train: error: {output}" in errors
    assert "File too large" in errors
    assert "continue with --resume" in errors
    assert "Traceback" not in errors
    assert [(output / "state.safetensors").read_bytes()] == saved
    assert train(tiny, output, *FEW, "--resume") == 0
    assert load_model(output).training["updates"] == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_log_that_cannot_be_written_ends_the_run() -> None:
    with pytest.raises(OSError, match="No space left") as caught, logging_to(Path("/dev/full")) as log:
        log("lost")
    assert caught.value.errno == errno.ENOSPC
