"""What a folder of parts is for: job.json says what is translated and how, joined.json that the outputs are in place.

Facts are what decides about the outputs, by what the user calls it. It knows them as text.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nmt.files import written_atomically
from nmt.jobs.finished import Damaged, digest_of, is_count, read_json
from nmt.jobs.states import State

JOB, JOINED = "job.json", "joined.json"
CHUNK_LINES = "--chunk-lines"

Facts = Mapping[str, str]


class Description(NamedTuple):
    """What is translated; `joined` are the outputs as they were when they were in place, None before."""

    lines: int
    chunk_lines: int
    facts: Facts  # with CHUNK_LINES
    joined: Mapping[str, State] | None = None

    @classmethod
    def of(cls, facts: Facts, lines: int, chunk_lines: int) -> "Description":
        """That of a job which begins."""
        return cls(lines, chunk_lines, {**facts, CHUNK_LINES: str(chunk_lines)})

    @property
    def digest(self) -> str:
        """What names the job."""
        return digest_of({"lines": self.lines, "facts": self.facts})

    def write(self, folder: Path) -> None:
        """Leave it in the folder."""
        there = {"lines": self.lines, "facts": self.facts, "digest": self.digest}
        joined = {} if self.joined is None else {"outputs": self.joined}
        with written_atomically(folder / (JOB if self.joined is None else JOINED)) as file:
            json.dump({**there, **joined}, file, indent=2)


def read_description(folder: Path) -> Description | None:
    """The description in a folder, None where there is none. Raises Damaged when it is not what was written."""
    path = next((folder / name for name in (JOB, JOINED) if (folder / name).exists()), None)
    if path is None:
        return None
    there = read_json(path)
    lines, facts, joined = there.get("lines"), there.get("facts"), there.get("outputs")
    if not is_count(lines) or not isinstance(facts, dict) or not isinstance(joined, dict | None):
        raise Damaged(f"{path}: damaged")
    chunk_lines = facts.get(CHUNK_LINES)
    if not isinstance(chunk_lines, str) or not re.fullmatch("[1-9][0-9]{0,17}", chunk_lines):
        raise Damaged(f"{path}: damaged ({CHUNK_LINES} is no number of lines)")
    if "digest" not in there:
        raise Damaged(f"{path}: damaged, or of an earlier version (it has no checksum)")
    if there["digest"] != digest_of({"lines": lines, "facts": facts}):
        raise Damaged(f"{path}: damaged (it does not fit its checksum)")
    return Description(lines, int(chunk_lines), facts, joined if path.name == JOINED else None)


def occupied(path: Path, changes: list[str], *, resume: bool) -> str:
    """Why nothing else may begin in the folder."""
    if not changes:
        return (
            f"{path}: holds finished parts of this output, whose translation was stopped; go on with --resume, or "
            "delete the folder to begin again"
        )
    asked = "cannot be resumed" if resume else "holds finished parts"
    return (
        f"{path}: {asked}, because it is of another translation; give another --output, or delete the folder to begin "
        f"again. The differences:{listed(changes)}"
    )


def without_records(damage: Damaged) -> str:
    """Why parts are not gone on with that have no records, as those of versions before there were any."""
    return (
        f"{damage}, and its finished parts have no records; finish them with the version that began them, or delete "
        "the folder to begin again"
    )


def differences(there: Facts, here: Facts) -> list[str]:
    """What differs, each in a line."""
    return [
        f"{name}: {there.get(name, 'absent')} there, {here.get(name, 'absent')} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    ]


def listed(changes: list[str]) -> str:
    """Lines below a headline."""
    return "".join(f"\n  {change}" for change in changes)
