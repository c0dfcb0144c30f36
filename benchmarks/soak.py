#!/usr/bin/env python3
"""Soak test: train and translate for half an hour, and see whether memory or speed drifts.

    python benchmarks/soak.py --minutes 30
    python benchmarks/soak.py --minutes 30 train pipe

runs nmt-train, nmt-translate on an endless pipe, and nmt-translate on a long file, all at the same time or only those
named, each with one thread. After a warm-up it compares the last third of the time with the first: resident memory must
be the same within 2%, and work per second of processor time within 5%. It also shows Pss, which divides memory shared
by several processes among them, and work per second of wall-clock time, which counts only with --wall, for a machine
with a core for each program and nothing else to do.

It makes everything it needs in a temporary folder: the corpus of the demo, and a model trained on it for a minute. The
exit code is 1 when something is not flat. It reads /proc, so it runs only on Linux.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.reference_task import ROOT
from nmt.cli.common import run
from nmt.errors import UserError

WARM_UP = 0.1  # share of the time: first lines, first validations, memory that is allocated once
MEMORY, SPEED = 0.02, 0.05  # how much the last third may differ from the first
SAMPLES = 900  # taken of each process
TEXT = 5000  # lines of the text that is translated repeatedly
LINES_PER_SECOND = 2000  # more than any translation: the file must not end
SPARE = 10  # texts more, for a short run, whose model has hardly learned and is done with a sentence soon
PATIENCE = 60.0  # seconds that a program may take to end
MEBIBYTE = 1 << 20


class Sample(NamedTuple):
    """A sample of a process: seconds of wall clock and of processor time, bytes, and the work done so far."""

    clock: float
    processor: float
    resident: int
    shared_out: int
    done: int


class Part(NamedTuple):
    """A stretch of time: mean memory in MiB, and work per second."""

    resident: float
    shared_out: float
    per_processor_second: float
    per_clock_second: float


class Program:
    """One of the processes, and its work so far."""

    def __init__(
        self,
        name: str,
        unit: str,
        process: subprocess.Popen[bytes],
        done: Callable[[], int],
        threads: Sequence[threading.Thread] = (),
    ) -> None:
        """`threads` serve the process, and end with it."""
        self.name = name
        self.unit = unit
        self.process = process
        self._done = done
        self._threads = threads
        self.samples: list[Sample] = []

    def look(self, clock: float) -> None:
        """Take a sample. Raises UserError if the process has ended."""
        if self.process.poll() is not None:
            raise UserError(f"{self.name}: ended early with code {self.process.returncode}")
        folder = Path("/proc") / str(self.process.pid)
        memory = dict(line.split(":", 1) for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
        resident, shared_out = (int(memory[key].split()[0]) * 1024 for key in ("Rss", "Pss"))
        times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        processor = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
        self.samples.append(Sample(clock, processor, resident, shared_out, self._done()))

    def end(self) -> None:
        """End the process, also if it stands still."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()  # by SIGTERM: a shell starts commands in the background so that they ignore Ctrl-C
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join()


def start_training(folder: Path) -> Program:
    """Train endlessly, validating and saving the state in every epoch; its work is counted in updates."""
    output = folder / "run"
    process = _start(folder, "train", "--config", folder / "config.yaml", "--output", output)
    return Program("training", "updates", process, lambda: _updates(output / "metrics.jsonl"))


def start_pipe(folder: Path) -> Program:
    """Translate what comes through a pipe that is always full; its work is counted in lines that come back."""
    process = _start(folder, "translate", "--model", folder / "model", pipes=True)
    source, target = process.stdin, process.stdout
    assert source is not None
    assert target is not None
    text = (folder / "text.en").read_bytes()
    lines = 0

    def feed() -> None:
        with suppress(BrokenPipeError), source:  # until the process has ended
            while True:
                source.write(text)

    def count() -> None:
        nonlocal lines
        with target:
            for _ in target:
                lines += 1

    workers = [threading.Thread(target=work) for work in (feed, count)]
    for worker in workers:
        worker.start()
    return Program("translating a pipe", "lines", process, lambda: lines, workers)


