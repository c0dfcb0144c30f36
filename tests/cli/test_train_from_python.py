"""`nmt.train`: what nmt-train does, called by a program."""

import os
import re
import signal
import sys
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch

import nmt
from nmt.config.loading import read_config
from nmt.config.schema import Config
from nmt.experiment import validation
from nmt.models.model_file import load_model
from nmt.training.corpus_loss import corpus_loss
from tests.cli.conftest import Train, records

SETTINGS: dict[str, Any] = {"training.validate_every": "1 update", "training.max_updates": 3, "training.keep_last": 2}


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory, tiny: Path, train: Train) -> Path:
    """The folder of a run of nmt-train."""
    output = tmp_path_factory.mktemp("command") / "run"
    assert train(tiny, output, *(f"{key}={value}" for key, value in SETTINGS.items())) == 0
    return output


def config_of(folder: Path) -> Config:
    return read_config(folder / "config.yaml").config


def assert_same_run(one: Path, other: Path) -> None:
    assert config_of(one) == config_of(other)
    for name in ("best.safetensors", *(f"checkpoints/{path.name}" for path in one.glob("checkpoints/*"))):
        first, second = load_model(one / name), load_model(other / name)
        assert first.digest == second.digest


def test_the_run_is_that_of_the_command(tmp_path: Path, tiny: Path, by_command: Path) -> None:
    done = nmt.train(tiny, settings=SETTINGS, output=tmp_path / "run", device="cpu")
    assert_same_run(done.folder, by_command)
    assert (done.folder, done.model) == (tmp_path / "run", tmp_path / "run" / "best.safetensors")
    assert done.finished == "3 updates"
    assert 0 < done.minutes < 5
    validations = [record for record in records(done.folder) if record["split"] == "valid"]
    best = min(validations, key=lambda record: record["loss"])
    assert done.validation == {name: best[name] for name in ("loss", "perplexity", "bleu")}
    [[translation]] = nmt.Translator.load(done.model).translate(["the dog sees the cat ."])
    assert translation.text
    log = (done.folder / "train.log").read_text(encoding="utf-8")
    assert "finished: 3 updates" in log


def test_settings_are_values(tmp_path: Path, tiny: Path) -> None:
    settings: dict[str, Any] = {
        "name": "10.5",  # a text
        "data.source_language": "no",  # which YAML takes for false
        "training.optimizer": MappingProxyType({"name": "adam", "learning_rate": torch.tensor(0.25)}),
        "training.label_smoothing": 1e-5,
        "seed": np.arange(5)[4],
        "data.cache_folder": tmp_path / "cache",
        "training.early_stopping": {"metric": "bleu", "patience": 3},
        "training.moving_average": None,
        "training.freeze": np.array([], dtype=str),
        "training.max_updates": np.int64(1),
    }
    nmt.train(str(tiny), settings=settings, output=str(tmp_path / "run"), device=torch.device("cpu"))
    config = config_of(tmp_path / "run")
    assert config.name == "10.5"
    assert config.data.source_language == "no"
    assert (config.seed, config.training.optimizer.learning_rate) == (4, 0.25)
    assert config.training.label_smoothing == 1e-5
    assert config.data.cache_folder == tmp_path / "cache"
    stopping = config.training.early_stopping
    assert stopping is not None
    assert (stopping.metric, stopping.patience) == ("bleu", 3)
    assert config.training.moving_average is None
    assert config.training.freeze == []


@pytest.mark.parametrize(
    ("more", "raised"),
    [
        ({"settings": ["seed=3"]}, nmt.UserError),
        ({"settings": {"seed": {1}}}, nmt.UserError),
        ({"output": 5}, TypeError),
        ({"config": {"name": "x"}}, TypeError),
        ({"overwrite": "no"}, nmt.UserError),
        ({"output": "", "overwrite": True}, nmt.UserError),
    ],
)
def test_values_of_another_type(tmp_path: Path, tiny: Path, more: dict[str, Any], raised: type[Exception]) -> None:
    with pytest.raises(raised):
        nmt.train(**{"config": tiny, "output": tmp_path / "run", **more})
    assert not (tmp_path / "run").exists()


