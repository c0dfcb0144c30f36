"""Who may use a run folder, and what is left in it."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from nmt.config.loading import dump_config, parse_config
from nmt.config.schema import Config
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
    fail(RunFolder.open(tmp_path / "other", config(), resume=False))  # without a log and without a model
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


def test_the_differences_of_another_configuration(tmp_path: Path) -> None:
    path = with_state(tmp_path / "run", config(seed=1))
    for resume in (True, False):
        with pytest.raises(UserError) as raised:
            RunFolder.open(path, config(seed=2, name="other"), resume=resume)
        first, *differences = str(raised.value).splitlines()
        assert first.startswith(f"{path}: holds a run of another configuration")
        assert differences == ["  name: 'run' there, 'other' here", "  seed: 1 there, 2 here"]
    assert parse_config((path / "config.yaml").read_text(encoding="utf-8")).seed == 1


def test_a_start_that_was_killed_before_its_first_state_is_begun_again(tmp_path: Path) -> None:
    """With another configuration too: metrics of training only, the log and events tell nothing that is not lost."""
    with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
        folder.log_path.write_text("started\n", encoding="utf-8")
        folder.metrics_path.write_text('{"step": 4, "split": "train", "loss": 1.5}\n{"step": 8, "sp', encoding="utf-8")
        (folder.path / "tensorboard").mkdir()
        (folder.path / "tensorboard" / "events.out.tfevents.00000003.nmt").touch()
        (folder.path / "checkpoints" / f"update-00000012.safetensors.{'0' * 32}.partial").touch()
    for seed, resume in ((1, False), (2, True)):
        leave(RunFolder.open(tmp_path / "run", config(seed=seed), resume=resume))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("best.safetensors", "model"),
        ("checkpoints/update-00000009.safetensors", "model"),
        ("checkpoints/500", "mine"),
        ("notes.txt", "mine"),
        ("tensorboard/events.out.tfevents.1700000000.host.7.0", "of another program"),
        ("metrics.jsonl", '{"step": 9, "split": "valid", "loss": 1.5, "note": "caf\xe9"}\n'),
        ("config.yaml", "# my comments\nname: run\n"),
    ],
)
@pytest.mark.parametrize("begun", [True, False])
def test_what_is_more_than_a_start_leaves_is_spared(tmp_path: Path, name: str, content: str, begun: bool) -> None:
    path = tmp_path / "run"
    path.mkdir()
    if begun:
        leave(RunFolder.open(path, config(), resume=False))
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text(content, encoding="latin-1")
    before = sorted(path.rglob("*"))
    for resume in (True, False):
        with pytest.raises(UserError, match=f"found {name}.*--overwrite"):
            RunFolder.open(path, config(), resume=resume)
        assert (path / name).read_text(encoding="latin-1") == content
        assert sorted(path.rglob("*")) == before


def test_a_configuration_beside_no_lock_is_spared(tmp_path: Path) -> None:
    """A lone copy of another run's; an equal one may stay."""
    path = tmp_path / "run"
    path.mkdir()
    for name in ("metrics.jsonl", "train.log", "init_from.safetensors"):
        (path / name).touch()
        with pytest.raises(UserError, match=name):
            RunFolder.open(path, config(), resume=False)
        (path / name).unlink()
    (path / "config.yaml").write_text(dump_config(config(seed=5)), encoding="utf-8")
    with pytest.raises(UserError, match=r"found config\.yaml"):
        RunFolder.open(path, config(seed=4), resume=False)
    leave(RunFolder.open(path, config(seed=5), resume=False))


def test_overwriting_removes_what_is_of_a_run(tmp_path: Path) -> None:
    path = with_state(tmp_path / "run", config())
    run = [
        *("state.1.safetensors", "best.safetensors", "metrics.jsonl"),
        *(f"checkpoints/update-{number}.safetensors" for number in ("00000500", "123456789")),
        *("tensorboard/events.out.tfevents.00000003.nmt", "validations/update-00000500.txt"),
        f"checkpoints/update-00000600.safetensors.{'0' * 32}.partial",  # what a kill left
    ]
    mine = [
        *("notes.txt", "state.safetensors.old", "checkpoints/500", "checkpoints/update-500.safetensors"),
        *("checkpoints/update-0000000123456789.safetensors", "checkpoints/update-0٠000012.safetensors"),
        *("tensorboard/events.out.tfevents.1700000000.host.7.0", "checkpoints/600/update-00000001.safetensors"),
        *(f"models.{'0' * 32}.partial/of-a-cache", "validations/500.txt"),
    ]
    (tmp_path / "victim").write_text("mine", encoding="utf-8")
    for name in [*run, *mine, "train.log"]:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("mine", encoding="utf-8")
    (path / "best.safetensors").unlink()
    (path / "best.safetensors").symlink_to(tmp_path / "victim")
    with RunFolder.open(path, config(seed=2), resume=False, overwrite=True) as folder:
        assert (path / "state.safetensors").exists()  # until all is there that the new run needs
        told = folder.overwrite()
    assert told is not None
    for name in ["state.safetensors", *run]:
        assert name in told
    left = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    assert left == {".lock", "config.yaml", "train.log", *mine}
    assert parse_config((path / "config.yaml").read_text(encoding="utf-8")).seed == 2
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "mine"