def start_file(folder: Path, seconds: float) -> Program:
    """Translate a file into a file; its work is counted in bytes of the unfinished output."""
    text = (folder / "text.en").read_bytes()
    with open(folder / "long.en", "wb") as file:
        for _ in range(int(seconds * LINES_PER_SECOND / TEXT) + SPARE):
            file.write(text)
    output = folder / "translated"
    output.mkdir()
    files = ("--input", folder / "long.en", "--output", output / "long.de")
    process = _start(folder, "translate", "--model", folder / "model", *files)
    return Program(
        "translating a file", "bytes", process, lambda: sum(file.stat().st_size for file in output.iterdir())
    )


PROGRAMS = ("train", "pipe", "file")  # as they begin


def _start(folder: Path, program: str, *arguments: str | Path, pipes: bool = False) -> subprocess.Popen[bytes]:
    """Start nmt-PROGRAM with one thread; its messages go to a file."""
    stream = subprocess.PIPE if pipes else subprocess.DEVNULL
    with open(folder / f"{program}.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "nmt", program, *map(str, arguments)],
            stdin=stream,
            stdout=stream,
            stderr=log,
            cwd=ROOT,
            env=one_thread(),
        )


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _updates(metrics: Path) -> int:
    """The step of the last record; 0 if there is none yet."""
    if not metrics.is_file():
        return 0
    with open(metrics, "rb") as file:
        file.seek(max(0, metrics.stat().st_size - 4096))
        complete = file.read().split(b"\n")[:-1]
    return int(yaml.safe_load(complete[-1])["step"]) if complete else 0


