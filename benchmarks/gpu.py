#!/usr/bin/env python3
"""Everything that is to be known of a GPU, in at most nine minutes: correctness, speed, and memory.

    python scripts/get_multi30k.py --output data/multi30k
    python benchmarks/gpu.py --output gpu

runs the tests marked `gpu`; trains the reference task and lstm_luong_general in float32, with TF32, and in bfloat16,
in batches of 80 and 640; translates the validation text with a model that it has trained for a minute, beam 5 and
greedily; and writes gpu/gpu.json and gpu/gpu.md, the table for docs/performance.md. What the time does not suffice for
is left out, and named. `--device cpu` with a small `--config` shows that it works where there is no GPU.

An update is timed as in train_speed.py; then a few are profiled: kernels launched a second, and the share of the time
in which one computes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks import train_speed
from benchmarks.in_turn import MEBIBYTE
from benchmarks.reference_task import DEVICES, REFERENCE, ROOT, Task, positive
from benchmarks.train_speed import timed_updates, wait_for
from benchmarks.translate_speed import translate_in_batches
from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.data.prepare import Prepared, prepare
from nmt.decoding.translator import Translator
from nmt.devices import choose_device
from nmt.models.combinations import model_problems
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import Seq2Seq, build_model

MINUTES = 9.0
MODEL_SECONDS = 60.0  # for which the model that translates is trained
PROFILED = 5  # updates
VARIANTS = ("reference", "lstm_luong_general")
PRECISIONS = ("float32", "TF32", "bfloat16")
BATCHES = (80, 640)  # sentences of an update
TRANSLATED = (64, 512)  # sentences of a batch
COLUMNS = {
    "training": ("variant", "precision", "batch", "target tokens/s", "launches/s", "share in kernels", "peak MiB"),
    "translation": ("beam", "batch", "sentences/s", "peak MiB"),
}


class Clock(NamedTuple):
    """The time that is left."""

    ends: float

    def has(self, seconds: float) -> bool:
        """Whether so many seconds are left."""
        return time.monotonic() + seconds < self.ends


@contextmanager
def products(precision: str) -> Iterator[None]:
    """Let float32 products be computed with TF32, where that is the precision."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "TF32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def run_tests(seconds: float) -> dict[str, Any]:
    """The tests marked `gpu`: their exit code, and pytest's last line; None where they take longer."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "tests/test_gpu.py"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"code": None, "summary": f"not finished in {seconds:.0f} seconds"}
    return {"code": done.returncode, "summary": (done.stdout.splitlines() or [done.stderr])[-1]}


def prepared_task(task: Task, cache: Path) -> tuple[Any, Prepared, Seq2Seq]:
    """The configuration, the corpus, and a new model on the device."""
    config = task.load([model_problems])
    prepared = prepare(config, cache=config.data.cache_folder or cache, log=lambda message: None)
    torch.manual_seed(config.seed)
    source, target = prepared.vocabularies
    model = build_model(config.model, source_size=source.size, target_size=target.size)
    return config, prepared, model.to(choose_device(task.device)).train()


def train(task: Task, updates: int, cache: Path) -> dict[str, Any]:
    """Time this many updates after a warm-up, and profile PROFILED more."""
    config, prepared, model = prepared_task(task, cache)
    device = model.output_weight.device
    _forget_peak(device)
    stream = timed_updates(model, config, prepared, device)
    timed = list(islice(stream, train_speed.WARM_UP + updates))[train_speed.WARM_UP :]
    peak = _peak(device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as profiler:
        began = time.perf_counter()
        list(islice(stream, PROFILED))
        seconds = time.perf_counter() - began
    kernels = [event for event in profiler.events() or [] if event.device_type.name == "CUDA"]
    busy = sum(event.time_range.elapsed_us() for event in kernels) / 1e6
    return {
        "target tokens/s": round(statistics.median(one.tokens / one.seconds for one in timed)),
        "launches/s": round(len(kernels) / seconds),
        "share in kernels": round(busy / seconds, 3),
        "peak MiB": peak,
    }


def trained_model(task: Task, seconds: float, cache: Path, path: Path) -> list[str]:
    """Train for so long, save the model, and return the source of the validation text."""
    config, prepared, model = prepared_task(task, cache)
    stream, began = timed_updates(model, config, prepared, model.output_weight.device), time.monotonic()
    while time.monotonic() - began < seconds:
        next(stream)
    source, target = prepared.vocabularies
    save_model(path, ModelFile(config, model.state_dict(), source.model, target.model, (source.size, target.size), {}))
    return list(read_lines(config.data.valid.source))


def translate(path: Path, lines: Sequence[str], device: torch.device, *, beam: int, batch: int) -> dict[str, Any]:
    """Translate the lines twice, of which the second time counts."""
    translator = Translator.load(path, device=device)
    for _ in range(2):
        _forget_peak(device)
        wait_for(device)
        began = time.perf_counter()
        translate_in_batches(translator, lines, beam=beam, batch=batch)
        wait_for(device)
        seconds = time.perf_counter() - began
    return {"sentences/s": round(len(lines) / seconds, 1), "peak MiB": _peak(device)}


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: torch.device) -> int | None:
    """The most memory of a GPU that was in use, in MiB."""
    return round(torch.cuda.max_memory_allocated(device) / MEBIBYTE) if device.type == "cuda" else None


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures, and what was left out."""
    clock, device = Clock(time.monotonic() + 60 * options.minutes), choose_device(options.device)
    tests = run_tests(20 * options.minutes) if options.tests else None
    trained, translated, left_out = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        cache, path = Path(folder) / "cache", Path(folder) / "model.safetensors"
        for batch in BATCHES:
            for variant in VARIANTS:
                for precision in PRECISIONS:
                    what = {"variant": variant, "precision": precision, "batch": batch}
                    if not clock.has(options.seconds + 60):
                        left_out.append(what)
                        continue
                    kept = precision if precision == "bfloat16" else "float32"
                    sets = (f"training.batch_size={batch}", *options.overrides)
                    task = Task(options.config, variant, sets, kept, "auto", options.device, None)
                    with products(precision):
                        trained.append({**what, **train(task, options.updates, cache)})
        task = Task(options.config, "reference", tuple(options.overrides), "float32", "auto", options.device, None)
        is_trained = clock.has(options.seconds)
        lines = trained_model(task, options.seconds, cache, path) if is_trained else []
        for beam in (5, 1):
            for batch in TRANSLATED:
                what = {"beam": beam, "batch": batch}
                if is_trained and clock.has(20):
                    translated.append({**what, **translate(path, lines, device, beam=beam, batch=batch)})
                else:
                    left_out.append(what)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"
    return {
        "device": name,
        "pytorch": torch.__version__,
        "cuda": torch.version.cuda,
        "tests": tests,
        "training": trained,
        "translation": translated,
        "left_out": left_out,
    }