def test_links_in_a_folder_do_not_lead_out_of_it(tmp_path: Path) -> None:
    """What the process writes as it goes is refused; what appears whole replaces the link."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    path = tmp_path / "run"
    path.mkdir()
    (path / ".lock").symlink_to(victim)
    with pytest.raises(UserError, match=r"\.lock: the output folder cannot be written \(is a link, and links are not"):
        RunFolder.open(path, config(), resume=False, overwrite=True)
    (path / ".lock").unlink()
    (path / "config.yaml").symlink_to(victim)
    with pytest.raises(UserError, match=r"found config\.yaml"):
        RunFolder.open(path, config(), resume=False)
    with RunFolder.open(path, config(), resume=False, overwrite=True) as folder:
        folder.overwrite()
    assert not (path / "config.yaml").is_symlink()
    assert victim.read_text(encoding="utf-8") == "mine"


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (errno.ENOTSUP, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
        with monkeypatch.context() as patch:

            def none(*_: object, number: int = number) -> None:
                raise OSError(number, os.strerror(number))

            patch.setattr(fcntl, "flock", none)
            with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
                (warning,) = folder.warnings
                assert "run: on a file system without locks" in warning
    with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
        assert folder.warnings == []


def test_the_model_that_a_run_starts_from(tmp_path: Path) -> None:
    first, equal, other = (tmp_path / name for name in ("first", "equal", "other"))
    for path, content in ((first, b"weights"), (equal, b"weights"), (other, b"WEIGHTS")):
        path.write_bytes(content)
    path = with_state(tmp_path / "run", config(), origin=first)
    copy = recorded_origin(path)
    assert copy is not None
    assert copy.read_bytes() == b"weights"
    os.utime(other, ns=(copy.stat().st_mtime_ns,) * 2)  # as of the same age and size
    for origin in (first, equal, copy, None):
        leave(RunFolder.open(path, config(), resume=True, origin=origin))
    with pytest.raises(
        UserError, match=f"--init-from {other}: the run in {path} did not start from .* but from {copy}"
    ):
        RunFolder.open(path, config(), resume=True, origin=other)
    scratch = with_state(tmp_path / "scratch", config())
    assert recorded_origin(scratch) is None
    with pytest.raises(UserError, match=f"--init-from {other}: .* but without --init-from; leave"):
        RunFolder.open(scratch, config(), resume=True, origin=other)


def test_checkpoints_are_removed_by_number(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", config(), resume=False) as folder:
        for update in (5, 12, 100_000_000):
            folder.checkpoint_path(update).write_bytes(b"")
        mine = [
            "500",
            "mine.safetensors",
            "update-0000000013.safetensors",
            "update-7.safetensors",
            "update-٠٠٠٠٠٠٠7.safetensors",
        ]
        for name in mine:
            (folder.path / "checkpoints" / name).write_bytes(b"")
        (folder.path / "checkpoints" / "600").mkdir()
        folder.checkpoint_path(77).mkdir()
        folder.checkpoint_path(78).symlink_to(folder.checkpoint_path(12))
        folder.remove_checkpoints({12})
        kept = [*mine, "600", *(f"update-{update:08d}.safetensors" for update in (12, 77, 78))]
        assert names(folder.path / "checkpoints") == sorted(kept)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no such configuration file"),
        (b"", "is empty"),
        (b"name: [", "line 1: "),
        (b"name: \xff", "not valid UTF-8"),
        (b"nmae: run\n", "line 1: nmae: unknown key; nearest: name"),  # as of another version
    ],
)
def test_why_a_configuration_cannot_be_read_is_said(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = with_state(tmp_path / "run", config())
    if content is None:
        (path / "config.yaml").unlink()
    else:
        (path / "config.yaml").write_bytes(content)
    with pytest.raises(UserError, match=rf"(?s)cannot be resumed .*--overwrite.*config\.yaml.*{why}"):
        RunFolder.open(path, config(), resume=True)
