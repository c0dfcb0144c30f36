"""Who may use a run folder, and what is left in it."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config import Config, parse_config
from nmt.errors import UserError
from nmt.training.run_folder import RunFolder, recorded_origin


def config(**keys: Any) -> Config:
    pair = {"source": "/a", "target": "/b"}
    data = {
        "source_language": "en",
        "target_language": "de",
        "train": [pair],
        "valid": {"source": "/c", "target": "/d"},
    }
    return Config.model_validate({"name": "run", "data": data, **keys})


def with_state(path: Path, settings: Config, origin: Path | None = None) -> Path:
    """A folder whose run has begun."""
    with RunFolder.open(path, settings, resume=False, origin=origin) as folder:
        folder.state_path.write_bytes(b"state")
    return path


def fail(folder: RunFolder) -> None:
    """Leave the folder's block by an exception."""
    with pytest.raises(ZeroDivisionError), folder:
        raise ZeroDivisionError


def leave(folder: RunFolder) -> None:
    with folder:
        pass


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_a_new_folder(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "runs" / "one", config(), resume=False) as folder:
        assert parse_config(folder.config_path.read_text(encoding="utf-8")) == config()
        assert names(folder.path) == [".lock", "checkpoints", "config.yaml"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        RunFolder.open(tmp_path / "run", config(), resume=False),
        pytest.raises(UserError, match="run: in use by another training"),
    ):
        RunFolder.open(tmp_path / "run", config(), resume=True)
    leave(RunFolder.open(tmp_path / "run", config(), resume=True))


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    origin = tmp_path / "model"
    origin.write_bytes(b"weights")
    folder = RunFolder.open(tmp_path / "run", config(), resume=False, origin=origin)
    folder.log_path.write_text("started\n", encoding="utf-8")
    fail(folder)
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("file", ["metrics.jsonl", "mine.txt"])
def test_a_failure_removes_nothing_but_what_it_made(tmp_path: Path, file: str) -> None:
    """A run that has begun stays as it is, and a file that somebody has put there does."""
    folder = RunFolder.open(tmp_path / "run", config(), resume=False)
    (folder.path / file).write_text("content", encoding="utf-8")
    fail(folder)
    assert (tmp_path / "run" / file).read_text(encoding="utf-8") == "content"


def test_a_folder_without_a_state_is_used_again(tmp_path: Path) -> None:
    """With another configuration, with --resume or without, and also after a failure: it has nothing to lose."""
    for seed, resume in ((1, False), (2, False), (3, True)):
        with RunFolder.open(tmp_path / "run", config(seed=seed), resume=resume) as folder:
            assert parse_config(folder.config_path.read_text(encoding="utf-8")).seed == seed
    fail(RunFolder.open(tmp_path / "run", config(), resume=True))
    assert names(tmp_path / "run") == [".lock", "checkpoints", "config.yaml"]  # it was not made for this start


def test_a_run_is_resumed_by_its_configuration_only(tmp_path: Path) -> None:
    path = with_state(tmp_path / "run", config(seed=1))
    leave(RunFolder.open(path, config(seed=1), resume=True))
    with pytest.raises(UserError, match="holds a run of this configuration already; continue it with --resume"):
        RunFolder.open(path, config(seed=1), resume=False)
    for resume in (True, False):
        with pytest.raises(UserError, match=r"another configuration(.|\n)*The differences:\n  seed: 1 there, 2 here$"):
            RunFolder.open(path, config(seed=2), resume=resume)
    assert parse_config((path / "config.yaml").read_text(encoding="utf-8")).seed == 1


def test_strangers_are_left_alone(tmp_path: Path) -> None:
    for name in ("thesis.tex", "thesis.partial"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        (folder / name).write_text("mine", encoding="utf-8")
        with pytest.raises(UserError, match=f"is not empty and holds no run \\(found {name}\\)"):
            RunFolder.open(folder, config(), resume=True)
        assert names(folder) == [name]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    path = with_state(tmp_path / "run", config())
    left = [
        *(path / f"{name}.77.partial" for name in ("config.yaml", "state.safetensors", "best.safetensors")),
        path / "checkpoints" / "update-00000012.safetensors.77.partial",
    ]
    for file in [*left, path / "notes.partial"]:
        file.write_bytes(b"half")
    with RunFolder.open(path, config(), resume=True):
        assert not any(file.exists() for file in left)
    assert (path / "notes.partial").exists()


def test_a_process_killed_before_the_configuration_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for name in (".lock", "config.yaml.77.partial", "init_from.safetensors", "init_from.safetensors.77.partial"):
        (folder / name).write_bytes(b"")
    with RunFolder.open(folder, config(), resume=False):
        assert names(folder) == [".lock", "checkpoints", "config.yaml"]


def test_the_model_that_a_run_starts_from(tmp_path: Path) -> None:
    first, equal, other = (tmp_path / name for name in ("first", "equal", "other"))
    for path, content in ((first, b"weights"), (equal, b"weights"), (other, b"WEIGHTS")):
        path.write_bytes(content)
    path = with_state(tmp_path / "run", config(), origin=first)
    copy = recorded_origin(path)
    assert copy is not None
    assert copy.read_bytes() == b"weights"
    for origin in (first, equal, copy, None):
        leave(RunFolder.open(path, config(), resume=True, origin=origin))
    with pytest.raises(
        UserError, match=f"--init-from {other}: the run in {path} did not start from .* but from {copy}"
    ):
        RunFolder.open(path, config(), resume=True, origin=other)
    scratch = with_state(tmp_path / "scratch", config())
    assert recorded_origin(scratch) is None
    with pytest.raises(UserError, match=f"--init-from {other}: .* but without --init-from"):
        RunFolder.open(scratch, config(), resume=True, origin=other)


def test_a_start_from_scratch_forgets_the_model_of_an_earlier_start(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"weights")
    with RunFolder.open(tmp_path / "run", config(), resume=False, origin=tmp_path / "model") as folder:
        assert folder.origin_path.exists()
    with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
        assert not folder.origin_path.exists()


def test_checkpoints_are_removed_by_number(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
        for update in (5, 12, 100_000_000):
            folder.checkpoint_path(update).write_bytes(b"")
        (folder.path / "checkpoints" / "mine.safetensors").write_bytes(b"")
        folder.remove_checkpoints(lambda update: update == 12)
        assert names(folder.path / "checkpoints") == ["mine.safetensors", "update-00000012.safetensors"]


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    path = with_state(tmp_path / "run", config())
    for content in (b"", b"name: [", b"name: \xff", b"nmae: run\n"):
        (path / "config.yaml").write_bytes(content)
        with pytest.raises(UserError, match=r"config\.yaml: damaged \("):
            RunFolder.open(path, config(), resume=True)
