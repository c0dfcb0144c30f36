"""The report on a training, from a corpus whose shares a person can count."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tqdm import tqdm

from nmt.config.schema import Config
from nmt.data.batch import Batch, Candidates, make_candidates
from nmt.data.prepare import Prepared
from nmt.data.store import Filters
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.ops import computing
from nmt.processes import ALONE
from nmt.training import dry_run
from nmt.training.corpus_loss import Validation
from nmt.training.optim import build_optimizer, build_schedule
from nmt.training.progress import Progress
from nmt.training.run_folder import RunFolder
from nmt.training.states import SavedStates
from nmt.training.trainer import MakeCandidates, Trainer
from nmt.training.update import UpdateResult, update
from tests.conftest import written_ids

MODEL = {"embedding_size": 5, "encoder": {"hidden_size": 3}, "decoder": {"type": "luong", "hidden_size": 7}}


@pytest.fixture(autouse=True)
def _few_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is timed."""
    monkeypatch.setattr(dry_run, "WARM_UP", 0)
    monkeypatch.setattr(dry_run, "TIMED", 1)


@pytest.fixture
def config() -> Config:
    pair = {"source": "a", "target": "b"}
    data: dict[str, Any] = {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair}
    return Config.model_validate(
        {"name": "run", "data": data, "model": MODEL, "training": {"batch_size": 2, "max_epochs": 2}}
    )


@pytest.fixture
def prepared(tmp_path: Path, config: Config) -> Prepared:
    """Characters are the pieces: "a b" is ▁ a ▁ b. Ten training pairs: 1 empty, 2 overlong, 1 unbalanced, 6 kept."""
    settings = config.subwords.model_copy(update={"type": "char", "size": 8})
    subwords = Subwords.train(["abc bca cab"] * 5, settings=settings)
    pairs = [
        *(("a", ""), ("abcabcabc", "a"), ("a", "abcabcabc"), ("a", "abcab")),
        *(("abc", "cab"), ("a", "b"), ("xb", "c"), ("ab", "ba"), ("b", "a"), ("c", "yyy")),
    ]
    both = Vocabularies(subwords, subwords)
    filters = Filters(max_length=7, max_length_ratio=2.5)
    return Prepared(
        both,
        written_ids(pairs, tmp_path / "train", vocabularies=both, filters=filters),
        written_ids(pairs[4:6], tmp_path / "valid", vocabularies=both, filters=None),
    )


@pytest.fixture
def model(config: Config) -> Seq2Seq:
    torch.manual_seed(1)
    return build_model(config.model, source_size=8, target_size=8)


def describe(
    config: Config, prepared: Prepared, model: Seq2Seq, candidates: MakeCandidates | None = None
) -> Iterator[str]:
    """The report on a trainer of the model."""
    states = SavedStates(
        folder=RunFolder.follow(Path("run")),
        config=config,
        model=model.train(),
        optimizer=build_optimizer(model.parameters(), config.training),
        schedule=build_schedule(config.training),
        data="",
        processes=ALONE,
    )
    trainer = Trainer(
        states=states,
        corpus=prepared.train,
        vocabularies=prepared.vocabularies,
        progress=Progress(),
        records=None,
        validate=lambda model: Validation({}),
        write_model=lambda path, model, training: None,
        log=lambda line: None,
        progress_bar=lambda *numbers: tqdm(disable=True),
        candidates=candidates,
    )
    return dry_run.describe(prepared, trainer)


def test_shares_samples_and_batches(config: Config, prepared: Prepared, model: Seq2Seq) -> None:
    """Kept sources: ▁abc ▁a ▁xb ▁ab ▁b ▁c, 16 pieces, x unknown. Targets: ▁cab ▁b ▁c ▁ba ▁a ▁yyy, 15 with 1 for yyy."""
    lines = list(describe(config, prepared, model))
    left_out = "1 empty on one side, 2 longer than data.max_length = 7 pieces, 1 over data.max_length_ratio = 2.5"
    assert prepared.train.report.lines() == [
        f"10 pairs read, 6 kept (60.00%; left out: {left_out})",
        "source: 16 pieces, 2.7 a sentence, 1 unknown (6.25%)",
        "target: 15 pieces, 2.5 a sentence, 1 unknown (6.67%)",
    ]
    assert lines[:9] == [
        *("sample 1", "  source: ▁ a b c", "  target: ▁ c a b"),
        *("sample 3", "  source: ▁ <unk> b", "  target: ▁ c"),
        *("sample 6", "  source: ▁ c", "  target: ▁ <unk>"),
    ]
    assert lines[-3].startswith("batches: 3 in the first epoch, ")
    assert lines[-2].startswith("largest batch: 2 sentences, 5 source and 5 target positions; memory ")
    expected = r"time, without validation: about \d+ seconds? \(6 updates\), \d+ seconds? \(3 updates\) from one "
    assert re.match(expected, lines[-1])


