"""Trials in which a file is damaged between a stop and the resuming, and what is right for each file that is read.

Right is always one of two. *Same*: the damage does not matter, or is mended, and everything ends as if there had been
none. *Told*: one message names the file; the command goes on with what is left (an older state, other checkpoints), or
is refused, has then destroyed nothing, and goes on with the same bytes once the file is put back.
"""

import random
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.torture.commands import Ended
from tests.torture.kills import Trial
from tests.torture.outcomes import LOST, SAME, SKIPPED, TOLD, Outcome, after_damage, resumed
from tests.torture.scene import JOBS, Scene

KINDS = ("one bit flipped", "truncated", "a block of zeros", "deleted")
BLOCK = 512  # bytes, which a disk loses together


class Read(NamedTuple):
    """A file that the program reads, and what is right when it is damaged."""

    job: str
    pattern: str  # of its name in the folder of a trial
    right: str  # for a person to read
    says: tuple[str, ...] = ()  # what a message may call it, besides its name
    at: tuple[float, float] = (0.72, 0.92)  # the share of the job after which it is stopped


TEXT = "told: the file is another one, or no text any more; finished chunks of another one are refused"
CACHE = "same: said, and rebuilt from the corpus"
READS = {
    "the user's configuration": Read("training", "train.yaml", "told: another one, or none", ("configuration",)),
    "the run's configuration": Read(
        "training", "run/config.yaml", "told: damaged, or another one", ("config", "is not empty")
    ),
    "the corpus": Read("training", "corpus/*", "told: not the corpus that the run began with", ("corpus",)),
    "state.safetensors": Read("training", "run/state.safetensors", "told, going on from state.1 to the same bytes"),
    "state.1.safetensors": Read("training", "run/state.1.safetensors", "same: read only when the newer one is damaged"),
    "best.safetensors": Read("training", "run/best.safetensors", "told when it is read, unless a better one came"),
    "a checkpoint": Read("training", "run/checkpoints/*", "told when it is averaged or read, unless it is removed"),
    "metrics.jsonl": Read("training", "run/metrics.jsonl", "same, or told: the lines that are lost", ("metrics",)),
    "the log": Read("training", "run/train.log", "same: never read"),
    "the lock": Read("training", "run/.lock", "same: its content is that of a job that is over"),
    "cached counts": Read("training", ".cache/corpora/*/*", CACHE, ("cache",)),
    "cached subwords": Read("training", ".cache/subwords/*/*", CACHE, ("cache",)),
    "cached ids": Read("training", ".cache/ids/*/*.values", CACHE, ("cache",)),
    "cached offsets": Read("training", ".cache/ids/*/*.offsets", CACHE, ("cache",)),
    "cached facts": Read("training", ".cache/ids/*/contents", CACHE, ("cache",)),
    "the fine-tuning's origin": Read("fine-tuning", "run/init_from.safetensors", "told: refused", at=(0.5, 0.9)),
    "the translating model": Read("translation", "translator.safetensors", "told: damaged", ("--model",), (0.3, 0.7)),
    "the shortlist": Read("translation", "shortlist.safetensors", "told: damaged", ("--shortlist",), (0.3, 0.7)),
    "the text to translate": Read("translation", "text", TEXT, ("--input",), (0.3, 0.7)),
    "the dictionary": Read("translation", "dictionary", TEXT, ("--dictionary",), (0.3, 0.7)),
    "the constraints": Read("translation", "constraints", TEXT, ("--constraints",), (0.3, 0.7)),
    "a chunk's output": Read("translation", "out.chunks-*/*.output", "same: translated again", at=(0.3, 0.7)),
    "a chunk's alignments": Read("translation", "out.chunks-*/*.alignments", "same: translated again", at=(0.3, 0.7)),
    "a chunk's record": Read("translation", "out.chunks-*/*.record", "same: translated again", at=(0.3, 0.7)),
    "the chunks' description": Read("translation", "out.chunks-*/job.json", "same: written again", at=(0.3, 0.7)),
}


def damaged(name: str, kind: str) -> Trial:
    """A trial of one of READS."""
    read = READS[name]

    def trial(scene: Scene, folder: Path, draw: random.Random) -> Outcome:
        scene.stopped(read.job, folder, at=draw.uniform(*read.at))
        paths = sorted(path for path in folder.glob(read.pattern) if path.is_file())
        paths = [path for path in paths if path.stat().st_size] or paths
        if not paths:
            return Outcome(SKIPPED, "there is no such file yet")
        path = draw.choice(paths)
        before = shutil.copytree(folder, folder.with_name(f"{folder.name}-before"))
        content = path.read_bytes()
        where = damage(path, kind, draw)
        ended = _go_on(read.job, folder)
        outcome = after_damage(scene, read.job, folder, path, ended, (path.name, *read.says))
        if outcome.kind == TOLD and ended.code:
            outcome = _put_back(scene, read.job, folder, path, content, outcome)
        if outcome.kind in (SAME, TOLD):
            shutil.rmtree(before)
        return outcome._replace(why=f"{path.relative_to(folder)}, {where}: {outcome.why}")

    return trial


def _go_on(job: str, folder: Path) -> Ended:
    return JOBS[job].call(folder, resume=True)


def _put_back(scene: Scene, job: str, folder: Path, path: Path, content: bytes, told: Outcome) -> Outcome:
    """After a refusal: with the file as it was, the job goes on to the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    after = resumed(scene, job, folder)
    if after.kind == SAME:
        return told
    return Outcome(LOST, f"the refusal ({told.why}) has destroyed something: {after.why}")


def damage(path: Path, kind: str, draw: random.Random) -> str:
    """Damage a file; returns where."""
    content = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
        return "deleted"
    if not content:
        content.append(0)
    place = draw.randrange(len(content))
    if kind == "one bit flipped":
        bit = draw.randrange(8)
        content[place] ^= 1 << bit
        where = f"bit {bit} of byte {place} flipped"
    elif kind == "truncated":
        where = f"cut to {place} of {len(content)} bytes"
        del content[place:]
    else:
        start = place - place % BLOCK
        content[start : start + BLOCK] = bytes(len(content[start : start + BLOCK]))
        where = f"zeros from byte {start} on"
    with open(path, "r+b") as file:  # the same file, as a disk would have it
        file.write(content)
        file.truncate()
    return where