def test_what_the_program_has_set_makes_no_difference(
    tmp_path: Path, tiny: Path, by_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it changed: type and place of numbers, no gradients, no standard error, another folder meanwhile."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def elsewhere(*arguments: Any) -> Any:
        os.chdir(tmp_path / "elsewhere")
        return corpus_loss(*arguments)

    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with monkeypatch.context() as patch, torch.inference_mode():
            patch.setattr(sys, "stderr", None)
            patch.setattr(validation, "corpus_loss", elsewhere)
            done = nmt.train(tiny, settings=SETTINGS, output="run", device="cpu")
            assert torch.is_inference_mode_enabled()
        assert (torch.get_default_dtype(), torch.get_default_device().type) == (torch.float64, "meta")
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert done.folder == tmp_path / "run"
    assert not [*(tmp_path / "elsewhere").iterdir()]
    assert_same_run(done.folder, by_command)


def test_one_training_at_a_time(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(*arguments: Any) -> Any:
        with pytest.raises(nmt.UserError, match="another training runs in this process"):
            nmt.train(tiny, output=tmp_path / "other", device="cpu")
        return corpus_loss(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(validation, "corpus_loss", another)
        nmt.train(tiny, settings={"training.max_updates": 1}, output=tmp_path / "run", device="cpu")
    assert not (tmp_path / "other").exists()
    nmt.train(tiny, settings={"training.max_updates": 1}, output=tmp_path / "other", device="cpu")


def test_paths_are_relative_to_the_current_folder(
    tmp_path: Path, corpus: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    for language in ("en", "de"):
        Path(f"Übung: 😀.{language}").write_bytes(Path(f"train.{language}").read_bytes())
    texts = [{"source": Path("Übung: 😀.en"), "target": Path("Übung: 😀.de")}]
    nmt.train(tiny, settings={"data.train": texts, "training.max_updates": 1}, output=tmp_path / "run", device="cpu")
    assert config_of(tmp_path / "run").data.train[0].source == corpus / "Übung: 😀.en"
    with pytest.raises(nmt.UserError, match=r"^--set data.train=\"none\": given 'none'; allowed: a list"):
        nmt.train(tiny, settings={"data.train": "none"}, output=tmp_path / "run", resume=True, device="cpu")
    with pytest.raises(nmt.UserError, match=r'^--set data.train=\[\{"source": "no", "target": "none"\}\]: '):
        nmt.train(tiny, settings={"data.train": [{"source": "no", "target": "none"}]}, output=tmp_path / "x")


def test_all_mistakes_are_told_at_once(tmp_path: Path, tiny: Path) -> None:
    settings = {"training.max_epoch": 3, "training.batch_size": "many"}
    with pytest.raises(nmt.UserError) as told:
        nmt.train(tiny, settings=settings, output=tmp_path / "run", resume=True, overwrite=True, device="gpu")
    for message in (
        "--device gpu: unknown; choose one of auto, cpu, cuda, mps, xpu",
        "--resume and --overwrite contradict each other",
        "training.max_epoch",
        "training.batch_size",
    ):
        assert sum(message in line for line in told.value.messages) == 1, message
    assert not (tmp_path / "run").exists()
    with pytest.raises(nmt.UserError, match=re.escape(str(tmp_path / "none"))):
        nmt.train(tiny, init_from=tmp_path / "none", output=tmp_path / "run", device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)], ids=["Ctrl-C", "SIGTERM"]
)
def test_an_interruption_loses_nothing(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tiny: Path,
    by_command: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    raised: type[BaseException],
) -> None:
    """During the second validation. What handled signals before does so again."""
    # A shell starts jobs in the background without this handler
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    count = iter(range(9))

    def interrupted(*arguments: Any) -> Any:
        if next(count) == 1:
            signal.raise_signal(number)
        return corpus_loss(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(validation, "corpus_loss", interrupted)
        with pytest.raises(raised) as stopped:
            nmt.train(tiny, settings=SETTINGS, output=tmp_path / "run", device="cpu")
    if isinstance(stopped.value, SystemExit):
        assert stopped.value.code == 128 + number
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    nmt.train(tiny, settings=SETTINGS, output=tmp_path / "run", device="cpu", resume=True)
    assert_same_run(tmp_path / "run", by_command)


@pytest.mark.slow
def test_another_thread_may_train(tmp_path: Path, tiny: Path, by_command: Path) -> None:
    """Where Python can handle no signals."""
    results: list[nmt.Trained] = []

    def train() -> None:
        results.append(nmt.train(tiny, settings=SETTINGS, output=tmp_path / "run", device="cpu"))

    thread = Thread(target=train)
    thread.start()
    thread.join()
    assert [result.finished for result in results] == ["3 updates"]
    assert_same_run(tmp_path / "run", by_command)
