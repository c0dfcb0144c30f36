"""What lies in the folder of a run: the names of its files, which of them may be removed, and what a new run must keep.

A folder without a state has nothing to lose only if it holds no more than a run leaves that ended before it first saved
its state. Anything else is a model, a record of one, or somebody else's file.
"""

import re
from collections.abc import Iterator
from os.path import lexists
from pathlib import Path

from nmt.config import dump_config, parse_config
from nmt.errors import UserError, first_of
from nmt.evaluation.measurements import FILE, measurement
from nmt.models.model_file import BEST

CONFIG, STATE, LOCK, LOG, CHECKPOINTS = "config.yaml", "state.safetensors", ".lock", "train.log", "checkpoints"
PREVIOUS_STATE = "state.1.safetensors"  # the state before the newest
METRICS, TENSORBOARD, ORIGIN = FILE, "tensorboard", "init_from.safetensors"
DAMAGED = f"{METRICS}.damaged"  # lines of METRICS that cannot be read
STATES = (STATE, PREVIOUS_STATE)
FILES = (*STATES, BEST, METRICS, DAMAGED, ORIGIN, CONFIG, LOG, LOCK)
EVENTS = re.compile(r"events\.out\.tfevents\.[0-9]+\.[0-9]{6}\..+\.[0-9]+")  # other programs' have no microseconds
_CHECKPOINT = re.compile(r"update-([0-9]{8,15})\.safetensors")
# Ours until they are whole; versions before this one put the number of a process in the place of what is random.
_UNFINISHED = re.compile(
    r"(config\.yaml|metrics\.jsonl|(state|state\.1|best|init_from|update-[0-9]{8,15})\.safetensors)"
    r"\.([0-9a-f]{32}|[0-9]+)\.partial"
)
_LONGEST = 1 << 20  # bytes of a configuration that is looked at


def checkpoint_name(update: int) -> str:
    """The name of the checkpoint of that update."""
    return f"update-{update:08d}.safetensors"


def checkpoints(path: Path) -> Iterator[tuple[int, Path]]:
    """The checkpoints in a run's folder, with their updates: only files named exactly as a run names them."""
    for file in _inside(path / CHECKPOINTS):
        match = _CHECKPOINT.fullmatch(file.name)
        if match and _is_own(file) and file.name == checkpoint_name(int(match[1])):
            yield int(match[1]), file


def unfinished(path: Path) -> list[Path]:
    """Unfinished files in a run's folder, from processes that were killed while writing."""
    folders = (path, path / CHECKPOINTS)
    return [file for folder in folders for file in _inside(folder) if _UNFINISHED.fullmatch(file.name) if _is_own(file)]


def removable(path: Path) -> list[Path]:
    """What a run puts in its folder and a new run may remove: states first, but neither configuration nor log."""
    single = [path / name for name in (*STATES, BEST, METRICS, DAMAGED, ORIGIN)]
    several = [file for _, file in checkpoints(path)]
    events = [file for file in _inside(path / TENSORBOARD) if EVENTS.fullmatch(file.name) and _is_own(file)]
    return [*(file for file in single if file.is_file() or file.is_symlink()), *several, *events]


def others(path: Path) -> list[str]:
    """The names of files that no run put there."""
    ours = {file.relative_to(path).as_posix() for file in (*removable(path), *unfinished(path))}
    ours |= {CONFIG, LOG, LOCK, CHECKPOINTS, TENSORBOARD}
    folders = [path, path / CHECKPOINTS, path / TENSORBOARD]
    names = (file.relative_to(path).as_posix() for folder in folders for file in _inside(folder))
    return [name for name in names if name not in ours]


def at_stake(path: Path, *, begun: bool, text: str, cache: Path | None) -> list[str]:
    """The names of files in a folder without a state that a new run must keep.

    `begun`: whether a run was started here before, which left a lock. `text` is the configuration to be written.
    `cache`: a folder, perhaps inside this one, that an earlier start may have filled.
    """
    spared = [*_inside(path), *_inside(path / CHECKPOINTS), *_inside(path / TENSORBOARD)]
    of_a_start = {path / LOCK, path / CHECKPOINTS, path / TENSORBOARD, *unfinished(path)}
    if cache is not None:
        beside = {cache.absolute(), *cache.absolute().parents}
        of_a_start |= {file for file in spared if file.absolute() in beside}
    if begun:
        of_a_start |= {path / LOG, path / ORIGIN}
        of_a_start |= {file for file in _inside(path / TENSORBOARD) if EVENTS.fullmatch(file.name)}
        if _is_of_training_only(path / METRICS):
            of_a_start.add(path / METRICS)
    if _is_no_loss(path / CONFIG, text, begun=begun):
        of_a_start.add(path / CONFIG)
    return [file.relative_to(path).as_posix() for file in spared if file not in of_a_start]


def listed(names: list[str], most: int = 3) -> str:
    """The first of the names, and how many more there are."""
    return ", ".join(first_of(names, most))


def check_kinds(path: Path) -> None:
    """Raise UserError where a folder stands in the place of a file, or a file in the place of a folder."""
    if lexists(path) and not path.is_dir():
        raise UserError(f"{path}: the output folder cannot be made, because a file of that name exists")
    for name in (CHECKPOINTS, TENSORBOARD):
        if lexists(path / name) and not (path / name).is_dir():
            raise UserError(f"{path / name}: is not a folder, but has the name of a folder of the run; rename it")
    models = [file for file in _inside(path / CHECKPOINTS) if _CHECKPOINT.fullmatch(file.name)]
    for file in (*(path / name for name in FILES), *models):
        if lexists(file) and not file.is_file():
            what = "a folder" if file.is_dir() else "not a regular file"
            raise UserError(f"{file}: is {what}, but has the name of a file of the run; rename it")


def _is_of_training_only(path: Path) -> bool:
    """Whether these are records of a run that has not validated; the last one may be incomplete.

    A run saves its state before it validates.
    """
    try:
        with open(path, "rb") as file:
            lines = iter(lambda: file.readline(_LONGEST), b"")
            records = ((line, measurement(line)) for line in lines)
            return all(record["split"] == "train" if record else not line.endswith(b"\n") for line, record in records)
    except OSError:
        return False


def _is_no_loss(path: Path, text: str, *, begun: bool) -> bool:
    """Whether a configuration may be replaced by `text`: it is the same, or an earlier start wrote it."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            there = file.read(_LONGEST)
        return there == text or (begun and dump_config(parse_config(there)) == there)
    except (OSError, UnicodeDecodeError, UserError):
        return False


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_own(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