@pytest.mark.parametrize(("share", "said"), [(0.0, ""), (0.25, ", and 25% of all,")])
def test_a_training_that_may_end_early(
    share: float, said: str, config: Config, prepared: Prepared, model: Seq2Seq
) -> None:
    stopping = {"max_updates": 90_000, "validate_every": 400, "early_stopping": {"patience": 7, "share": share}}
    changed = Config.model_validate({**config.model_dump(), "training": {"batch_size": 2, **stopping}})
    *_, line = describe(changed, prepared, model)
    time = r"\d+ (seconds?|minutes?|hours?)"
    each, most = rf"{time} \(400 updates\) from one validation to the next", rf"at most {time} \(90,000 updates\)"
    ending = f"; training ends when 7 validations in a row{said} bring nothing better"
    assert re.fullmatch(rf"time, without validation: about {each}, {most}{ending}", line)


def test_a_training_that_diverges_at_once(config: Config, prepared: Prepared, model: Seq2Seq) -> None:
    with torch.no_grad():
        model.output_weight.fill_(math.inf)
    with pytest.raises(UserError, match=r"training diverged: loss nan, gradient norm nan; lower training\.optimizer"):
        list(describe(config, prepared, model))


def test_the_moving_average_is_a_copy_of_the_weights(config: Config, prepared: Prepared) -> None:
    settings = config.model_dump()
    settings["model"]["decoder"]["hidden_size"] = 500
    sizes = []
    for average in (None, {"decay": 0.9}):
        settings["training"]["moving_average"] = average
        changed = Config.model_validate(settings)
        *_, line, _ = describe(changed, prepared, build_model(changed.model, source_size=8, target_size=8))
        sizes.append(int(re.search(r"besides (\d+) MiB of weights", line)[1]))  # type: ignore[index]
    assert sizes[1] == pytest.approx(2 * sizes[0], abs=1)
    assert sizes[0] > 5


def test_what_comes_before_an_update_is_computed_as_in_training(
    config: Config, prepared: Prepared, model: Seq2Seq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder's words are the model's, and the candidates are searched with the kernels that are configured.

    Many candidates are computed in parts.
    """
    fused: list[bool] = []
    updated: list[Batch] = []

    def candidates(model: Seq2Seq, batch: Batch, update: int) -> Candidates:
        fused.append(computing.fused())
        return make_candidates([[[4]]] * len(batch.source), [[0.0]] * len(batch.source))

    def watched(model: Seq2Seq, optimizer: Any, group: list[Batch], **settings: Any) -> UpdateResult:
        updated.extend(group)
        return update(model, optimizer, group, **settings)

    monkeypatch.setattr("nmt.training.trainer.update", watched)
    monkeypatch.setattr("nmt.training.trainer.MOST_POSITIONS", 1)
    sampling = {"probability": 1.0, "updates": 1000}
    for kernels in ("plain", "auto"):
        training = {"kernels": kernels, "scheduled_sampling": sampling, "max_updates": 1}
        changed = Config.model_validate({**config.model_dump(), "training": training})
        list(describe(changed, prepared, model, candidates))
    assert fused == sorted(fused)  # those with plain kernels first
    assert set(fused) == {False, True}
    assert all(batch.candidates is not None for batch in updated)
    assert all(batch.fed is not None for batch in updated)
    assert {len(batch.indices) for batch in updated} == {1}


def test_fewer_pairs_than_samples(tmp_path: Path, config: Config, prepared: Prepared, model: Seq2Seq) -> None:
    two = written_ids([("a", "b"), ("b", "a")], tmp_path / "two", vocabularies=prepared.vocabularies, filters=None)
    lines = list(describe(config, prepared._replace(train=two), model))
    assert [line for line in lines if line.startswith("sample")] == ["sample 1", "sample 2"]
