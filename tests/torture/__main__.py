"""Breaks the toolkit in every way of a table, fault × moment, and looks whether anything is lost, or silently other.

    python -m tests.torture [--kills 300] [--flips 200] [--others 200] [--processes 2] [--only WORDS] [--seed 1]

Each trial works in a folder of its own: a job is struck, then goes on by --resume, and must end with the bytes of an
undisturbed one, or with one clear message. What is tried follows from the seed. Exit code 1 when anything is lost or
silent; the folders of those trials stay.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before PyTorch is imported: a process that forks must have one thread

import argparse
import json
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from tests.torture.outcomes import LOST, Outcome
from tests.torture.rows import GROUPS, Row, rows
from tests.torture.scene import Scene
from tests.torture.table import Result, markdown, short, table

TRIAL = 3000.0  # seconds that a trial has
Key = tuple[str, str, int]  # fault, moment, and which trial of them


def main(arguments: Sequence[str] | None = None) -> int:
    """Try everything; returns 1 if anything is lost or silent."""
    options = _parser().parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as work:
        scene = Scene(Path(work))
        chosen = [row for row in rows(scene) if options.only in row.name]
        if not chosen:
            print(f"--only {options.only}: no row has this in its name", file=sys.stderr)
            return 2
        trials = list(_plan(chosen, {group: getattr(options, group) for group in GROUPS}))
        print(f"{len(trials)} trials of {len(chosen)} rows", flush=True)
        results = list(_tried(scene, options, trials))
    return _report(options, results, time.monotonic() - began)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__.partition("\n")[0])
    for group, count in zip(GROUPS, (300, 200, 200), strict=True):
        parser.add_argument(f"--{group}", type=int, default=count, help=f"trials of this group (default: {count})")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="trials at once (default: the cores)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only rows with this in 'fault × moment'")
    parser.add_argument("--seed", type=int, default=1, help="decides all that is drawn (default: 1)")
    parser.add_argument(
        "--output", type=Path, default=Path("runs/torture"), metavar="DIR", help="for results (default: runs/torture)"
    )
    return parser


def _plan(chosen: Sequence[Row], counts: dict[str, int]) -> Iterator[tuple[Key, Row]]:
    """The trials: of each group as many as asked for, in turn from its rows."""
    for group, count in counts.items():
        mine = [row for row in chosen if row.group == group]
        number = 0
        while count > 0 and mine:
            for row in [row for row in mine if number < row.most][:count]:
                yield (row.fault, row.moment, number), row
                count -= 1
            mine = [row for row in mine if number + 1 < row.most]
            number += 1


class _Running(NamedTuple):
    key: Key
    row: Row
    process: int
    folder: Path
    began: float


def _tried(scene: Scene, options: argparse.Namespace, trials: Sequence[tuple[Key, Row]]) -> Iterator[Result]:
    """The results of trials, as they come; some run at once, each in a forked process."""
    waiting = list(enumerate(trials))[::-1]
    running: dict[int, _Running] = {}
    done = 0
    with open(options.output / "results.jsonl", "w", encoding="utf-8") as kept:
        while waiting or running:
            while waiting and len(running) < options.processes:
                number, (key, row) = waiting.pop()
                reading, process, folder = _start(scene, options.seed, key, row, scene.work / f"trial-{number}")
                running[reading] = _Running(key, row, process, folder, time.monotonic())
            ready, _, _ = select.select(list(running), [], [], 1.0)
            for reading, trial in list(running.items()):
                if reading not in ready and time.monotonic() - trial.began < TRIAL:
                    continue
                outcome = _outcome(reading, trial) if reading in ready else Outcome(LOST, "the trial does not end")
                _end(reading, running.pop(reading).process)
                result = Result(trial.row.group, *trial.key, *outcome, round(time.monotonic() - trial.began, 2))
                _put_away(trial.folder, options.output, result)
                kept.write(json.dumps({"seed": options.seed, **result._asdict()}, ensure_ascii=False) + "\n")
                kept.flush()
                done += 1
                why = f": {result.why}" if result.is_bad else ""
                print(f"{done}/{len(trials)} {trial.row.name}: {result.outcome}{why}", flush=True)
                yield result


def _start(scene: Scene, seed: int, key: Key, row: Row, folder: Path) -> tuple[int, int, Path]:
    """Fork a process for a trial; returns where its outcome comes from, its id, and its folder."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _try(scene, row, folder, random.Random(f"{seed} {key}"), writing)
    os.close(writing)
    return reading, process, folder


def _try(scene: Scene, row: Row, folder: Path, draw: random.Random, writing: int) -> NoReturn:
    os.setsid()
    try:
        outcome = row.trial(scene, folder, draw)
    except BaseException:
        outcome = Outcome(LOST, f"the trial itself fails: {traceback.format_exc()[-1500:]}")
    os.write(writing, json.dumps(outcome).encode()[:60_000])
    os._exit(0)


def _outcome(reading: int, trial: _Running) -> Outcome:
    try:
        return Outcome(*json.loads(os.read(reading, 1 << 16)))
    except ValueError:
        return Outcome(LOST, "the trial's process has died")


def _end(reading: int, process: int) -> None:
    os.close(reading)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # also what it has left running
    os.waitpid(process, 0)


def _put_away(folder: Path, output: Path, result: Result) -> None:
    """Keep the folder of a trial that went wrong, for a person to look at; remove others."""
    for path in (folder, folder.with_name(f"{folder.name}-before")):
        if path.exists() and result.is_bad:
            name = f"{result.fault} {result.moment} {result.number}".replace("/", " ").replace(" ", "-")
            place = output / "failed" / (name + path.name.removeprefix(folder.name))
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(path, place, symlinks=True)
        shutil.rmtree(path, ignore_errors=True)


def _report(options: argparse.Namespace, results: Sequence[Result], seconds: float) -> int:
    lines = table(results)
    text = f"{markdown(short(lines))}\n{markdown(lines)}"
    (options.output / "table.md").write_text(text, encoding="utf-8")
    (options.output / "table.json").write_text(json.dumps(lines, indent=1, ensure_ascii=False), encoding="utf-8")
    print(f"\n{text}")
    bad = [result for result in results if result.is_bad]
    for result in bad:
        print(f"{result.outcome}: {result.fault} × {result.moment}, trial {result.number}: {result.why}")
    skipped = {result.why for result in results if result.outcome == "skipped"}
    for why in sorted(skipped):
        print(f"skipped: {why}")
    counts = ", ".join(f"{sum(result.group == group for result in results)} {group}" for group in GROUPS)
    print(f"{len(results)} trials ({counts}) in {seconds / 60:.1f} minutes: {len(bad)} lost or silent")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
