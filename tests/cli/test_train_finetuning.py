"""nmt-train --init-from: what is inherited, what is refused, what is frozen, and resuming without the first model."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.config.loading import parse_config
from nmt.config.schema import Config
from nmt.models.model_file import LONGEST_SOURCE, ModelFile, load_model
from nmt.protected import LEARNED
from nmt.text_form import FORMS
from tests.cli.conftest import FEW, Train, stop_at_validation
from tests.cli.test_train import scripted_losses

Capture = pytest.CaptureFixture[str]
OF_CORPUS = (LONGEST_SOURCE, FORMS, LEARNED)


@pytest.fixture
def short(tmp_path: Path, tiny: Path) -> Path:
    """The configuration `tiny` without the sections `model` and `subwords`."""
    return without(tiny, tmp_path / "short.yaml", "model", "subwords")


def without(config: Path, path: Path, *sections: str, **changes: Any) -> Path:
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    kept = {name: value for name, value in settings.items() if name not in sections}
    path.write_text(yaml.safe_dump({**kept, **changes}), encoding="utf-8")
    return path


def saved_config(output: Path) -> Config:
    return parse_config((output / "config.yaml").read_text(encoding="utf-8"))


def largest_change(mine: ModelFile, theirs: ModelFile) -> float:
    return max(float((weight - theirs.weights[name]).abs().max()) for name, weight in mine.weights.items())


def test_weights_architecture_and_subwords_are_inherited(
    tmp_path: Path, short: Path, trained: Path, train: Train
) -> None:
    """With steps of 1e-12, the weights at the end are those of the first model. Subwords trained on this corpus would
    have other pieces."""
    for language, line in (("en", "the zebra jumps .\n"), ("de", "das Zebra springt .\n")):
        (tmp_path / f"new.{language}").write_text(line * 40, encoding="utf-8")
    files = f"data.train=[{{source: {tmp_path / 'new.en'}, target: {tmp_path / 'new.de'}}}]"
    output = tmp_path / "run"
    still = "training.optimizer={name: sgd, learning_rate: 1.0e-12}"
    assert train(short, output, files, still, "training.max_updates=5", "seed=8", "--init-from", trained) == 0
    config, first = saved_config(output), load_model(trained)
    assert (config.model, config.subwords) == (first.config.model, first.config.subwords)
    assert (config.seed, config.training.max_updates) == (8, 5)
    assert largest_change(load_model(output), first) < 1e-9
    assert load_model(output).source_subwords == first.source_subwords
    assert (output / "init_from.safetensors").read_bytes() == (trained / "best.safetensors").read_bytes()
    log = (output / "train.log").read_text(encoding="utf-8")
    assert "starting from the weights of" in log
    assert "known to the model" not in log, "of the same vocabulary there is nothing to say"


def test_a_model_that_becomes_worse_leaves_what_it_began_with(
    tmp_path: Path, short: Path, trained: Path, train: Train
) -> None:
    output, hurried = (
        tmp_path / "run",
        ("training.optimizer={name: sgd, learning_rate: 90}", "training.divergence=null"),
    )
    (tmp_path / "new.en").write_text(
        "the dogs see %s and the cats hear %s and the boy finds 12 birds .\n" * 40, encoding="utf-8"
    )
    (tmp_path / "new.de").write_text("die Hunde sehen %s .\n" * 40, encoding="utf-8")
    files = f"data.train=[{{source: {tmp_path / 'new.en'}, target: {tmp_path / 'new.de'}}}]"
    assert train(short, output, *hurried, files, "training.max_updates=4", "--init-from", trained) == 0
    log = (output / "train.log").read_text(encoding="utf-8")
    assert "validation · epoch 0.00 · update 0 · " in log
    assert "no validation was better than that of the model it started from" in log
    best, first = load_model(output), load_model(trained)
    assert best.training["updates"] == 0
    assert largest_change(best, first) == 0
    assert {key: best.training[key] for key in OF_CORPUS} == {key: first.training[key] for key in OF_CORPUS}


def test_an_average_that_is_better_than_the_model_it_began_with_is_the_best_one(
    tmp_path: Path, short: Path, trained: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_losses(monkeypatch, 1.0, 2.0, 3.0, 4.0, 0.5)
    output, averaged = tmp_path / "run", ("training.keep_best=2", "training.average_best=2")
    assert train(short, output, *FEW, *averaged, "--init-from", trained) == 0
    log = (output / "train.log").read_text(encoding="utf-8")
    assert "average of 2 checkpoints: loss 0.5, better, and now the best model" in log
    assert "no validation was better" not in log
    assert load_model(output).training["average_of_updates"] == [0, 1]


def test_text_of_another_form_and_language_than_before(
    tmp_path: Path, short: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    for language, line in (("en", "The dog sees the cat.\n"), ("de", "der Hund sieht den Kater .\n")):
        (tmp_path / f"new.{language}").write_text(line * 40, encoding="utf-8")
    files = f"data.train=[{{source: {tmp_path / 'new.en'}, target: {tmp_path / 'new.de'}}}]"
    french = "data.target_language=fr"
    assert train(short, tmp_path / "run", files, french, "--init-from", trained, "--dry-run") == 0
    told = capsys.readouterr().err
    assert "data.target_language is fr, and that of the model to start from is de; is this meant?" in told
    assert "data.source_language is" not in told
    cased, tokenized = [line for line in told.splitlines() if "the model's training text" in line]
    assert cased.startswith(f"warning: {tmp_path / 'new.en'}: 40 of 40 lines (100.0%) have capital letters")
    assert "100.0%) look tokenized" in tokenized


def test_the_saved_configuration_tunes_the_same_model(tmp_path: Path, short: Path, trained: Path, train: Train) -> None:
    assert train(short, tmp_path / "one", *FEW, "--init-from", trained) == 0
    copy = tmp_path / "one" / "init_from.safetensors"
    assert train(tmp_path / "one" / "config.yaml", tmp_path / "two", "--init-from", copy) == 0
    for name in ("config.yaml", "best.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_run_that_has_lost_what_it_started_from(
    tmp_path: Path, short: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    output = tmp_path / "run"
    assert train(short, output, *FEW, "--init-from", trained) == 0
    (output / "init_from.safetensors").unlink()
    assert train(short, output, *FEW, "--resume") == 2
    assert f", put {output / 'init_from.safetensors'} back if it started from that model" in capsys.readouterr().err


def test_what_contradicts_an_inherited_key(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    """The file says nothing of the type; as a file of its own it would have pieces to sample."""
    characters = tmp_path / "characters"
    assert train(tiny, characters, "subwords.type=char", "training.max_updates=1") == 0
    config = without(tiny, tmp_path / "sampled.yaml", "model", "subwords", subwords={"sampling": {"alpha": 0.1}})
    line = config.read_text(encoding="utf-8").splitlines().index("  sampling:") + 1
    capsys.readouterr()
    assert train(config, tmp_path / "run", "--init-from", characters) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"nmt-train: error: {config}, line {line}: subwords.sampling: has no effect on ")
    assert not (tmp_path / "run").exists()


def test_all_that_contradicts_the_model_is_reported_at_once(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    """And nothing that only follows from it."""
    model = {"embedding_size": 9, "tie_embeddings": "target"}
    config = without(tiny, tmp_path / "wrong.yaml", "model", "subwords", model=model)
    lines = config.read_text(encoding="utf-8").splitlines()
    assert train(config, tmp_path / "run", "model.decoder.initial_state=copy", "--init-from", trained) == 2
    ending = f"; --init-from {trained / 'best.safetensors'} cannot change it"
    embedding, tie = lines.index("  embedding_size: 9") + 1, lines.index("  tie_embeddings: target") + 1
    assert capsys.readouterr().err.splitlines() == [
        "nmt-train: 3 problems:",
        f"  - {config}, line {embedding}: model.embedding_size: 7 in the model, 9 here{ending}",
        f"  - {config}, line {tie}: model.tie_embeddings: 'none' in the model, 'target' here{ending}",
        f"  - --set model.decoder.initial_state=copy: 'final' in the model, 'copy' here{ending}",
    ]


def test_a_model_that_cannot_be_read(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    """It is reported with single keys; what it would have decided is not held against the configuration."""
    config = without(tiny, tmp_path / "tied.yaml", "model", "subwords", model={"tie_embeddings": "target"})
    nowhere = ["--init-from", tmp_path / "nowhere"]
    assert train(config, tmp_path / "run", "training.batch_size=0", *nowhere) == 2
    headline, *problems = capsys.readouterr().err.splitlines()
    assert headline == "nmt-train: 2 problems:"
    assert f"  - {tmp_path / 'nowhere'}: no such model file or run folder" in problems
    assert any(problem.startswith("  - --set training.batch_size=0: given 0") for problem in problems)
    assert train(config, tmp_path / "run", *nowhere) == 2
    assert "nowhere: no such model file or run folder" in capsys.readouterr().err
    assert train(tmp_path / "no.yaml", tmp_path / "run", *nowhere) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


# -------------------------------------------------------------------------------------------------------------- frozen


def test_frozen_parts(tmp_path: Path, short: Path, trained: Path, train: Train, capsys: Capture) -> None:
    """Frozen weights keep every bit, in spite of weight decay and clipping; all others change."""
    optimizer = "training.optimizer={name: adamw, learning_rate: 0.02, weight_decay: 0.1}"
    settings = (optimizer, "training.freeze=[embeddings, encoder]", "training.max_updates=2")
    assert train(short, tmp_path / "run", *settings, "--init-from", trained) == 0
    before, after = load_model(trained).weights, load_model(tmp_path / "run").weights
    same = {name for name, weight in after.items() if torch.equal(weight, before[name])}
    assert same == {name for name in after if "embedding" in name or name.startswith("encoder.")}
    numbers = sum(after[name].numel() for name in same)
    assert f"{numbers:,} of them frozen" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------------- resumed


def test_a_run_goes_on_with_its_files_in_another_place(
    tmp_path: Path,
    tiny: Path,
    corpus: Path,
    train: Train,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """As when a project is moved or renamed, run and all: what is in the files counts, not their paths."""

    def paths(folder: Path) -> list[str]:
        return [
            f"data.train=[{{source: {folder / 'train.en'}, target: {folder / 'train.de'}}}]",
            f"data.valid={{source: {folder / 'valid.en'}, target: {folder / 'valid.de'}}}",
            f"data.cache_folder={folder / 'cache'}",
        ]

    here = shutil.copytree(corpus, tmp_path / "corpus")
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 2)
        assert train(tiny, tmp_path / "before", *FEW, *paths(here)) == 130
    run = (tmp_path / "before").rename(tmp_path / "nachher ü")
    moved = here.rename(tmp_path / "verschoben ö")
    assert train(tiny, run, *FEW, *paths(moved)) == 2  # without --resume it is another configuration
    assert "data.train.0.source" in capsys.readouterr().err
    assert train(tiny, run, *FEW, *paths(moved), "--resume", "seed=4") == 2
    original, state = (moved / "train.de").read_bytes(), (run / "state.safetensors").read_bytes()
    (moved / "train.de").write_bytes(original.replace(b"e", b"i", 1))
    assert train(tiny, run, *FEW, *paths(moved), "--resume") == 2
    assert "no longer those that this run began with" in capsys.readouterr().err
    assert (run / "state.safetensors").read_bytes() == state
    (moved / "train.de").write_bytes(original)
    assert train(tiny, run, *FEW, *paths(moved), "--resume") == 0
    told = capsys.readouterr().err
    keys = "data.train.0.source, data.train.0.target, data.valid.source, data.valid.target"
    files = f"files at other paths, which must be the same as before: {keys}"
    assert f"warning: {run}: resumed with {files}\n" in told
    assert str(moved) not in (run / "config.yaml").read_text(encoding="utf-8")
    assert load_model(run).training["updates"] == 3


def test_resuming_needs_no_vocabulary_of_the_first_model(
    tmp_path: Path, tiny: Path, short: Path, corpus: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's own configuration names the files from which the first model had its words, which may be gone."""
    words = tmp_path / "words"
    text = "".join((corpus / f"train.{side}").read_text(encoding="utf-8") for side in ("en", "de"))
    words.write_text("\n".join(sorted(set(text.split()))), encoding="utf-8")
    vocabularies = [f"subwords.{side}_vocabulary={words}" for side in ("source", "target")]
    one = "training.max_updates=1"
    assert train(tiny, tmp_path / "first", "subwords={joint: false}", *vocabularies, one) == 0
    output = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 2)
        assert train(short, output, *FEW, "--init-from", tmp_path / "first") == 130
    words.unlink()
    assert train(output / "config.yaml", output, "--resume") == 0


