"""Mistakes in what nmt-train is given: exit code 2, one clear message, nothing trained, nothing left in the way."""

import shutil
from pathlib import Path

import pytest
import yaml

from nmt.models.model_file import load_model
from tests.cli.conftest import Train, complaint

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def own_config(tmp_path: Path, corpus: Path, tiny: Path) -> Path:
    """A configuration beside a corpus of its own, to be damaged."""
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        shutil.copy(corpus / name, folder / name)
    settings = yaml.safe_load(tiny.read_text(encoding="utf-8"))
    settings["data"] |= {
        "train": [{"source": "train.en", "target": "train.de"}],
        "valid": {"source": "valid.en", "target": "valid.de"},
        "cache_folder": "cache",
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def test_missing_corpora(tmp_path: Path, own_config: Path, train: Train, capsys: Capture) -> None:
    for name in ("train.de", "valid.en"):
        (own_config.parent / name).unlink()
    for mode, problems in (([], 2), (["--dry-run"], 2), (["--rank-timeout=0"], 3)):
        assert train(own_config, tmp_path / "run", *mode) == 2
        errors = complaint(capsys)
        assert f"{problems} problems" in errors
        for place, name, near in (
            ("7: data.train.0.target", "train.de", "train.en"),
            ("9: data.valid.source", "valid.en", "valid.de"),
        ):
            folder = own_config.parent
            assert f"own.yaml, line {place}: {folder / name}: no such file; nearest: {folder / near}\n" in errors
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "fragment"),
    [
        ("subwords.size=5", "subwords.size is 5, but this corpus needs at least "),
        ("subwords.model=missing.model", "subwords.model: "),
        ("data.cache_folder=/dev/null/cache", "the data cache cannot be used"),
    ],
)
def test_configurations(
    tmp_path: Path, tiny: Path, train: Train, capsys: Capture, override: str, fragment: str
) -> None:
    more = ["subwords.size=8000"] if override.startswith("subwords.model") else []  # its default: has no effect then
    assert train(tiny, tmp_path / "run", *more, override) == 2
    assert fragment in complaint(capsys)
    assert not (tmp_path / "run").exists()


def test_outputs_that_cannot_be_written(tmp_path: Path, tiny: Path, train: Train, capsys: Capture) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert train(tiny, tmp_path / "file") == 2
    assert "file: the output folder cannot be written (File exists)" in complaint(capsys)
    assert train(tiny, tmp_path / "file" / "run") == 2
    assert "the output folder cannot be written (Not a directory)" in complaint(capsys)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_file_given_as_configuration_is_not_replaced(
    tmp_path: Path, own_config: Path, train: Train, capsys: Capture
) -> None:
    """By the resolved configuration of a run in the folder where it lies."""
    config = own_config.rename(own_config.with_name("config.yaml"))
    config.write_text(f"# mine\n{config.read_text(encoding='utf-8')}", encoding="utf-8")
    before = files(own_config.parent)
    for options in ([], ["--resume"], ["--overwrite"]):
        assert train(config, own_config.parent, *options) == 2
        assert "config.yaml: is the file given as --config, which the run would replace" in complaint(capsys)
        assert files(own_config.parent) == before


def test_a_run_without_its_state_is_not_trained_over(
    tmp_path: Path, tiny: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    """Copied without it, or deleted to save space. With --overwrite it is, which says what went."""
    output = tmp_path / "copy"
    shutil.copytree(trained, output, ignore=shutil.ignore_patterns("state*"))
    notes = [output / name for name in ("notes.txt", "checkpoints/500", "tensorboard/mine")]
    for path in notes:
        path.write_text("mine", encoding="utf-8")
    (output / "checkpoints" / "600").mkdir()
    before = files(output)
    for config in (tiny, trained / "config.yaml"):
        for options in ([], ["--resume"]):
            assert train(config, output, *options) == 2
            errors = complaint(capsys)
            assert f"{output}: is not empty, but has no state.safetensors to go on from (found" in errors
            assert "best.safetensors" in errors
            assert files(output) == before
    assert train(tiny, output, "--overwrite", "training.max_updates=1") == 0
    assert (
        f"overwriting {output}: removed best.safetensors, metrics.jsonl, checkpoints/update-00000009.safetensors, "
        "checkpoints/update-00000018.safetensors, checkpoints/update-00000027.safetensors, "
    ) in capsys.readouterr().err
    assert load_model(output).training["updates"] == 1
    assert [path.read_text(encoding="utf-8") for path in notes] == ["mine"] * 3
    assert (output / "checkpoints" / "600").is_dir()
    assert len(list((output / "tensorboard").iterdir())) == 2
    log = (output / "train.log").read_text(encoding="utf-8")
    assert log.startswith((trained / "train.log").read_text(encoding="utf-8"))
    assert log.count(" training corpus: ") == 2  # once for each run


def test_overwriting_waits_until_all_is_there_that_the_new_run_needs(
    tmp_path: Path, own_config: Path, tiny: Path, trained: Path, train: Train, capsys: Capture
) -> None:
    output = tmp_path / "run"
    shutil.copytree(trained, output)
    before = files(output)
    (own_config.parent / "train.de").unlink()
    assert train(own_config, output, "--overwrite") == 2
    assert "train.de: no such file" in complaint(capsys)
    del before["train.log"]
    now = files(output)
    assert {name: now.get(name) for name in before} == before
    assert train(tiny, output, "--overwrite", "model.encoder.hidden_size=1000000") == 2
    assert "not enough memory for this model" in complaint(capsys)
    assert train(tiny, output, "--overwrite", "--init-from", output) == 2
    assert "best.safetensors: --overwrite would remove this model" in complaint(capsys)
    assert train(tiny, output, "--overwrite", "--resume") == 2
    assert "--resume and --overwrite contradict each other" in complaint(capsys)
    now = files(output)
    assert {name: now.get(name) for name in before} == before


@pytest.mark.parametrize(("run", "inside"), [("run", "cache"), ("", "of/data")])
def test_a_failed_start_with_its_cache_in_the_folder_keeps_no_later_one_out(
    run: str, inside: str, tmp_path: Path, tiny: Path, train: Train, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the folder is named absolutely or from the present one."""
    monkeypatch.chdir(tmp_path)
    output = tmp_path / run if run else Path("run")
    cache = f"data.cache_folder={tmp_path / 'run' / inside}"
    assert train(tiny, output, cache, "subwords.size=5") == 2
    assert "needs at least" in complaint(capsys)
    assert (output / inside).is_dir()
    (output / "letter").touch()
    assert train(tiny, output, cache, "training.max_updates=1") == 2
    assert "to go on from (found letter)" in complaint(capsys)
    (output / "letter").unlink()
    assert train(tiny, output, cache, "training.max_updates=1") == 0
