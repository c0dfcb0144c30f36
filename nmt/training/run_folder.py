"""The folder of a run: one process at a time, one configuration for good, and the names of its files.

A folder without a saved state has nothing to lose and may be started anew with any configuration. A fine-tuned run
keeps a copy of the model it started from, so that it can be resumed whatever becomes of that model.
"""

import fcntl
import filecmp
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from nmt.config import Config, differences, dump_config, parse_config
from nmt.errors import UserError
from nmt.files import first_stranger, written_atomically
from nmt.models.model_file import BEST

CONFIG, STATE, LOCK, LOG, CHECKPOINTS = "config.yaml", "state.safetensors", ".lock", "train.log", "checkpoints"
PREVIOUS_STATE = "state.1.safetensors"  # the state before the newest
METRICS, TENSORBOARD, ORIGIN = "metrics.jsonl", "tensorboard", "init_from.safetensors"

# Ours until they are whole; versions before this one put the number of a process in the place of what is random.
_UNFINISHED = re.compile(
    r"(config\.yaml|(state|state\.1|best|init_from|update-[0-9]{8,})\.safetensors)\.([0-9a-f]{32}|[0-9]+)\.partial"
)


class RunFolder:
    """An open run folder, locked inside its `with` block, or until the process ends, however it ends.

    A block that fails before training began removes the folder again, if it was made for it.
    """

    def __init__(self, path: Path, lock: IO[str], *, is_new: bool) -> None:
        self.path = path
        self._lock = lock
        self._is_new = is_new

    @classmethod
    def open(
        cls, path: Path, config: Config, *, resume: bool, origin: Path | None = None, job: str | None = None
    ) -> "RunFolder":
        """Lock `path`, and make it the folder of `config`; with `resume` it may hold a run of the same configuration.

        `origin` is the model file that the run starts from, which a run that is resumed must have started from too.
        `job` names what started this process, perhaps not for the first time: the run that it began, it may resume.
        Raises UserError when the folder cannot be written, is in use, holds something else, another configuration
        (with the differences), or a run although `resume` was not asked for.
        """
        try:
            _refuse_strangers(path)
            is_new = not path.exists()
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            lock = open(path / LOCK, "a+", encoding="utf-8")  # noqa: SIM115 - held for the life of the run
            try:
                _take(lock, path)
                folder = cls(path, lock, is_new=is_new)
                lock.seek(0)
                folder._settle(config, resume=resume or (job is not None and lock.read() == job), origin=origin)
                lock.truncate(0)
                lock.write(job or "")
                lock.flush()
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: the output folder cannot be written ({error.strerror or error})"
            ) from error
        return folder

    @classmethod
    def follow(cls, path: Path) -> "RunFolder":
        """The folder that another process of this training has opened; nothing in it is checked or written."""
        return cls(path, open(os.devnull, encoding="utf-8"), is_new=False)

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._is_new and not self.metrics_path.exists():
            with suppress(OSError):
                for name in (CONFIG, LOG, ORIGIN, LOCK):
                    (self.path / name).unlink(missing_ok=True)
                (self.path / CHECKPOINTS).rmdir()
                self.path.rmdir()
        self._lock.close()

    def _settle(self, config: Config, *, resume: bool, origin: Path | None) -> None:
        self._remove_unfinished()
        if not self.state_path.exists():
            self._keep_origin(origin)  # before the configuration, which is what makes the folder a run
            with written_atomically(self.config_path) as file:
                file.write(dump_config(config))
            return
        self._check_origin(origin)
        changes = differences(self._saved_config(), config)
        if changes:
            shown = "".join(f"\n  {change}" for change in changes)
            raise UserError(
                f"{self.path}: holds a run of another configuration; give another --output, or remove the folder. "
                f"The differences:{shown}"
            )
        if not resume:
            raise UserError(
                f"{self.path}: holds a run of this configuration already; continue it with --resume, "
                "give another --output, or remove the folder"
            )

    def _remove_unfinished(self) -> None:
        """Remove what `written_atomically` could not finish because its process was killed."""
        for folder in (self.path, self.path / CHECKPOINTS):
            for path in folder.iterdir():
                if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                    path.unlink()

    def _saved_config(self) -> Config:
        try:
            return parse_config(self.config_path.read_text(encoding="utf-8"))
        except (UserError, UnicodeDecodeError) as error:
            raise UserError(f"{self.config_path}: damaged ({error}); give another --output") from error

    def _keep_origin(self, origin: Path | None) -> None:
        """Make the copy of the model that the run starts from."""
        if origin is None:
            self.origin_path.unlink(missing_ok=True)
        elif not self._started_from(origin):
            with open(origin, "rb") as model, written_atomically(self.origin_path, "wb") as copy:
                shutil.copyfileobj(model, copy)

    def _check_origin(self, origin: Path | None) -> None:
        """Raise UserError unless a run that has begun started from `origin`; None: nothing is claimed about it."""
        if origin is None or self._started_from(origin):
            return
        recorded = f"from {self.origin_path}" if self.origin_path.exists() else "without --init-from"
        raise UserError(
            f"--init-from {origin}: the run in {self.path} did not start from this model but {recorded}; "
            "leave --init-from out to resume it, or give another --output"
        )

    def _started_from(self, origin: Path) -> bool:
        return self.origin_path.exists() and filecmp.cmp(origin, self.origin_path, shallow=False)

    @property
    def config_path(self) -> Path:
        return self.path / CONFIG

    @property
    def state_path(self) -> Path:
        return self.path / STATE

    @property
    def log_path(self) -> Path:
        return self.path / LOG

    @property
    def metrics_path(self) -> Path:
        return self.path / METRICS

    @property
    def best_path(self) -> Path:
        return self.path / BEST

    @property
    def origin_path(self) -> Path:
        """A copy of the model that the run started from, where it is a fine-tuning."""
        return self.path / ORIGIN

    def checkpoint_path(self, update: int) -> Path:
        """The checkpoint of that update."""
        return self.path / CHECKPOINTS / f"update-{update:08d}.safetensors"

    def remove_checkpoints(self, kept: Callable[[int], bool]) -> None:
        """Remove the checkpoints of all updates but those that `kept` accepts."""
        for path in (self.path / CHECKPOINTS).iterdir():
            number = path.name.removeprefix("update-").removesuffix(".safetensors")
            if number.isdecimal() and not kept(int(number)):
                path.unlink()


def recorded_origin(path: Path) -> Path | None:
    """The copy of the model that the run in the folder `path` started from; None when there is none."""
    copy = path / ORIGIN
    return copy if copy.is_file() else None


def _refuse_strangers(path: Path) -> None:
    """Raise UserError when the folder holds files but no run: they are not ours to mix with."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: the output folder cannot be made, because a file of that name exists")
    if path.is_dir() and not (path / CONFIG).exists():
        # Ours is what a process leaves that was killed before it wrote the configuration.
        stranger = first_stranger(path, LOCK, CHECKPOINTS, ORIGIN, f"{ORIGIN}.*.partial", f"{CONFIG}.*.partial")
        if stranger is not None:
            raise UserError(f"{path}: is not empty and holds no run (found {stranger}); give an empty or new --output")


def _take(lock: IO[str], path: Path) -> None:
    """Lock the open file; the system releases it when the process ends, even by kill -9."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UserError(
            f"{path}: in use by another training; wait for it, stop it, or give another --output"
        ) from error