@pytest.mark.slow
def test_resuming_needs_the_first_model_no_more(
    tmp_path: Path,
    short: Path,
    tiny: Path,
    trained: Path,
    train: Train,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """Interrupted, and resumed after the first model has gone: as if uninterrupted. Another first model is refused."""
    first = tmp_path / "first.safetensors"
    shutil.copy(trained / "best.safetensors", first)
    frozen = ("training.freeze=[encoder]", *FEW)
    assert train(short, tmp_path / "whole", *frozen, "--init-from", first) == 0
    output = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 3)
        assert train(short, output, *frozen, "--init-from", first) == 130
    state = (output / "state.safetensors").read_bytes()
    capsys.readouterr()

    other = trained / "checkpoints" / "update-00000018.safetensors"
    assert train(short, output, *frozen, "--resume", "--init-from", other) == 2
    errors = capsys.readouterr().err
    assert f"--init-from {other}: the run in {output} did not start from this model but from {output}" in errors
    assert (output / "state.safetensors").read_bytes() == state
    assert train(tiny, tmp_path / "bahdanau", "model.decoder.type=bahdanau", "training.max_updates=1") == 0
    assert train(short, output, *frozen, "--resume", "--init-from", tmp_path / "bahdanau") == 2
    assert f"the run in {output} did not start from this model" in capsys.readouterr().err

    with monkeypatch.context() as patch:
        stop_at_validation(patch, 2)
        assert train(short, output, *frozen, "--resume", "--init-from", first) == 130
    first.unlink()
    assert train(short, output, *frozen, "--resume") == 0
    assert "resuming after update 3" in capsys.readouterr().err
    for name in ("config.yaml", "best.safetensors"):
        assert (output / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_start_that_was_killed_is_begun_again(
    tmp_path: Path, short: Path, trained: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a saved state there is nothing to resume: the recorded model is taken, or another one if it is given."""
    output = tmp_path / "run"
    output.mkdir()  # so that it is kept

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nmt.experiment.training.prepare", killed)
        assert train(short, output, "--init-from", trained) == 130
    assert sorted(path.name for path in output.iterdir()) == [
        *(".lock", "checkpoints", "config.yaml", "init_from.safetensors", "train.log")
    ]
    other = trained / "checkpoints" / "update-00000018.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr("nmt.experiment.training.prepare", killed)
        assert train(short, output, "--resume", "--init-from", other) == 130
    assert (output / "init_from.safetensors").read_bytes() == other.read_bytes()
    assert train(short, output, "--resume", "training.max_updates=1") == 0
    assert saved_config(output).model == load_model(trained).config.model
    assert (output / "init_from.safetensors").read_bytes() == other.read_bytes()
