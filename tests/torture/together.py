"""Trials with two processes at once: in one run folder, making one cache, translating to one output."""

import random
import shutil
import signal
from pathlib import Path

from tests.torture.commands import Child, start
from tests.torture.faults import Fault
from tests.torture.moments import moments
from tests.torture.outcomes import LOST, Outcome, finished, mistake, resumed, unexpected
from tests.torture.scene import JOBS, Scene


def in_one_folder(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
    """A second training wants the folder of a first one; it is refused, and the first one ends undisturbed."""
    scene.copy(folder)
    first, fault = _paused("training", scene, folder, draw)
    if first is None:
        return Outcome(LOST, f"{fault}: was not met")
    second = JOBS["training"].call(folder, resume=draw.random() < 0.5)
    first.go_on()
    ended = first.ended()
    if wrong := mistake(second):
        return Outcome(LOST, f"{fault}: the second: {wrong}")
    return finished(scene, "training", folder, ended)


def to_one_output(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
    """A second translation overtakes a first one, which then ends the same, or says that its chunks are gone."""
    scene.copy(folder)
    first, fault = _paused("translation", scene, folder, draw)
    if first is None:
        return Outcome(LOST, f"{fault}: was not met")
    second = JOBS["translation"].call(folder, resume=draw.random() < 0.5)
    first.go_on()
    ended = first.ended()
    if wrong := unexpected(second, (0,)) or unexpected(ended, (0, 2)):
        return Outcome(LOST, f"{fault}: {wrong}")
    return finished(scene, "translation", folder, second)


def _paused(job: str, scene: Scene, folder: Path, draw: random.Random) -> tuple[Child | None, Fault]:
    """A job that stands still before one of its operations; None where it ends without that."""
    operations = len(scene.operations[job])
    fault = Fault("pause", operation=draw.randint(operations // 8, operations * 3 // 4))
    child = JOBS[job].start(folder, fault)
    if child.wait_until_paused():
        return child, fault
    child.ended()
    return None, fault


def making_one_cache(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
    """Two trainings make the same cache at once; often one of them is killed, and goes on."""
    scene.copy(folder)
    kinds = moments("training", scene.operations["training"])
    numbers = [number for name in ("checking the corpus", "subword training", "binarizing") for number in kinds[name]]
    fault = Fault("kill", operation=draw.choice(numbers)) if draw.random() < 0.6 else Fault()
    other = [("other" if word == "run" else word) for word in JOBS["training"].arguments]
    first, second = JOBS["training"].start(folder, fault), start("train", other, folder)
    ended, other_ended = first.ended(), second.ended()
    if wrong := unexpected(ended, (-signal.SIGKILL,) if fault.operation else (0,)):
        return Outcome(LOST, f"{fault}: {wrong}")
    if wrong := unexpected(other_ended, (0,)):
        return Outcome(LOST, f"{fault} in the other: {wrong}")
    run = folder / "run"
    if run.exists():
        run.rename(folder / "first")
    (folder / "other").rename(run)
    if differences := scene.differences("training", folder):
        return Outcome(LOST, f"{fault} in the other: ends otherwise: {', '.join(differences)}")
    shutil.rmtree(run)
    if (folder / "first").exists():
        (folder / "first").rename(run)
    return resumed(scene, "training", folder)
