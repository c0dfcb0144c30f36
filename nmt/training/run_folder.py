"""The folder of a run: used by one process at a time, for one configuration.

If no run in it has saved a state yet, the folder may be used for another configuration. Everything else in it is kept,
unless an earlier run is to be overwritten: a folder without a state has nothing to lose only if it holds no more than a
run leaves that ended before it first saved its state. A fine-tuned run keeps a copy of the model it started from, so
that it can be resumed whatever becomes of that model.
"""

import filecmp
import io
import re
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

from nmt.config.loading import dump_config, parse_config, read_config
from nmt.config.resuming import continuation, differences, with_length
from nmt.config.schema import Config
from nmt.errors import UserError, collected, first_of
from nmt.evaluation.measurements import FILE
from nmt.files import UNFINISHED, copy_atomically, locked, open_refusing_links, written_atomically
from nmt.models.model_file import BEST
from nmt.processes import is_restarted

CONFIG, STATE, LOCK, LOG, CHECKPOINTS = "config.yaml", "state.safetensors", ".lock", "train.log", "checkpoints"
PREVIOUS_STATE = "state.1.safetensors"  # the state before the newest
METRICS, TENSORBOARD, ORIGIN = FILE, "tensorboard", "init_from.safetensors"
VALIDATIONS = "validations"  # the folder of what each validation translated
EVENTS = re.compile(r"events\.out\.tfevents\.([0-9]{8})\.nmt")  # our own files in TENSORBOARD, in their order
STATES = (STATE, PREVIOUS_STATE)
_ENDINGS = {CHECKPOINTS: ".safetensors", VALIDATIONS: ".txt"}  # of the files in these folders, one for an update


