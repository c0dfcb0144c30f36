"""In what state files are: whether one is still what it was, and what a process that was killed left beside it."""

import glob
from collections.abc import Mapping
from pathlib import Path

from nmt.cli.options import is_device

State = list[str | int]  # a file's name without links, its bytes, and nanoseconds at which it was changed last


def states(files: Mapping[str, str]) -> dict[str, State]:
    """The states of files, by what the caller calls them; of one that is not there only the name."""
    return {key: _state(Path(name)) for key, name in files.items()}


def _state(path: Path) -> State:
    whole = path.resolve()
    try:
        status = whole.stat()
    except OSError:
        return [str(whole)]
    return [str(whole), status.st_size, status.st_mtime_ns]


def remove_unfinished(output: Path) -> None:
    """Remove what a process left beside an output that was killed while it wrote it."""
    if is_device(output):
        return
    whole = output.resolve()
    for path in whole.parent.glob(f"{glob.escape(whole.name)}.*.partial"):
        if path.name.removeprefix(f"{whole.name}.").removesuffix(".partial").isdecimal():
            path.unlink(missing_ok=True)
