#!/usr/bin/env python3
"""Training speed of the reference task on the CPU in float32: Multi30k English-German, configs/multi30k_en_de.yaml.

    python scripts/get_multi30k.py --output data/multi30k
    python benchmarks/train_speed.py --updates 150

prints one JSON line. An update counts from fetching its batch to the end of the optimiser's step; the first ones warm
up. `--against COMMAND` runs another program in turn with this one, `--runs` times each: the last line that it prints
must be a JSON object with `target_tokens_per_second`. Machines are noisy: compare medians of runs in turn on one
machine.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from nmt.cli.common import choose_device, run
from nmt.config import load_config
from nmt.data.batching import batches, plan_epoch
from nmt.data.preparation import prepare
from nmt.errors import UserError
from nmt.models.seq2seq import build_model
from nmt.training.optim import build_optimizer
from nmt.training.update import update

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "multi30k_en_de.yaml"
WARM_UP = 20


def measure(updates: int) -> dict[str, Any]:
    """Train for WARM_UP + `updates` updates, and time each of the latter."""
    config = load_config(CONFIG)
    device = choose_device("cpu")
    with tempfile.TemporaryDirectory() as cache:
        prepared = prepare(config, cache=Path(cache), log=lambda message: print(message, file=sys.stderr))
        torch.manual_seed(config.seed)
        source, target = prepared.vocabularies
        model = build_model(config.model, source_size=source.size, target_size=target.size).to(device).train()
        optimizer = build_optimizer(model.parameters(), config.training)
        rate = config.training.optimizer.learning_rate
        rates: list[float] = []
        tokens, epoch, total = 0, 0, 0.0
        while len(rates) < WARM_UP + updates:
            plan = plan_epoch(prepared.train, config, epoch=epoch)
            stream = batches(prepared.train, plan)
            for _ in range(min(len(plan), WARM_UP + updates - len(rates))):
                began = time.perf_counter()
                result = update(
                    model,
                    optimizer,
                    [next(stream)],
                    rate=rate,
                    config=config.training,
                )
                seconds = time.perf_counter() - began
                rates.append(result.tokens / seconds)
                if len(rates) > WARM_UP:
                    tokens, total = tokens + result.tokens, total + seconds
            epoch += 1
    return {
        "task": "multi30k_en_de",
        "device": "cpu",
        "precision": "float32",
        "threads": torch.get_num_threads(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "updates": updates,
        "target_tokens_per_second": round(statistics.median(rates[WARM_UP:]), 1),
        "overall_target_tokens_per_second": round(tokens / total, 1),
    }


def compare(updates: int, rival: str, runs: int) -> dict[str, Any]:
    """Run this benchmark and the rival in turn, each in a process of its own."""
    mine = [sys.executable, __file__, "--updates", str(updates)]
    speeds: dict[str, list[float]] = {"ours": [], "rival": []}
    for _ in range(runs):
        for name, command in (("ours", mine), ("rival", shlex.split(rival))):
            speeds[name].append(_speed(command))
            print(f"{name}: {speeds[name][-1]:,.0f} target tokens/s", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    return {
        "target_tokens_per_second": medians["ours"],
        "rival_target_tokens_per_second": medians["rival"],
        "ratio": round(medians["ours"] / medians["rival"], 3),
        "runs": speeds,
    }


def _speed(command: list[str]) -> float:
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        return float(json.loads(finished.stdout.splitlines()[-1])["target_tokens_per_second"])
    except (IndexError, KeyError, ValueError) as error:
        raise UserError(
            f"{shlex.join(command)}: ended with code {finished.returncode} and without a last line that is "
            "a JSON object with target_tokens_per_second"
        ) from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=150, help="updates that are timed (default: 150)")
    parser.add_argument("--against", metavar="COMMAND", help="another program to run in turn with this one")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, with --against (default: 5)")
    options = parser.parse_args()

    def body() -> None:
        if options.updates < 1 or options.runs < 1:
            raise UserError("--updates and --runs must be 1 or more")
        result = (
            compare(options.updates, options.against, options.runs) if options.against else measure(options.updates)
        )
        print(json.dumps(result))

    return run("train_speed", body)


if __name__ == "__main__":
    sys.exit(main())