def prepare(folder: Path, updates: int, *sizes: str) -> None:
    """Make the corpus, of the script's `sizes`, the text to translate, the configuration of endless training, and a
    model."""
    script = [sys.executable, str(ROOT / "scripts" / "make_synthetic_corpus.py")]
    _call([*script, "--output", str(folder), "--test", str(TEXT), *sizes])
    (folder / "test.en").rename(folder / "text.en")
    sides = {name: {"source": f"{name}.en", "target": f"{name}.de"} for name in ("train", "valid")}
    recipe: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "demo.yaml").read_text(encoding="utf-8"))
    recipe["data"] |= {"train": [sides["train"]], "valid": sides["valid"]}
    del recipe["training"]["schedule"], recipe["training"]["max_epochs"]
    recipe["training"] |= {"max_updates": 10**9, "log_every": 10, "validate_every": 200}
    (folder / "config.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    train = [sys.executable, "-m", "nmt", "train", "--config", str(folder / "config.yaml")]
    short = ["--set", f"training.max_updates={updates}", "--set", "training.validation.metric=loss"]
    _call([*train, "--output", str(folder / "model"), *short])


def _call(command: Sequence[str]) -> None:
    finished = subprocess.run(command, cwd=ROOT, env=one_thread(), capture_output=True, text=True, check=False)
    if finished.returncode:
        raise UserError(f"{' '.join(command)}: ended with code {finished.returncode}\n{finished.stderr}")


def thirds(samples: Sequence[Sample]) -> tuple[Part, Part]:
    """The first and last third of the time after the warm-up. Raises UserError if nothing was done in one of them."""
    start, end = samples[0].clock, samples[-1].clock
    start += WARM_UP * (end - start)
    length = (end - start) / 3
    first = [sample for sample in samples if start <= sample.clock <= start + length]
    last = [sample for sample in samples if end - length <= sample.clock]
    return _part(first), _part(last)


def _part(samples: Sequence[Sample]) -> Part:
    if len(samples) < 2 or samples[0].done == samples[-1].done:
        raise UserError("nothing was done for a third of the time; give more --minutes")
    done = samples[-1].done - samples[0].done
    return Part(
        sum(sample.resident for sample in samples) / len(samples) / MEBIBYTE,
        sum(sample.shared_out for sample in samples) / len(samples) / MEBIBYTE,
        done / (samples[-1].processor - samples[0].processor),
        done / (samples[-1].clock - samples[0].clock),
    )


class Row(NamedTuple):
    """A line of the table: what was measured, its unit, both thirds, and how far they may be apart."""

    what: str
    unit: str
    first: float
    last: float
    limit: float | None  # None: only shown

    @property
    def drift(self) -> float:
        return self.last / self.first - 1

    @property
    def flat(self) -> bool:
        return self.limit is None or abs(self.drift) <= self.limit


def rows(unit: str, samples: Sequence[Sample], *, wall: bool) -> list[Row]:
    """The lines of the table for one program."""
    first, last = thirds(samples)
    return [
        Row("resident memory", "MiB", first.resident, last.resident, MEMORY),
        Row("Pss", "MiB", first.shared_out, last.shared_out, None),
        Row("speed, processor", f"{unit}/s", first.per_processor_second, last.per_processor_second, SPEED),
        Row("speed, clock", f"{unit}/s", first.per_clock_second, last.per_clock_second, SPEED if wall else None),
    ]


def table(named_rows: Sequence[tuple[str, Row]]) -> str:
    """A Markdown table of (program, row)."""
    lines = [
        "| Program | Measured | First third | Last third | Drift | Allowed | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for name, row in named_rows:
        allowed, verdict = ("", "") if row.limit is None else (f"{row.limit:.0%}", "flat" if row.flat else "NOT FLAT")
        figures = f"{row.first:,.1f} | {row.last:,.1f} | {100 * row.drift:+.2f}%"
        lines.append(f"| {name} | {row.what}, {row.unit} | {figures} | {allowed} | {verdict} |")
    return "\n".join(lines)


def soak(folder: Path, names: Sequence[str], seconds: float) -> list[Program]:
    """Run the named programs at the same time for this long; returns them with their samples.

    Each begins when those before it work, and these stand still until all do: what they do is not measured until then,
    and on a machine with few cores the others would take even longer to start. The file is last, for it has an end.
    """
    starts = {"train": start_training, "pipe": start_pipe, "file": lambda folder: start_file(folder, seconds)}
    programs: list[Program] = []
    try:
        for name in sorted(names, key=PROGRAMS.index):
            program = starts[name](folder)
            programs.append(program)
            while not (program.samples and program.samples[-1].done):
                time.sleep(0.5)
                program.look(0.0)
            program.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        for program in programs:
            program.process.send_signal(signal.SIGCONT)
            program.samples.clear()
        while (clock := time.monotonic() - begun) < seconds:
            for program in programs:
                program.look(clock)
            time.sleep(max(0.2, seconds / SAMPLES))
    finally:
        for program in programs:
            program.end()
    return programs


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)} (default: all of them)")
    parser.add_argument("--minutes", type=float, default=30.0, help="default: %(default)s")
    parser.add_argument("--updates", type=int, default=600, help="of the translating model (default: %(default)s)")
    parser.add_argument("--wall", action="store_true", help="judge wall-clock speed too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.programs if name not in PROGRAMS]:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(PROGRAMS)}")
    if not 0 < options.minutes <= 10_000:
        parser.error(f"--minutes {options.minutes:g}: must be more than 0 and at most 10,000")

    def body() -> int:
        if not Path("/proc/self/smaps_rollup").exists():
            raise UserError("the soak test reads /proc/PID/smaps_rollup, which needs Linux 4.14 or newer")
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), options.updates)
            programs = soak(Path(folder), list(dict.fromkeys(options.programs)) or PROGRAMS, 60 * options.minutes)
        wall = options.wall
        named_rows = [
            (program.name, row) for program in programs for row in rows(program.unit, program.samples, wall=wall)
        ]
        print(table(named_rows))
        return 0 if all(row.flat for _, row in named_rows) else 1

    return run("soak", body)


if __name__ == "__main__":
    sys.exit(main())
