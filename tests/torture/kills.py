"""Trials in which a process is killed, asked to stop, or refused by the disk, at a moment; then it goes on."""

import ctypes
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.torture import commands
from tests.torture.faults import Fault
from tests.torture.outcomes import LOST, SAME, SKIPPED, Outcome, mistake, resumed, unexpected
from tests.torture.scene import JOBS, RANKS, Scene

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
_NEW_MOUNTS = 0x00020000


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


def any_time(job: str, *, fresh: bool, delay: float = 0.0) -> Trial:
    """kill -9 after a random time, of a process that was forked, or a fresh one; `delay`: of a slow disk."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        if fresh:
            process = JOBS[job].start_fresh(folder)
            commands.kill_after(process, draw.uniform(1.0, 8.0))  # importing takes the first seconds
            ended = commands.end_of(process)
        else:
            child = JOBS[job].start(folder, Fault(delay=delay))
            child.kill_after(draw.uniform(0.0, 1.0 + delay * len(scene.operations[job])))
            ended = child.ended()
        if wrong := unexpected(ended, (-signal.SIGKILL, 0)):
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


def small_disk(job: str) -> Trial:
    """A real file system without space enough; then it is made larger."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        if reason := _mount(folder, "size=64m"):
            return Outcome(SKIPPED, reason)
        for path in scene.begin.iterdir():
            subprocess.run(["cp", "-r", path, folder], check=True)
        used = int(subprocess.check_output(["du", "-sk", folder]).split()[0])
        _remount(folder, f"size={used + draw.randint(4, 320)}k")
        ended = JOBS[job].call(folder)
        if wrong := unexpected(ended, FAILED):
            return Outcome(LOST, wrong)
        _remount(folder, "size=64m")
        return resumed(scene, job, folder)

    return trial


def read_only_disk(job: str) -> Trial:
    """A stopped job goes on on a real read-only file system, is refused, and goes on when that can be written."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        if reason := _mount(folder, "size=64m"):
            return Outcome(SKIPPED, reason)
        for path in scene.begin.iterdir():
            subprocess.run(["cp", "-r", path, folder], check=True)
        JOBS[job].call(folder, Fault("kill", operation=draw.randint(1, len(scene.operations[job]) * 3 // 4)))
        _remount(folder, "ro")
        if wrong := mistake(JOBS[job].call(folder, resume=True)):
            return Outcome(LOST, f"on a read-only disk: {wrong}")
        _remount(folder, "rw")
        return resumed(scene, job, folder)

    return trial


def _mount(folder: Path, options: str) -> str:
    """Mount a file system in memory that this process and its children see alone; returns why it cannot be done."""
    folder.mkdir()
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
            return "only root may mount"
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True, capture_output=True)
    except (OSError, AttributeError, subprocess.CalledProcessError) as error:
        return f"cannot mount a file system in memory ({error})"
    return ""


def _remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


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


def under_torchrun(number: int) -> Trial:
    """kill -9 of one process of a real torchrun, at a random time of its training; all end, and go on."""

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.copy(folder)
        process = commands.start_fresh("train", JOBS["training"].words(folder, resume=False), folder, processes=RANKS)
        process_id = commands.wait_for_rank(number, folder, folder / "run" / "metrics.jsonl")
        if process_id is not None:
            commands.kill_process(process_id, draw.uniform(0.0, 0.3))
        ended = commands.end_of(process)
        if ended.code == commands.HANGING:
            return Outcome(LOST, f"process {number} was killed, and torchrun does not end")
        return _ranks_resumed(scene, folder)

    return trial


def _ranks_resumed(scene: Scene, folder: Path) -> Outcome:
    for other, ended in enumerate(scene.call_ranks(folder, {}, resume=True)):
        if ended.code:
            return Outcome(LOST, f"does not go on: process {other}: {mistake(ended) or ended.errors[-300:]}")
    if differences := scene.differences("training by two", folder):
        return Outcome(LOST, f"ends otherwise: {', '.join(differences)}")
    return Outcome(SAME)
