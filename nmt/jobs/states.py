"""In what state files are: whether one is still what it was."""

from collections.abc import Mapping
from pathlib import Path

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
