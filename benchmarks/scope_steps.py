#!/usr/bin/env python3
"""The cost of a scope of attention for sentences of one length: of a step in search, and of training.

    python benchmarks/scope_steps.py --measure search --length 400 --set model.attention.scope=local-p
    python benchmarks/scope_steps.py --measure training --length 400

prints one JSON line. The model has the sizes of the reference task and random weights. search: one step of attention
alone, for `--beam` hypotheses of one sentence in its middle, with packed weights. training: a whole update with
sentences of `--length` random words on both sides, of which a batch has `--tokens`, by target token. The figure is the
median of `--runs`, after one that does not count.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.reference_task import Task, add_task_options, chosen_task, positive
from benchmarks.train_speed import wait_for
from nmt.cli.common import run
from nmt.config import Config
from nmt.data.batch import make_batch
from nmt.devices import choose_device
from nmt.models.combinations import model_problems
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.symbols import PIECES
from nmt.training.optim import build_optimizer
from nmt.training.update import update

FIELD = "microseconds"


def search_step(model: Seq2Seq, length: int, beam: int) -> Callable[[], object]:
    """One step of attention in the middle of a sentence of `length` tokens."""
    model.eval().pack_weights("float32")
    device = model.output_weight.device
    state = model.start(torch.full((1, length), len(PIECES), device=device), torch.full((1,), length, device=device))
    state = state.select(torch.zeros(1, beam, dtype=torch.long, device=device))
    past, attention = state.decoder.past._replace(steps=length // 2), model.decoder.attention
    queries = torch.randn(beam, model.decoder.size, device=device)
    return lambda: attention.step(queries, state.memory, past)


def training_step(model: Seq2Seq, config: Config, length: int, tokens: int) -> Callable[[], object]:
    """An update with sentences of `length` tokens on both sides, END counted, about `tokens` in all."""
    count = max(1, tokens // length)
    ids = np.random.default_rng(1).integers(len(PIECES), config.subwords.size, (count, length - 1)).tolist()
    batch = make_batch(ids, ids, np.arange(count)).to(model.output_weight.device)
    optimizer = build_optimizer(model.parameters(), config.training)
    return lambda: update(model.train(), optimizer, [batch], rate=1e-4, config=config.training)


def measure(task: Task, what: str, *, length: int, beam: int, tokens: int, runs: int) -> dict[str, Any]:
    config = task.load([model_problems])
    device = choose_device(task.device)
    if task.threads is not None:
        torch.set_num_threads(task.threads)
    torch.manual_seed(config.seed)
    model = build_model(config.model, source_size=config.subwords.size, target_size=config.subwords.size).to(device)
    with torch.inference_mode(what == "search"):
        if what == "search":
            step, share = search_step(model, length, beam), 1
        else:
            step, share = training_step(model, config, length, tokens), max(1, tokens // length) * length
        seconds = []
        for _ in range(runs + 1):
            began = time.perf_counter()
            step()
            wait_for(device)
            seconds.append(time.perf_counter() - began)
    settings = {"measure": what, "scope": config.model.attention.scope, "length": length}
    return {
        **settings,
        "threads": torch.get_num_threads(),
        FIELD: round(1e6 * statistics.median(seconds[1:]) / share, 2),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--measure", choices=("search", "training"), required=True)
    parser.add_argument("--length", type=positive, required=True, help="tokens of a sentence, its end mark included")
    parser.add_argument("--beam", type=positive, default=5, help="hypotheses of the sentence (default: 5)")
    parser.add_argument("--tokens", type=positive, default=2000, help="target tokens of a batch (default: 2000)")
    parser.add_argument("--runs", type=positive, help="default: 500 steps of search, 5 updates")
    add_task_options(parser)
    options = parser.parse_args(arguments)
    runs = options.runs or {"search": 500, "training": 5}[options.measure]
    sizes = {"length": options.length, "beam": options.beam, "tokens": options.tokens}
    return run(
        "scope_steps", lambda: print(json.dumps(measure(chosen_task(options), options.measure, **sizes, runs=runs)))
    )


if __name__ == "__main__":
    sys.exit(main())
