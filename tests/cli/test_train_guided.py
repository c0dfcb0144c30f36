"""Training with guided alignment, as a user runs it: what it does to attention, what is told, and what resumes."""

import gzip
import re
from pathlib import Path

import pytest
import yaml

from nmt.training.states import read_state
from tests.cli.conftest import TRAINING_PAIRS, Train, records, settings, stop_at_update
from tests.end_to_end.conftest import assert_same

Capture = pytest.CaptureFixture[str]

LINE = "0-0 1-1 2-2 3-3 4-4 5-5"  # "the dog sees the cat ." has a word for each of "der Hund sieht den Kater ."


@pytest.fixture
def guided(tmp_path: Path, corpus: Path) -> Path:
    """The usual small training with alignments of both corpora, packed and plain."""
    (tmp_path / "train.align.gz").write_bytes(gzip.compress(f"{LINE}\n".encode() * TRAINING_PAIRS))
    (tmp_path / "valid.align").write_text(f"{LINE}\n" * 12, encoding="utf-8")
    config = settings(corpus)
    config["data"]["cache_folder"] = str(tmp_path / "cache")
    config["data"]["train"][0]["alignments"] = "train.align.gz"  # relative to the configuration
    config["data"]["valid"]["alignments"] = "valid.align"
    config["training"]["guided_alignment"] = {"weight": 1.0}
    path = tmp_path / "guided.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def numbers(output: Path, split: str, name: str) -> list[float]:
    return [record[name] for record in records(output) if record["split"] == split]


@pytest.mark.slow
def test_attention_follows_the_alignments(tmp_path: Path, guided: Path, train: Train, capsys: Capture) -> None:
    """The guided loss falls below that of a training in which it has hardly any weight."""
    more = ("training.max_epochs=4", "training.log_every=9")
    assert train(guided, tmp_path / "guided", *more) == 0
    assert "; alignments: " in capsys.readouterr().err
    assert train(guided, tmp_path / "free", *more, "training.guided_alignment.weight=1e-9") == 0
    with_weight, without = (numbers(tmp_path / name, "valid", "guided_loss") for name in ("guided", "free"))
    assert len(with_weight) == 4
    assert with_weight[-1] < without[-1] - 0.15
    told = numbers(tmp_path / "guided", "train", "guided_loss")
    assert told[-1] < told[0]
    log = (tmp_path / "guided" / "train.log").read_text(encoding="utf-8")
    assert log.count("guided ") == len(with_weight) + len(told)


INTERRUPTED = (
    *("training.batch_by=tokens", "training.batch_size=100", "training.sort_pairs=40", "training.accumulate=2"),
    *("model.attention.scope=local-m", "model.attention.half_width=1", "model.decoder.type=bahdanau"),
    "training.schedule.name=linear",
)


@pytest.mark.slow
def test_an_interrupted_training_resumes_exactly(
    tmp_path: Path, guided: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(guided, tmp_path / "whole", *INTERRUPTED, "training.max_epochs=2") == 0
    updates = read_state(tmp_path / "whole" / "state.safetensors").numbers["progress"]["update"]
    with monkeypatch.context() as patched:
        stop_at_update(patched, updates // 2 + 2)  # the second one of the second epoch
        assert train(guided, tmp_path / "resumed", *INTERRUPTED, "training.max_epochs=2") == 2
    assert train(guided, tmp_path / "resumed", *INTERRUPTED, "training.max_epochs=2", "--resume") == 0
    assert_same(tmp_path / "whole", tmp_path / "resumed")


def test_alignments_without_a_link(tmp_path: Path, corpus: Path, guided: Path, train: Train, capsys: Capture) -> None:
    """Of any corpus: its guided loss would be 0, as if the attention were perfect."""
    for name, lines in (("train.align.gz", TRAINING_PAIRS), ("valid.align", 12)):
        (tmp_path / name).write_text("\n" * lines)
    watched = {"source": corpus / "valid.en", "target": corpus / "valid.de", "alignments": tmp_path / "valid.align"}
    files = ", ".join(f"{key}: {path}" for key, path in {"name": "old", **watched}.items())
    assert train(guided, tmp_path / "run", f"data.watch=[{{{files}}}]", "--dry-run") == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "the alignments have no link" in line]
    corpora = [re.findall("warning: (.*): the alignments have no link for any pair", line) for line in warnings]
    assert corpora == [["training corpus"], ["validation corpus"], ["watched corpus old"]]
