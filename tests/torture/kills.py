"""Trials in which a process is killed, asked to stop, or refused by the disk, at a moment; then it goes on."""

import random
import signal
from collections.abc import Callable
from pathlib import Path

from tests.torture.faults import Fault
from tests.torture.outcomes import LOST, SAME, Outcome, mistake, resumed, unexpected
from tests.torture.scene import JOBS, Scene

Trial = Callable[[Scene, Path, random.Random], Outcome]
TERMINATED, INTERRUPTED = (143, -signal.SIGTERM, 0), (130, -signal.SIGINT, 0)
# 0: the run was over, or what failed could be done without.
CODES = {
    "kill": (-signal.SIGKILL,),
    "terminate": TERMINATED,
    "interrupt": INTERRUPTED,
    "interrupt twice": INTERRUPTED,
    "clock": (0,),
}
FAILED = (2, 0)
SECOND = 0.3  # how often what goes on is killed again


def at(job: str, action: str, choose: Callable[[random.Random], Fault]) -> Trial:
    """A trial in which a fault strikes a job that begins, and perhaps kill -9 once more when it goes on."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        fault = choose(draw)
        ended = JOBS[job].call(folder, fault)
        if wrong := unexpected(ended, CODES.get(action, FAILED)):
            return Outcome(LOST, f"{fault}: {wrong}")
        if action != "clock" and draw.random() < SECOND:
            again = Fault("kill", operation=draw.randint(1, len(scene.operations[job])))
            ended = JOBS[job].call(folder, again, resume=True)
            if wrong := unexpected(ended, (-signal.SIGKILL, 0)):
                return Outcome(LOST, f"{fault}, then {again}: {wrong}")
        outcome = resumed(scene, job, folder)
        return outcome if outcome.kind == SAME else outcome._replace(why=f"{fault}: {outcome.why}")

    return trial


def any_time(job: str, *, delay: float = 0.0) -> Trial:
    """kill -9 after a random time; `delay`: of a slow disk."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        child = JOBS[job].start(folder, Fault(delay=delay))
        child.kill_after(draw.uniform(0.0, 1.0 + delay * len(scene.operations[job])))
        if wrong := unexpected(child.ended(), (-signal.SIGKILL, 0)):
            return Outcome(LOST, wrong)
        return resumed(scene, job, folder)

    return trial


def file_limit(job: str) -> Trial:
    """The system refuses files beyond a random size, as a quota of it does; then it does not."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        ended = JOBS[job].call(folder, Fault(largest_file=draw.randint(1, 30_000)))
        if wrong := unexpected(ended, FAILED):
            return Outcome(LOST, wrong)
        return resumed(scene, job, folder)

    return trial


def rank(number: int, action: str, choose: Callable[[random.Random], Fault]) -> Trial:
    """A fault strikes one of two processes of a training; the other ends with a message, and both go on."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        fault = choose(draw)
        all_ended = scene.call_ranks(folder, {number: fault})
        for other, ended in enumerate(all_ended):
            codes = CODES[action] if other == number or action == "terminate" else (2, -signal.SIGKILL)
            if wrong := unexpected(ended, codes):
                return Outcome(LOST, f"{fault} in process {number}: process {other}: {wrong}")
        return _ranks_resumed(scene, folder)

    return trial


def _ranks_resumed(scene: Scene, folder: Path) -> Outcome:
    for other, ended in enumerate(scene.call_ranks(folder, {}, resume=True)):
        if ended.code:
            return Outcome(LOST, f"does not go on: process {other}: {mistake(ended) or ended.errors[-300:]}")
    if differences := scene.differences("training by two", folder):
        return Outcome(LOST, f"ends otherwise: {', '.join(differences)}")
    return Outcome(SAME)
