"""nmt-train with pretrained vectors: what starts from them, what stays, and files that do not fit."""

from pathlib import Path

import pytest
import torch

from nmt.config.loading import parse_config
from nmt.data.subwords import Subwords
from nmt.models.model_file import ModelFile, load_model
from tests.cli.conftest import FEW, Train, stop_at_validation

Capture = pytest.CaptureFixture[str]
SOURCE, TARGET = "source_embedding.weight", "own_target_embedding.weight"
STILL = "training.optimizer={name: sgd, learning_rate: 1.0e-12}"
WORDS = ("the", "dog", "zebra", "s")


def vectors(folder: Path, *words: str, size: int = 7, name: str = "vectors.vec") -> Path:
    """Word i has i + 1 in its first place, i + 1.5 in its second and so on."""
    lines = [f"{word} {' '.join(str(row + 1 + place / 2) for place in range(size))}" for row, word in enumerate(words)]
    path = folder / name
    path.write_text(f"{len(words)} {size}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows(model: ModelFile, table: str, *pieces: str) -> torch.Tensor:
    subwords = Subwords(model.source_subwords)
    ids = {piece: number for number, piece in enumerate(subwords.pieces(range(subwords.size)))}
    return model.weights[table][[ids[piece] for piece in pieces]]


def expected(*numbers: int) -> torch.Tensor:
    return torch.tensor([[number + place / 2 for place in range(7)] for number in numbers])


def embeddings(**values: object) -> str:
    return "model.embeddings={" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def test_frozen_embeddings_keep_every_bit(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    """Through weight decay, an average of checkpoints and a run that is resumed without the file; the rest learns."""
    path, output = vectors(tmp_path, *WORDS), tmp_path / "run"
    optimizer = "training.optimizer={name: adamw, learning_rate: 0.02, weight_decay: 0.1}"
    settings = (optimizer, embeddings(source=path, freeze="true"), "training.keep_best=2", "training.average_best=2")
    assert train(tiny, tmp_path / "start", STILL, "training.max_updates=1", "training.precision=float32") == 0
    assert train(tiny, output, *settings, *FEW) == 0
    text = capsys.readouterr().err
    found = f"warning: source embeddings: 3 of 96 pieces (3.1%) from {path}"
    assert f"{found}, and model.embeddings.freeze keeps the others random; set it to false" in text
    assert "parameters: 4,033, 700 of them frozen" in text
    assert "  source_embedding: 700, 700 of them frozen" in text
    start, end = load_model(tmp_path / "start"), load_model(output)
    assert torch.equal(rows(end, SOURCE, "▁the", "▁dog", "▁s"), expected(1, 2, 4))
    assert torch.allclose(rows(end, SOURCE, "<unk>", "</s>"), rows(start, SOURCE, "<unk>", "</s>"), atol=1e-9)
    assert not torch.allclose(end.weights[TARGET], start.weights[TARGET], atol=1e-3)


def test_files_are_checked_before_data_is_read(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    path = vectors(tmp_path, *WORDS, size=5)
    missing = tmp_path / "missing.vec"
    for more in ((), ("--dry-run",)):
        assert train(tiny, tmp_path / "run", embeddings(source=path, target=missing), *more) == 2
        errors = capsys.readouterr().err
        assert (
            f"model.embeddings.source: {path}, line 1: its vectors have 5 numbers, separated by single spaces, but "
            "model.embedding_size is 7" in errors
        )
        assert f"model.embeddings.target: {missing}: no such file" in errors
        assert "pairs read" not in errors


def test_a_former_run_is_not_removed_for_files_that_cannot_be_used(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture
) -> None:
    output = tmp_path / "run"
    assert train(tiny, output, "training.max_updates=1") == 0
    path = vectors(tmp_path, "zebra")
    assert train(tiny, output, embeddings(source=path), "--overwrite") == 2
    assert "has none of the vocabulary's pieces" in capsys.readouterr().err
    assert (output / "state.safetensors").exists()
    path = vectors(tmp_path, "the")
    assert train(tiny, output, embeddings(source=path), "training.max_updates=1", "--overwrite") == 0
    assert capsys.readouterr().err.count("source embeddings: 1 of 96") == 1


def test_a_run_that_is_resumed_keeps_the_files_that_it_began_with(
    tmp_path: Path, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not read again, and need not be there; it ends like one that was not stopped, and says what it read."""
    path, output = vectors(tmp_path, *WORDS), tmp_path / "run"
    settings = (embeddings(source=path, freeze="true"), *FEW)
    assert train(tiny, tmp_path / "whole", *settings) == 0
    with monkeypatch.context() as patch:
        stop_at_validation(patch, 2)
        assert train(tiny, output, *settings) == 130
    path.unlink()
    other = embeddings(source=tmp_path / "other.txt", freeze="true")
    assert train(tiny, output, *settings, other, f"data.cache_folder={tmp_path / 'cache'}", "--resume") == 0
    saved = (output / "config.yaml").read_text(encoding="utf-8")
    assert str(path) in saved
    assert "other.txt" not in saved
    whole, resumed = load_model(tmp_path / "whole"), load_model(output)
    assert resumed.config.model.embeddings == parse_config(saved).model.embeddings
    assert all(torch.equal(weight, resumed.weights[name]) for name, weight in whole.weights.items())


def test_fine_tuning_starts_from_the_model_and_no_file(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    path, first = vectors(tmp_path, *WORDS), tmp_path / "first"
    assert train(tiny, tmp_path / "run", embeddings(source=path), "--init-from", trained) == 2
    assert "model.embeddings={" in capsys.readouterr().err
    assert train(tiny, first, embeddings(source=path, freeze="true"), "training.max_updates=2") == 0
    path.unlink()
    settings = ("training.max_updates=3", "name=other")
    assert train(first / "config.yaml", tmp_path / "tuned", *settings, "--init-from", first) == 2
    assert capsys.readouterr().err.endswith(
        f": model.embeddings: has no effect with --init-from {first / 'best.safetensors'}, which takes the embeddings "
        "from the model; remove it, and list embeddings in training.freeze to keep them as they are\n"
    )
    without = (*settings, "model.embeddings=null")
    assert train(first / "config.yaml", tmp_path / "tuned", *without, "--init-from", first) == 0
    before, after = load_model(first), load_model(tmp_path / "tuned")
    assert after.config.model.embeddings is None
    assert not torch.equal(before.weights[SOURCE], after.weights[SOURCE])  # as training.freeze alone says
    assert train(tmp_path / "tuned" / "config.yaml", tmp_path / "again", "--init-from", first) == 0
    assert train(tmp_path / "tuned" / "config.yaml", tmp_path / "tuned", "--resume") == 0
