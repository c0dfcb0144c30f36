"""The folder of a run: one process at a time, one configuration for good, and the names of its files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from nmt.config import Config, differences, dump_config, parse_config
from nmt.errors import UserError
from nmt.files import written_atomically
from nmt.models.model_file import BEST

CONFIG, STATE, LOCK, LOG, CHECKPOINTS = "config.yaml", "state.safetensors", ".lock", "train.log", "checkpoints"


class RunFolder:
    """An open run folder, locked until `close` or the end of the process, however it ends."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path, config: Config, *, resume: bool) -> "RunFolder":
        """Lock `path`, and make it the folder of `config`; with `resume` it may hold a run of the same configuration.

        Raises UserError when the folder cannot be written, is in use, holds something else, another configuration
        (with the differences), or a run although `resume` was not asked for.
        """
        try:
            _refuse_strangers(path)
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            lock = open(path / LOCK, "a+", encoding="utf-8")  # noqa: SIM115 - held for the life of the run
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: the output folder cannot be written ({error.strerror})"
            ) from error
        try:
            _take(lock, path)
            folder = cls(path, lock)
            folder._settle(config, resume=resume)
        except BaseException:
            lock.close()
            raise
        return folder

    def _settle(self, config: Config, *, resume: bool) -> None:
        if not self.state_path.exists():  # a new folder, or a run that ended before it had anything to lose
            with written_atomically(self.config_path) as file:
                file.write(dump_config(config))
            return
        changes = differences(parse_config(self.config_path.read_text(encoding="utf-8")), config)
        if changes:
            raise UserError(
                f"{self.path}: holds a run of another configuration; give another --output, or remove the folder. "
                "The differences:",
                *changes,
            )
        if not resume:
            raise UserError(
                f"{self.path}: holds a run of this configuration already; continue it with --resume, "
                "give another --output, or remove the folder"
            )

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
    def best_path(self) -> Path:
        return self.path / BEST

    def checkpoint_path(self, update: int) -> Path:
        """The checkpoint of that update."""
        return self.path / CHECKPOINTS / f"update-{update:08d}.safetensors"

    def remove_checkpoints(self, kept: Callable[[int], bool]) -> None:
        """Remove the checkpoints of all updates but those that `kept` accepts, and what a crash left half-written."""
        for path in (self.path / CHECKPOINTS).iterdir():
            number = path.name.removeprefix("update-").removesuffix(".safetensors")
            if path.name.endswith(".partial") or (number.isdecimal() and not kept(int(number))):
                path.unlink()

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()


def _refuse_strangers(path: Path) -> None:
    """Raise UserError when the folder holds files but no run: they are not ours to mix with."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: the output folder cannot be made, because a file of that name exists")
    if path.is_dir() and not (path / CONFIG).exists():
        strangers = sorted(entry.name for entry in path.iterdir() if entry.name not in (LOCK, CHECKPOINTS))
        strangers = [name for name in strangers if not name.startswith(f"{CONFIG}.")]
        if strangers:
            raise UserError(
                f"{path}: is not empty and holds no run (found {strangers[0]}); give an empty or new --output"
            )


def _take(lock: IO[str], path: Path) -> None:
    """Lock the open file; the system releases it when the process ends, even by kill -9."""
    try:
        if os.name == "nt":
            import msvcrt

            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UserError(
            f"{path}: in use by another training; wait for it, stop it, or give another --output"
        ) from error