def begun_with(folder: Path) -> Config | None:
    """The configuration of the run in `folder`; None if there is none that can be read."""
    try:
        return parse_config((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, UserError):  # reported when the run is resumed, if there is one
        return None


def recorded_origin(path: Path) -> Path | None:
    """The copy of the model that the run in the folder `path` started from; None when there is none."""
    copy = path / ORIGIN
    return copy if copy.is_file() else None


class _Start(NamedTuple):
    """What a new run begins with."""

    config: Config
    text: str  # of the configuration
    config_file: Path | None  # the file that it was read from
    origin: Path | None  # the model that it starts from


class RunFolder:
    """An open run folder, locked inside its `with` block, or until the process ends, however it ends.

    If the block fails before training begins, a folder that was created for it is removed.
    """

    def __init__(self, path: Path, lock: IO[str], *, is_new: bool) -> None:
        self.path = path
        self.config_path, self.log_path, self.metrics_path = path / CONFIG, path / LOG, path / METRICS
        self.state_path, self.previous_state_path = path / STATE, path / PREVIOUS_STATE
        self.best_path = path / BEST
        self.origin_path = path / ORIGIN  # a copy of the model that the run started from, where it is a fine-tuning
        self.config: Config | None = None  # of a run that is resumed: its own paths, the length asked for now
        self.warnings: list[str] = []  # for the log
        self._lock = lock
        self._is_new = is_new
        self._instead: _Start | None = None  # what `overwrite` begins

    @classmethod
    def open(
        cls,
        path: Path,
        config: Config,
        *,
        resume: bool,
        overwrite: bool = False,
        config_file: Path | None = None,
        origin: Path | None = None,
    ) -> "RunFolder":
        """Lock `path`, and make it the folder of `config`; with `resume` it may hold a run of the same configuration.

        With `overwrite` it may hold anything, and the method of that name is to be called. `config_file`, which
        `config` was read from, is never replaced by another text. `origin` is the model file that the run starts
        from, which a run that is resumed must have started from too.
        Raises UserError when the folder cannot be written, is in use, holds something else, another configuration
        (with the differences), or a run although neither `resume` nor `overwrite` was asked for.
        """
        start = _Start(config, dump_config(config), config_file, origin)
        is_new = not path.exists()
        try:
            if not has_state(path):
                _check_spared(path, start, overwrite=overwrite)  # before anything is made
            for made in (path, path / CHECKPOINTS):
                made.mkdir(parents=True, exist_ok=True)
            lock = open_refusing_links(path / LOCK, "a")
            folder = cls(path, lock, is_new=is_new)
            try:
                folder._take_lock()
                folder._decide(start, resume=resume, overwrite=overwrite)
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
        return cls(path, io.StringIO(), is_new=False)

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

    @property
    def replaces(self) -> bool:
        """Whether `overwrite` is going to remove a former run."""
        return self._instead is not None

    def overwrite(self) -> str | None:
        """Remove what a former run left, where that was asked for, and begin the new one; what went, in one line.

        To be called once everything that the new run needs is known to exist. Files of no run stay, as does the log.
        """
        if self._instead is None:
            return None
        gone = removable(self.path)
        for path in gone:
            path.unlink()
        self._begin(self._instead)
        names = first_of([path.relative_to(self.path).as_posix() for path in gone], 10)
        return f"overwriting {self.path}: removed {', '.join(names) or 'nothing'}"

    def _take_lock(self) -> None:
        """Lock the folder. Raises UserError when another process has."""
        free = locked(self._lock.fileno())
        if free is None:
            self.warnings.append(
                f"{self.path}: on a file system without locks; see to it that no second training uses this folder"
            )
        elif not free:
            raise UserError(f"{self.path}: in use by another training; wait for it, stop it, or give another --output")

    def _decide(self, start: _Start, *, resume: bool, overwrite: bool) -> None:
        """Begin a run, or resume or refuse the one that is there; one that is to be overwritten is not touched yet."""
        goes_on = overwrite and is_restarted() and has_state(self.path)  # the run that these processes began anew
        if overwrite and not goes_on:
            _check_spared(self.path, start, overwrite=True)
            self._instead = start
        elif has_state(self.path):
            self._check_origin(start.origin)
            self._check_same(start, resume=resume or goes_on)
        else:
            self._begin(start)

    def _begin(self, start: _Start) -> None:
        if start.origin is None:
            self.origin_path.unlink(missing_ok=True)
        elif not self._started_from(start.origin):
            copy_atomically(start.origin, self.origin_path)
        with written_atomically(self.config_path) as file:  # last: it is what makes the folder a run
            file.write(start.text)

    def _check_same(self, start: _Start, *, resume: bool) -> None:
        """Raise UserError unless the run is to be resumed, and is of the same configuration, apart from paths."""
        if (saved := begun_with(self.path)) is None:
            problems: list[str] = []
            with collected(problems):
                read_config(self.config_path)  # says why not
            ways = "put it back or mend it, give another --output, or --overwrite to remove that run"
            raise UserError(f"{self.path}: the run cannot be resumed without its configuration; {ways}", *problems)
        moved, _, obstacles = continuation(saved, start.config)
        changes = "".join(f"\n  {change}" for change in obstacles or differences(saved, start.config).values())
        if obstacles:
            is_other = start.origin is None and any(line.startswith(("model.", "subwords.")) for line in obstacles)
            gone = f", put {self.origin_path} back if it started from that model" if is_other else ""
            raise UserError(
                f"{self.path}: holds a run of another configuration; undo the changes to resume it{gone}, give another "
                f"--output, or --overwrite to remove that run. The differences:{changes}"
            )
        if not resume:
            apart = f". It may be continued with these differences:{changes}" if changes else ""
            raise UserError(
                f"{self.path}: holds a run of this configuration already; continue it with --resume, give another "
                f"--output, or --overwrite to remove that run{apart}"
            )
        self.config = with_length(saved, start.config)
        if read := [key for key in moved if not key.startswith("model.embeddings.")]:  # which the model has learned
            files = f"files at other paths, which must be the same as before: {', '.join(read)}"
            self.warnings.append(f"{self.path}: resumed with {files}")

    def _check_origin(self, origin: Path | None) -> None:
        """Raise UserError unless the run started from `origin`; None: any origin will do."""
        if origin is None or self._started_from(origin):
            return
        recorded = f"from {self.origin_path}" if self.origin_path.exists() else "without --init-from"
        raise UserError(
            f"--init-from {origin}: the run in {self.path} did not start from this model but {recorded}; "
            "leave --init-from out to resume it, or give another --output"
        )

    def _started_from(self, origin: Path) -> bool:
        return self.origin_path.exists() and filecmp.cmp(origin, self.origin_path, shallow=False)

    def checkpoint_path(self, update: int) -> Path:
        """The checkpoint of that update."""
        return path_of_update(self.path, CHECKPOINTS, update)

    def remove_checkpoints(self, kept: Set[int]) -> None:
        """Remove the checkpoints of all updates but those `kept`; other files stay."""
        for update, path in files_of_updates(self.path, CHECKPOINTS):
            if update not in kept:
                path.unlink()


def _check_spared(path: Path, start: _Start, *, overwrite: bool) -> None:
    """Raise UserError when beginning a run in `path` would replace something that must be kept."""
    config = path / CONFIG
    is_given = start.config_file is not None and config.exists() and config.samefile(start.config_file)
    if is_given and config.read_bytes() != start.text.encode():
        raise UserError(
            f"{config}: is the file given as --config, which the run would replace by the same configuration "
            "with all its defaults; give another --output, or move the file"
        )
    if overwrite:
        if start.origin is not None and any(file.samefile(start.origin) for file in removable(path)):
            raise UserError(f"--init-from {start.origin}: --overwrite would remove this model; give another --output")
        return
    if names := _at_stake(path, text=start.text, cache=start.config.data.cache_folder):
        found = ", ".join(first_of(names, 3))
        raise UserError(
            f"{path}: is not empty, but has no {STATE} to go on from (found {found}); give another --output, put "
            f"{STATE} back and give --resume, or give --overwrite, which removes what a run wrote and nothing else"
        )


# ----------------------------------------------------------------------------------------------- what lies in a folder


def has_state(path: Path) -> bool:
    """Whether there is something to resume; one of the two states may be missing for a moment."""
    return any((path / name).exists() for name in STATES)


def files_of_updates(path: Path, kind: str) -> Iterator[tuple[int, Path]]:
    """The CHECKPOINTS in a run's folder, or the VALIDATIONS, which have what these translated, with their updates: only
    files named exactly as a run names them."""
    for file in _inside(path / kind):
        match = re.fullmatch(rf"update-([0-9]{{8}}|[1-9][0-9]{{8,14}}){re.escape(_ENDINGS[kind])}", file.name)
        if match and _is_own(file):
            yield int(match[1]), file


def path_of_update(path: Path, kind: str, update: int) -> Path:
    """The file of that kind of that update."""
    return path / kind / f"update-{update:08d}{_ENDINGS[kind]}"


def removable(path: Path) -> list[Path]:
    """What a run puts in its folder and a new run may remove: states first, but neither configuration nor log."""
    single = [path / name for name in (*STATES, BEST, METRICS, ORIGIN)]
    several = [file for kind in _ENDINGS for _, file in files_of_updates(path, kind)]
    inside = (*_inside(path), *_inside(path / CHECKPOINTS), *_inside(path / VALIDATIONS))
    several += [file for file in inside if UNFINISHED.search(file.name) and _is_own(file)]
    return [*(file for file in single if file.is_file() or file.is_symlink()), *several, *_events(path)]


def _at_stake(path: Path, *, text: str, cache: Path | None) -> list[str]:
    """The names of files in a folder without a state that a new run must keep.

    `text` is the configuration to be written; `cache` a folder, perhaps inside this one, that an earlier start may have
    filled. An earlier start has left a lock. Raises OSError for a file that cannot be read, and so may be anything.
    """
    ours = {path / LOCK, path / CHECKPOINTS, path / TENSORBOARD}
    if cache is not None:
        beside = {cache.absolute(), *cache.absolute().parents}
        ours |= {file for file in _inside(path) if file.absolute() in beside}
    config = _content(path / CONFIG)
    if (path / LOCK).exists():
        ours |= {path / LOG, path / ORIGIN, *_events(path)}
        if b'"valid"' not in _content(path / METRICS):  # a run saves its state before it validates
            ours.add(path / METRICS)
        if (saved := begun_with(path)) is not None and dump_config(saved).encode() == config:
            ours.add(path / CONFIG)
    if config == text.encode():
        ours.add(path / CONFIG)
    inside = [file for folder in (path, path / CHECKPOINTS, path / TENSORBOARD) for file in _inside(folder)]
    return [str(file.relative_to(path)) for file in inside if file not in ours and not UNFINISHED.search(file.name)]


def _content(path: Path) -> bytes:
    """The content of a file; empty if there is none. Raises OSError for a file that cannot be read."""
    return path.read_bytes() if path.exists() else b""


def _events(path: Path) -> list[Path]:
    return [file for file in _inside(path / TENSORBOARD) if EVENTS.fullmatch(file.name) and _is_own(file)]


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_own(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
