"""nmt-train on several corpora: weights and tags, what is told of them, resuming, and what is refused."""

import json
from pathlib import Path

import pytest
import torch

from nmt.cli import info
from nmt.data.subwords import Subwords
from nmt.decoding.text.protect import Sight
from nmt.models.model_file import load_model
from nmt.protected import LEARNED
from tests.cli.conftest import PIECES, Train
from tests.cli.test_train_finetuning import stop_at_validation, without
from tests.conftest import write_lines

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def mixed(tmp_path: Path, corpus: Path) -> str:
    """The training corpus, and a quarter of as many back-translations in every epoch."""
    files = f"source: {corpus / 'train.en'}, target: {corpus / 'train.de'}"
    return f"data.train=[{{{files}}}, {{{files}, weight: 0.25, tag: <BT>}}]"


@pytest.mark.slow
def test_a_run_that_was_interrupted_reads_on(
    tmp_path: Path, tiny: Path, mixed: str, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """135 pairs an epoch: 12 batches of 12. The best model is that of a run without the interruption."""
    settings = (mixed, "training.max_epochs=2")
    assert train(tiny, tmp_path / "whole", *settings) == 0
    told = capsys.readouterr().err
    assert "an epoch reads 27 pairs of " in told
    assert ": weight 0.25, 108 pairs, tagged <BT>" in told
    assert "epoch 1: 12 batches" in told
    assert "epoch 2.00 · update 24 " in told
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 1)
        assert train(tiny, tmp_path / "run", *settings) == 130
    assert train(tiny, tmp_path / "run", *settings, "--resume") == 0
    whole, run = (load_model(tmp_path / name) for name in ("whole", "run"))
    assert (tmp_path / "run" / "best.safetensors").read_bytes() == (
        tmp_path / "whole" / "best.safetensors"
    ).read_bytes()
    assert whole.sizes == run.sizes == (PIECES + 1, PIECES + 1)
    assert Subwords(run.source_subwords).pieces([PIECES]) == ["▁<BT>"]


def test_a_tag_in_the_text_itself_is_learned_and_shown(
    tmp_path: Path,
    corpus: Path,
    tiny: Path,
    train: Train,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As in text of several languages: <de> stands in front of every source, and in no target; also where a model is
    trained further with text that has none, and when validation translates."""
    sources = {}
    for name in ("train", "valid"):
        lines = (corpus / f"{name}.en").read_text(encoding="utf-8").splitlines()
        sources[name] = tmp_path / f"{name}.en"
        write_lines(sources[name], (f"<de> {line}" for line in lines))
    files = [f"data.{name}.source={path}" for name, path in sources.items() if name == "valid"]
    files.append(f"data.train=[{{source: {sources['train']}, target: {corpus / 'train.de'}}}]")
    shown: list[str] = []
    seen = Sight.seen
    monkeypatch.setattr(
        Sight,
        "seen",
        lambda self, *place: shown.append((one := seen(self, *place)).text) or one,  # type: ignore[func-returns-value]
    )
    assert train(tiny, tmp_path / "run", *files, "training.max_updates=1") == 0
    assert info.main(["--model", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["learned"] == ["<de>"]
    assert shown
    assert all(line.startswith("<de> ") for line in shown)
    short = without(tiny, tmp_path / "short.yaml", "model", "subwords")
    assert train(short, tmp_path / "tuned", "training.max_updates=1", "--init-from", tmp_path / "run") == 0
    assert load_model(tmp_path / "tuned").training[LEARNED] == {"<de>": False}


@pytest.mark.slow
def test_a_model_learns_a_tag(
    tmp_path: Path, tiny: Path, mixed: str, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """With steps of 1e-12, all other pieces have the weights of the first model at the end; also if interrupted."""
    assert train(tiny, tmp_path / "first", "training.max_updates=3") == 0
    short = without(tiny, tmp_path / "short.yaml", "model", "subwords")
    still = ("training.optimizer={name: sgd, learning_rate: 1.0e-12}", "training.max_epochs=2")
    changes = (*still, "training.vocabulary=extended", mixed)
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 2)
        assert train(short, tmp_path / "run", *changes, "--init-from", tmp_path / "first") == 130
    assert "joint vocabulary: 96 of 97 pieces are known to the model, 1 starts at the mean" in capsys.readouterr().err
    assert train(short, tmp_path / "run", *changes, "--resume") == 0
    first, run = (load_model(tmp_path / name) for name in ("first", "run"))
    assert (first.sizes, run.sizes) == ((PIECES, PIECES), (PIECES + 1, PIECES + 1))
    longer = 0
    for name, weight in run.weights.items():
        old = first.weights[name]
        if len(weight) == PIECES + 1:
            longer += 1
            torch.testing.assert_close(weight[PIECES], old[4:].mean(0), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(weight[: len(old)], old, rtol=0, atol=1e-9)
    assert longer == 3  # source and target embeddings and the output layer


def test_a_new_vocabulary(tmp_path: Path, tiny: Path, trained: Path, train: Train, capsys: Capture) -> None:
    config = without(tiny, tmp_path / "other.yaml", "model", subwords={"size": 50, "joint": False})
    assert train(config, tmp_path / "run", "training.vocabulary=new", "--dry-run", "--init-from", trained) == 0
    told = capsys.readouterr().out
    assert "source vocabulary: " in told
    assert "target vocabulary: " in told
    assert " of 46 pieces are known to the model, " in told
    new = ("training.vocabulary=new", "training.max_updates=1", "--init-from", trained)
    assert train(config, tmp_path / "run", *new) == 0
    assert load_model(tmp_path / "run").sizes == (50, 50)
    assert train(config, tmp_path / "same", "--init-from", trained) == 2
    assert "subwords.size: 100 in the model, 50 here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (("training.vocabulary=new",), "training.vocabulary=new: needs --init-from"),
        (
            ("training.vocabulary=new", "training.freeze=[embeddings]", "--init-from"),
            "new contradicts training.freeze: embeddings, for new pieces have to learn theirs",
        ),
    ],
)
def test_vocabularies_that_are_refused(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, capsys: Capture, changes: tuple[str, ...], told: str
) -> None:
    short = without(tiny, tmp_path / "short.yaml", "model", "subwords")
    origin = [trained] if "--init-from" in changes else []
    assert train(short, tmp_path / "run", *changes, *origin) == 2
    assert told in capsys.readouterr().err
