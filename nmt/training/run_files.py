"""What lies in the folder of a run: the names of its files, which of them may be removed, and what a new run must keep.

A folder without a state has nothing to lose only if it holds no more than a run leaves that ended before it first saved
its state. Anything else is a model, a record of one, or somebody else's file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nmt.config import dump_config, parse_config
from nmt.errors import UserError, first_of
from nmt.evaluation.measurements import FILE
from nmt.files import UNFINISHED
from nmt.models.model_file import BEST

CONFIG, STATE, LOCK, LOG, CHECKPOINTS = "config.yaml", "state.safetensors", ".lock", "train.log", "checkpoints"
PREVIOUS_STATE = "state.1.safetensors"  # the state before the newest
METRICS, TENSORBOARD, ORIGIN = FILE, "tensorboard", "init_from.safetensors"
EVENTS = re.compile(r"events\.out\.tfevents\.([0-9]{8})\.nmt")  # our own files in TENSORBOARD, in their order
STATES = (STATE, PREVIOUS_STATE)
_CHECKPOINT = re.compile(r"update-([0-9]{8}|[1-9][0-9]{8,14})\.safetensors")


def checkpoint_name(update: int) -> str:
    """The name of the checkpoint of that update."""
    return f"update-{update:08d}.safetensors"


def has_state(path: Path) -> bool:
    """Whether there is something to resume; one of the two states may be missing for a moment."""
    return any((path / name).exists() for name in STATES)


def checkpoints(path: Path) -> Iterator[tuple[int, Path]]:
    """The checkpoints in a run's folder, with their updates: only files named exactly as a run names them."""
    for file in _inside(path / CHECKPOINTS):
        if (match := _CHECKPOINT.fullmatch(file.name)) and _is_own(file):
            yield int(match[1]), file


def removable(path: Path) -> list[Path]:
    """What a run puts in its folder and a new run may remove: states first, but neither configuration nor log."""
    single = [path / name for name in (*STATES, BEST, METRICS, ORIGIN)]
    several = [file for _, file in checkpoints(path)]
    inside = (*_inside(path), *_inside(path / CHECKPOINTS))
    several += [file for file in inside if UNFINISHED.search(file.name) and _is_own(file)]
    return [*(file for file in single if file.is_file() or file.is_symlink()), *several, *_events(path)]


def at_stake(path: Path, *, text: str, cache: Path | None) -> list[str]:
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
        if _is_written_by_a_run(config):
            ours.add(path / CONFIG)
    if config == text.encode():
        ours.add(path / CONFIG)
    inside = [file for folder in (path, path / CHECKPOINTS, path / TENSORBOARD) for file in _inside(folder)]
    return [str(file.relative_to(path)) for file in inside if file not in ours and not UNFINISHED.search(file.name)]


def listed(names: list[str], most: int = 3) -> str:
    """The first of the names, and how many more there are."""
    return ", ".join(first_of(names, most))


def _is_written_by_a_run(config: bytes) -> bool:
    try:
        return dump_config(parse_config(config.decode())).encode() == config
    except (UnicodeDecodeError, UserError):
        return False


def _content(path: Path) -> bytes:
    """The content of a file; empty if there is none. Raises OSError for a file that cannot be read."""
    return path.read_bytes() if path.exists() else b""


def _events(path: Path) -> list[Path]:
    return [file for file in _inside(path / TENSORBOARD) if EVENTS.fullmatch(file.name) and _is_own(file)]


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_own(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
