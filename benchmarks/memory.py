#!/usr/bin/env python3
"""Peak memory of training and translating the reference task and its variants.

    python benchmarks/memory.py --updates 50
    python benchmarks/memory.py --measure train --against "RIVAL"

runs benchmarks/train_speed.py and then benchmarks/translate_speed.py in separate processes and prints one JSON line:
the peak main memory of each process, everything included (Python, the libraries, the mapped part of the corpus), and
on CUDA the peak that PyTorch's tensors took on the device. It translates with the model it has just trained, whose
translations tend to be long, or with --model. `--against COMMAND` runs another program in turn with one of the two
(--measure), `--runs` times each, and takes the peak of its largest process. All in MiB.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.in_turn import add_rival_options, compare, run_command
from benchmarks.reference_task import Task, add_task_options, chosen_task, positive
from nmt.cli.common import run

HERE = Path(__file__).resolve().parent
FIELD = "peak_resident_mib"


class Commands:
    """The two processes to measure."""

    def __init__(self, options: argparse.Namespace, task: Task, folder: Path) -> None:
        """`folder` is where the trained model goes."""
        self.model = options.model or folder / "model.safetensors"
        self.train = [sys.executable, str(HERE / "train_speed.py"), *task.arguments, "--updates", str(options.updates)]
        self.train_and_save = [*self.train, "--save", str(folder / "model.safetensors")]
        self.translate = [sys.executable, str(HERE / "translate_speed.py"), "--model", str(self.model)]
        self.translate += ["--beam", str(options.beam), "--batch", str(options.batch), "--device", task.device]
        self.translate += [] if task.threads is None else ["--threads", str(task.threads)]
        for side in ("source", "reference"):
            path = getattr(options, side)
            self.translate += [] if path is None else [f"--{side}", str(path)]


def measure(options: argparse.Namespace, commands: Commands) -> dict[str, Any]:
    """The peaks of both processes, or of one of them."""
    figures: dict[str, Any] = {}
    if options.measure != "translate" or options.model is None:
        result = _peaks("train", commands.train_and_save, figures)
        figures |= {name: result[name] for name in ("parameters", "parameters_mib")}
    if options.measure != "train":
        _peaks("translate", commands.translate, figures)
    return figures


def _peaks(name: str, command: Sequence[str], figures: dict[str, Any]) -> dict[str, Any]:
    """Run the command and add its peaks to `figures`; returns what it printed."""
    ran = run_command(command)
    figures[f"{name}_{FIELD}"] = round(ran.peak_resident_mib, 1)
    if "peak_device_mib" in ran.result:
        figures[f"{name}_peak_device_mib"] = ran.result["peak_device_mib"]
    return ran.result


def compared(options: argparse.Namespace, commands: Commands) -> dict[str, Any]:
    """Run one of the processes and the rival in turn."""
    if options.measure == "translate" and options.model is None:
        run_command(commands.train_and_save)
    return compare(
        commands.train if options.measure == "train" else commands.translate,
        options.against,
        runs=options.runs,
        field=f"{options.measure}_{FIELD}",
        unit="MiB",
        measure=lambda command: round(run_command(command).peak_resident_mib, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--updates", type=positive, default=50, help="updates to train for (default: 50)")
    parser.add_argument("--measure", choices=("train", "translate", "both"), default="both", help="default: both")
    add_task_options(parser)
    group = parser.add_argument_group("what to translate, and how")
    group.add_argument("--model", type=Path, metavar="PATH", help="model file or run folder (default: the one trained)")
    group.add_argument("--beam", type=positive, default=5, help="beam size (default: 5)")
    group.add_argument("--batch", type=positive, default=64, metavar="N", help="sentences per batch (default: 64)")
    group.add_argument("--source", type=Path, metavar="FILE", help="default: Multi30k's test set")
    group.add_argument("--reference", type=Path, metavar="FILE", help="its translations")
    add_rival_options(parser, prints="only its peak memory matters, not what it prints", runs=3)
    options = parser.parse_args(arguments)
    if options.against and options.measure == "both":
        parser.error("--against needs --measure train or --measure translate, whichever the rival does")
    if options.measure == "train" and options.model:
        parser.error("--model has no effect with --measure train")
    task = chosen_task(options)

    def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            commands = Commands(options, task, Path(folder))
            figures = compared(options, commands) if options.against else measure(options, commands)
        how = {"config": task.config.name, "variant": task.variant, "device": task.device}
        how |= {"precision": task.precision, "kernels": task.kernels}
        how |= {"updates": options.updates, "beam": options.beam, "batch": options.batch}
        print(json.dumps({**how, **figures}))

    return run("memory", body)


if __name__ == "__main__":
    sys.exit(main())
