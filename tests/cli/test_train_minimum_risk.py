"""Minimum risk training, as a user runs it after a usual training: what is told, what resumes, what is refused."""

import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import Config
from nmt.data.batch import Batch, make_batch
from nmt.data.subwords import Vocabularies
from nmt.evaluation.metrics import sentence_score
from nmt.experiment.candidates import build_candidates
from nmt.models.model_file import load_model, rebuild
from nmt.models.seq2seq import Seq2Seq
from nmt.training.update import UpdateResult, update
from tests.cli.conftest import Train, stop_at_update
from tests.cli.test_train_guided import numbers
from tests.end_to_end.conftest import assert_same

Capture = pytest.CaptureFixture[str]

RISK = ("training.minimum_risk.size=7", "training.optimizer.learning_rate=0.003", "training.normalize_by=sentences")


@pytest.fixture(scope="module")
def loaded(trained: Path) -> tuple[Seq2Seq, Vocabularies, Config]:
    file = load_model(trained / "best.safetensors")
    return (
        rebuild(file).train(),
        Vocabularies.from_bytes(file.source_subwords, file.target_subwords, file.sizes),
        file.config,
    )


def batch_of(vocabularies: Vocabularies, *pairs: tuple[str, str], rows: list[int]) -> Batch:
    sources, targets = zip(*pairs, strict=True)
    return make_batch(
        [vocabularies.source.encode(line) for line in sources],
        [vocabularies.target.encode(line) for line in targets],
        np.array(rows),
    )


PAIRS = [
    ("the dog sees the cat .", "der hund sieht den kater."),
    ("the man likes the horse .", "der mann mag den hengst."),
]


@pytest.mark.parametrize(
    ("kind", "metric", "tokenize", "lowercase"),
    [
        ("sampled", "bleu", "none", False),
        ("sampled", "chrf", "13a", True),
        ("sampled", "chrf", "13a", False),
        ("n-best", "bleu", "13a", False),
    ],
)
def test_candidates_are_distinct_and_cost_what_their_texts_lack(
    loaded: tuple[Seq2Seq, Vocabularies, Config], kind: str, metric: str, tokenize: str, lowercase: bool
) -> None:
    """The references lack the capitals and the spaces that the model writes, so that `training.validation` counts."""
    model, vocabularies, config = loaded
    risk = {"candidates": kind, "size": 7, "metric": metric}
    changed = with_risk(config, risk, tokenize=tokenize, lowercase=lowercase)
    make = build_candidates(changed, vocabularies)
    assert make is not None
    state = torch.get_rng_state()
    made = make(model, batch_of(vocabularies, *PAIRS, rows=[4, 9]), 12)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    score = sentence_score(metric, tokenize=tokenize, lowercase=lowercase)  # type: ignore[arg-type]
    by_default = sentence_score(metric, tokenize="13a", lowercase=False)  # type: ignore[arg-type]
    rows = [
        tuple(ids[1:length]) for ids, length in zip(made.target.tolist(), made.target_lengths.tolist(), strict=True)
    ]
    sources = made.sources.tolist()
    assert len(set(zip(sources, rows, strict=True))) == len(rows)
    costs = made.costs[made.mask].tolist()
    firsts = [rows[sources.index(source)] for source in (0, 1)]
    assert [vocabularies.target.decode(ids) for ids in firsts] == [target for _, target in PAIRS]
    texts = [(vocabularies.target.decode(ids), PAIRS[source][1]) for source, ids in zip(sources, rows, strict=True)]
    assert costs == pytest.approx([1 - score(*both) / 100 for both in texts], abs=1e-6)
    are_defaults = (tokenize, lowercase) == ("13a", False)
    assert (costs == pytest.approx([1 - by_default(*both) / 100 for both in texts], abs=1e-3)) == are_defaults
    assert made.mask.sum(dim=1).tolist() == [sources.count(0), sources.count(1)]
    assert max(made.mask.sum(dim=1).tolist()) <= 8
    if kind == "n-best":
        assert min(made.mask.sum(dim=1).tolist()) >= 7


def with_risk(config: Config, risk: dict[str, Any], **validation: Any) -> Config:
    settings = config.model_dump(mode="json")
    settings["training"]["minimum_risk"] = risk
    settings["training"]["validation"] |= validation
    return Config.model_validate(settings, strict=False)


