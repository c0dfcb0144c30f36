"""What a trial comes to: the same bytes in the end, one clear message, or a fault of ours."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.torture.commands import HANGING, Ended, call
from tests.torture.scene import JOBS, Scene

SAME, TOLD, LOST, SILENT, SKIPPED = "same", "told", "lost", "silent", "skipped"
TITLES = {
    SAME: "same bytes in the end",
    TOLD: "one clear message, older state used",
    LOST: "lost",
    SILENT: "silent",
}
_TRACEBACK = "Traceback (most recent call last)"
_WARNS = re.compile(
    r"damaged|missing|is not there|no longer|changed|cannot|could not|instead|anew|again|left out|lost|warning|differ"
    r"|shorter|does not|not what|not those|not the",
    re.IGNORECASE,
)


class Outcome(NamedTuple):
    """A key of TITLES or SKIPPED, and why."""

    kind: str
    why: str = ""


def mistake(ended: Ended) -> str:
    """What is wrong with how a command tells of a mistake; "" where it is one message, and exit code 2."""
    if ended.code == HANGING:
        return "does not end"
    if _TRACEBACK in ended.errors:
        return f"a traceback: {last_line(ended)}"
    if ended.code != 2:
        return f"exit code {ended.code}: {last_line(ended)}"
    headlines = re.findall(r"^nmt-\w+: (?:error:|\d+ problems:)", ended.errors, re.MULTILINE)
    return "" if len(headlines) == 1 else f"{len(headlines)} messages: {ended.errors[-500:]}"


def last_line(ended: Ended) -> str:
    """The last line on standard error."""
    return next(reversed(ended.errors.strip().splitlines()), "nothing is said")


def unexpected(ended: Ended, codes: Sequence[int]) -> str:
    """What is wrong with how a command ended that was struck; "" where its exit code is among `codes`."""
    if ended.code == HANGING or _TRACEBACK in ended.errors or ended.code not in codes:
        return mistake(ended._replace(code=ended.code if ended.code != 2 else -2)) or f"exit code {ended.code}"
    return mistake(ended) if ended.code == 2 else ""


def says(ended: Ended, names: Sequence[str]) -> bool:
    """Whether a line that a person reads names one of the files and tells that something is wrong."""
    return any(_WARNS.search(line) and any(name in line for name in names) for line in ended.errors.splitlines())


def finished(scene: Scene, job: str, folder: Path, ended: Ended) -> Outcome:
    """The outcome of a job that went on after a fault, after which everything must be as if there had been none."""
    if ended.code != 0 or _TRACEBACK in ended.errors:
        return Outcome(LOST, f"does not go on: {mistake(ended) or last_line(ended)}")
    if differences := scene.differences(job, folder):
        return Outcome(LOST, f"ends otherwise: {', '.join(differences)}")
    if left := scene.leftovers(job, folder):
        return Outcome(LOST, f"leaves behind: {', '.join(left)}")
    return Outcome(SAME)


def resumed(scene: Scene, job: str, folder: Path) -> Outcome:
    """Go on with a job, and judge."""
    return finished(scene, job, folder, JOBS[job].call(folder, resume=True))


def after_damage(scene: Scene, job: str, folder: Path, damaged: Path, ended: Ended, names: Sequence[str]) -> Outcome:
    """The outcome of a job that met a damaged file. Of a refusal the caller must see that it has destroyed nothing."""
    if ended.code != 0 or _TRACEBACK in ended.errors:
        if problem := mistake(ended):
            return Outcome(LOST, problem)
        named = any(name in ended.errors for name in names)
        return Outcome(TOLD if named else LOST, last_line(ended) if named else f"names no file: {ended.errors[-400:]}")
    differences = scene.differences(job, folder)
    if not differences:
        return Outcome(SAME)
    if says(ended, names):
        return Outcome(TOLD, f"went on; other: {', '.join(differences)}")
    models = [name for name in differences if name.endswith(".safetensors") and not name.startswith("state")]
    if models == differences == [damaged.name if damaged.parent.name == "run" else f"checkpoints/{damaged.name}"]:
        reading = ["--model", f"run/{models[0]}", "--input", "text", "--output", "read", "--device", "cpu"]
        ended = call("translate", reading, folder)
        if not mistake(ended) and damaged.name in ended.errors:
            return Outcome(TOLD, f"when it is read: {last_line(ended)}")
    return Outcome(SILENT, f"nothing is said; other: {', '.join(differences)}")