def table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [f"{figures['device']}, PyTorch {figures['pytorch']}, CUDA {figures['cuda']}"]
    if figures["tests"] is not None:
        lines += ["", f"Tests marked `gpu`: {figures['tests']['summary']}"]
    for name, columns in COLUMNS.items():
        lines += ["", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        for row in figures[name]:
            cells = ["–" if row[column] is None else str(row[column]) for column in columns]
            lines.append(f"| {' | '.join(cells)} |")
    if figures["left_out"]:
        lines += ["", f"Left out for lack of time: {json.dumps(figures['left_out'])}"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for gpu.json and gpu.md")
    parser.add_argument("--device", choices=DEVICES, default="cuda", help="default: cuda")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time for all, about (default: 9)")
    parser.add_argument("--updates", type=positive, default=60, help="updates that are timed (default: 60)")
    parser.add_argument(
        "--seconds", type=float, default=MODEL_SECONDS, help="for which the model that translates is trained"
    )
    parser.add_argument("--no-tests", dest="tests", action="store_false", help="leave out the tests marked gpu")
    parser.add_argument("--config", type=Path, default=REFERENCE, metavar="FILE", help="default: the reference task's")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="a key of the configuration"
    )
    options = parser.parse_args(arguments)

    def body() -> None:
        figures = measure(options)
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "gpu.json").write_text(f"{json.dumps(figures, indent=2)}\n", encoding="utf-8")
        (options.output / "gpu.md").write_text(f"{table(figures)}\n", encoding="utf-8")
        print(table(figures))

    return run("gpu", body)


if __name__ == "__main__":
    sys.exit(main())