def test_samples_depend_on_the_update_and_the_pair_alone(loaded: tuple[Seq2Seq, Vocabularies, Config]) -> None:
    model, vocabularies, config = loaded
    make = build_candidates(with_risk(config, {"size": 7}), vocabularies)
    assert make is not None
    together = make(model, batch_of(vocabularies, *PAIRS, rows=[4, 9]), 12)
    alone = make(model, batch_of(vocabularies, PAIRS[1], rows=[9]), 12)
    second = slice(int(together.mask[0].sum()), None)
    assert alone.target.tolist() == together.target[second, : alone.target.size(1)].tolist()
    others = [make(model, batch_of(vocabularies, PAIRS[1], rows=[row]), update) for row, update in ((8, 12), (9, 13))]
    assert all(other.target.tolist() != alone.target.tolist() for other in others)


@pytest.mark.slow
def test_the_risk_is_told(tmp_path: Path, tiny: Path, trained: Path, train: Train) -> None:
    more = ("training.minimum_risk.metric=chrf", "training.max_updates=6", "training.log_every=3")
    assert train(tiny, tmp_path / "run", *RISK, *more, "--init-from", trained) == 0
    risks = numbers(tmp_path / "run", "train", "expected_risk")
    assert len(risks) == 2
    assert all(0.0 < risk < 1.0 for risk in risks)
    assert all(map(math.isfinite, numbers(tmp_path / "run", "valid", "loss")))
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert log.count(" · risk 0.") == 2
    assert "memory does not hold" not in log
    assert "warning" not in log


def stop_in_a_search(patched: pytest.MonkeyPatch) -> None:
    """By SIGTERM, while the candidates of the third update are searched."""
    done: list[bool] = []

    def counting(*arguments: Any, **options: Any) -> UpdateResult:
        done.append(True)
        return update(*arguments, **options)

    def check() -> None:
        if len(done) == 2:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError("the search goes on")

    patched.setattr("nmt.training.trainer.update", counting)
    patched.setattr("nmt.decoding.batched_search.check", check)


INTERRUPTED = (
    *("training.batch_size=20", "training.minimum_risk.candidates=n-best", "training.precision=bfloat16"),
    *("training.minimum_risk.include_reference=false", "subwords.sampling.alpha=0.1"),
)


@pytest.mark.slow
def test_an_interrupted_training_resumes_exactly(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended by a full disk in the second epoch, and then by a signal, which waits for no search: two updates later."""
    settings = (*RISK, *INTERRUPTED, "training.max_epochs=2", "training.minimum_risk.size=3", "--init-from", trained)
    assert train(tiny, tmp_path / "whole", *settings) == 0
    with monkeypatch.context() as patched:
        stop_at_update(patched, 8)
        assert train(tiny, tmp_path / "resumed", *settings) == 2
    with monkeypatch.context() as patched:
        stop_in_a_search(patched)
        assert train(tiny, tmp_path / "resumed", *settings, "--resume") == 128 + signal.SIGTERM
    assert train(tiny, tmp_path / "resumed", *settings, "--resume") == 0
    log = (tmp_path / "resumed" / "train.log").read_text(encoding="utf-8")
    assert log.count("stopped by SIGTERM; the state is saved, continue with --resume") == 1
    assert "resuming after update 8\n" in log
    assert_same(tmp_path / "whole", tmp_path / "resumed")


def test_from_random_weights_there_is_a_warning(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    assert train(tiny, tmp_path / "run", *RISK, "--dry-run") == 0
    told = capsys.readouterr()
    assert (
        "warning: training.minimum_risk learns from translations of the model, which mean nothing at first" in told.err
    )
    assert "largest batch: 12 sentences" in told.out


def test_where_a_model_computes_no_numbers(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Such a model has no candidates; the message says after which update, as it does of validations."""

    def breaking(model: Seq2Seq, *arguments: Any, **keywords: Any) -> UpdateResult:
        result = update(model, *arguments, **keywords)
        model.output_weight.data.fill_(math.nan)
        return result

    monkeypatch.setattr("nmt.training.trainer.update", breaking)
    assert train(tiny, tmp_path / "run", *RISK, "training.max_epochs=1", "--init-from", trained) == 2
    message = "training diverged after update 1 (epoch 0.11, learning rate "
    assert message in (told := capsys.readouterr().err)
    assert "): the model computes no numbers to choose candidates by; lower training.optimizer.learning_rate" in told
