#!/usr/bin/env python3
"""Peak memory of training and of translating the reference task, and its variants.

    python benchmarks/memory.py --updates 50
    python benchmarks/memory.py --measure train --against "RIVAL"

runs benchmarks/train_speed.py and then benchmarks/translate_speed.py, each in a process of its own, and prints one JSON
line: the most that the process held in main memory, everything included (Python, the libraries, the mapped part of
the corpus), and on CUDA the most that PyTorch's tensors took on the device. It translates with the model just trained,
whose translations tend to be long, or with --model. `--against COMMAND` runs another program in turn with one of the
two (--measure), `--runs` times each, and takes the peak of its largest process. All in MiB.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, too, it finds its neighbours

from benchmarks.in_turn import add_rival_options, compare, run_command
from benchmarks.reference_task import Task, add_task_options, chosen_task, positive
from nmt.cli.common import run

HERE = Path(__file__).resolve().parent
FIELD = "peak_resident_mib"


class Commands:
    """The two processes that are measured."""

    def __init__(self, given: argparse.Namespace, task: Task, folder: Path) -> None:
        """`folder` takes the model that is trained."""
        self.model = given.model or folder / "model.safetensors"
        self.train = [sys.executable, str(HERE / "train_speed.py"), *task.arguments, "--updates", str(given.updates)]
        self.train_and_save = [*self.train, "--save", str(folder / "model.safetensors")]
        self.translate = [sys.executable, str(HERE / "translate_speed.py"), "--model", str(self.model)]
        self.translate += ["--beam", str(given.beam), "--batch", str(given.batch), "--device", task.device]
        self.translate += [] if task.threads is None else ["--threads", str(task.threads)]
        for option in ("source", "reference"):
            path = getattr(given, option)
            self.translate += [] if path is None else [f"--{option}", str(path)]


def measure(given: argparse.Namespace, commands: Commands) -> dict[str, Any]:
    """The peaks of both processes, or of one of them."""
    found: dict[str, Any] = {}
    if given.measure != "translate" or given.model is None:
        result = _peaks("train", commands.train_and_save, found)
        found |= {name: result[name] for name in ("parameters", "parameters_mib")}
    if given.measure != "train":
        _peaks("translate", commands.translate, found)
    return found


def _peaks(name: str, command: Sequence[str], found: dict[str, Any]) -> dict[str, Any]:
    """Run the command and add its peaks to `found`; returns what it printed."""
    ran = run_command(command)
    found[f"{name}_{FIELD}"] = round(ran.peak_resident_mib, 1)
    if "peak_device_mib" in ran.result:
        found[f"{name}_peak_device_mib"] = ran.result["peak_device_mib"]
    return ran.result


def compared(given: argparse.Namespace, commands: Commands) -> dict[str, Any]:
    """Run one of the processes and the rival in turn."""
    if given.measure == "translate" and given.model is None:
        run_command(commands.train_and_save)
    return compare(
        commands.train if given.measure == "train" else commands.translate,
        given.against,
        runs=given.runs,
        field=f"{given.measure}_{FIELD}",
        unit="MiB",
        measure=lambda command: round(run_command(command).peak_resident_mib, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--updates", type=positive, default=50, help="updates of the training (default: 50)")
    parser.add_argument("--measure", choices=("train", "translate", "both"), default="both", help="default: both")
    add_task_options(parser)
    group = parser.add_argument_group("what is translated, and how")
    group.add_argument("--model", type=Path, metavar="PATH", help="model file or run folder (default: the one trained)")
    group.add_argument("--beam", type=positive, default=5, help="beam size (default: 5)")
    group.add_argument("--batch", type=positive, default=64, metavar="N", help="sentences a batch (default: 64)")
    group.add_argument("--source", type=Path, metavar="FILE", help="default: Multi30k's test set")
    group.add_argument("--reference", type=Path, metavar="FILE", help="its translations")
    add_rival_options(parser, prints="its peak memory is taken, whatever it prints", runs=3)
    given = parser.parse_args(arguments)
    if given.against and given.measure == "both":
        parser.error("--against needs --measure train or --measure translate: what the rival does too")
    if given.measure == "train" and given.model:
        parser.error("--model has no effect with --measure train")
    task = chosen_task(given)

    def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            commands = Commands(given, task, Path(folder))
            figures = compared(given, commands) if given.against else measure(given, commands)
        how = {"config": task.config.name, "variant": task.variant, "device": task.device}
        how |= {"precision": task.precision, "kernels": task.kernels}
        print(json.dumps({**how, "updates": given.updates, "beam": given.beam, "batch": given.batch, **figures}))

    return run("memory", body)


if __name__ == "__main__":
    sys.exit(main())
