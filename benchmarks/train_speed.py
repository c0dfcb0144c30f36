#!/usr/bin/env python3
"""Training speed of the reference task: Multi30k English-German, configs/multi30k_en_de_luong.yaml, and its variants.

    python scripts/get_multi30k.py --output data/multi30k
    python benchmarks/train_speed.py --updates 150
    python benchmarks/train_speed.py --variant lstm_luong_general --precision bfloat16 --threads 1

prints one JSON line. An update is timed from fetching its batches to the end of the optimizer's step; the first ones
are a warm-up. `--against COMMAND` runs another program in turn with this one, `--runs` times each: its last line of
output must be a JSON object with `target_tokens_per_second`. Machines are noisy: compare medians of runs in turn on the
same machine.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.in_turn import MEBIBYTE, add_rival_options, compare, own_peak_resident_mib, run_command
from benchmarks.reference_task import Task, add_task_options, chosen_task, positive
from nmt.cli.common import run
from nmt.config.schema import Config
from nmt.data.batching import batches
from nmt.data.planning import plan_epoch
from nmt.data.prepare import Prepared, prepare
from nmt.devices import choose_device
from nmt.models.combinations import model_problems
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.optim import build_optimizer
from nmt.training.update import chosen_computing, update

WARM_UP = 20
FIELD = "target_tokens_per_second"


class Timed(NamedTuple):
    """A timed update."""

    tokens: int  # target tokens
    seconds: float
    ended: float  # seconds since 1970


def measure(task: Task, updates: int, *, save: Path | None = None) -> dict[str, Any]:
    """Train for WARM_UP + `updates` updates, and time the latter. `save`: a file to write the model to afterwards."""
    config = task.load([model_problems])
    device = choose_device(task.device)
    if task.threads is not None:
        torch.set_num_threads(task.threads)
    kept = config.data.cache_folder
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        prepared = prepare(config, cache=Path(cache), log=lambda message: print(message, file=sys.stderr))
        preparation = time.perf_counter() - began
        torch.manual_seed(config.seed)
        source, target = prepared.vocabularies
        model = build_model(config.model, source_size=source.size, target_size=target.size).to(device).train()
        all_updates = list(islice(timed_updates(model, config, prepared, device), WARM_UP + updates))
        memory = {"peak_resident_mib": round(own_peak_resident_mib(), 1)}
        if device.type == "cuda":
            memory["peak_device_mib"] = round(torch.cuda.max_memory_allocated() / MEBIBYTE, 1)
        if save is not None:
            sizes = source.size, target.size
            save_model(save, ModelFile(config, model.state_dict(), source.model, target.model, sizes, {}))
    timed = all_updates[WARM_UP:]
    return {
        "task": config.name,
        "variant": task.variant,
        "device": task.device,
        "precision": config.training.precision,
        "kernels": config.training.kernels,
        "computing": str(chosen_computing(config.training, device)),
        "threads": torch.get_num_threads(),
        "pytorch": torch.__version__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "multiplied": multiplied(model),
        "parameters_mib": round(sum(parameter.nbytes for parameter in model.parameters()) / MEBIBYTE, 1),
        "pieces": [source.size, target.size],
        "pairs": len(prepared.train),
        "preparation_seconds": round(preparation, 3),
        "first_update_at": all_updates[0].ended,
        "updates": updates,
        FIELD: round(statistics.median(tokens / seconds for tokens, seconds, _ in timed), 1),
        f"overall_{FIELD}": round(sum(tokens for tokens, _, _ in timed) / sum(seconds for _, seconds, _ in timed), 1),
        **memory,
    }


def timed_updates(model: Seq2Seq, config: Config, prepared: Prepared, device: torch.device) -> Iterator[Timed]:
    """Train epoch after epoch at the configuration's initial learning rate."""
    optimizer = build_optimizer(model.parameters(), config.training)
    epoch = 0
    while True:
        plan = plan_epoch(prepared.train, config, epoch=epoch)
        stream = batches(
            prepared.train,
            plan,
            vocabularies=prepared.vocabularies,
            sampling=config.subwords.sampling,
            seed=config.seed,
            epoch=epoch,
        )
        for start in range(0, len(plan), config.training.accumulate):
            wait_for(device)
            began = time.perf_counter()
            group = list(islice(stream, min(config.training.accumulate, len(plan) - start)))
            rate = config.training.optimizer.learning_rate
            result = update(model, optimizer, group, rate=rate, config=config.training)
            wait_for(device)
            yield Timed(result.tokens, time.perf_counter() - began, time.time())
        epoch += 1


def multiplied(model: Seq2Seq) -> int:
    """How many parameters are multiplied with: all but those that are only looked up."""
    only_read = {model.source_embedding.weight, model.target_embedding.weight} - {model.output_weight}
    return sum(parameter.numel() for parameter in model.parameters() if parameter not in only_read)


def wait_for(device: torch.device) -> None:
    """Return once everything is computed: a GPU computes while Python goes on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def compared(task: Task, updates: int, rival: str, runs: int) -> dict[str, Any]:
    """Run this benchmark and the rival in turn, each in a separate process."""
    ours = [sys.executable, __file__, *task.arguments, "--updates", str(updates)]
    figures = compare(
        ours,
        rival,
        runs=runs,
        field=FIELD,
        unit="target tokens/s",
        measure=lambda command: run_command(command).number(FIELD, command),
    )
    how = {"variant": task.variant, "device": task.device, "precision": task.precision, "kernels": task.kernels}
    return {**how, "updates": updates, **figures}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--updates", type=positive, default=150, help="updates to time (default: 150)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the model to a file afterwards")
    add_task_options(parser)
    add_rival_options(parser, prints=f"its last line is a JSON object with {FIELD}", runs=5)
    options = parser.parse_args(arguments)
    if options.save and options.against:
        parser.error("--save has no effect with --against")
    task = chosen_task(options)

    def body() -> None:
        if options.against:
            result = compared(task, options.updates, options.against, options.runs)
        else:
            result = measure(task, options.updates, save=options.save)
        print(json.dumps(result))

    return run("train_speed", body)


if __name__ == "__main__":
    sys.exit(main())
