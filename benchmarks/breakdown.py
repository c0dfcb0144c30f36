#!/usr/bin/env python3
"""Where the time of an update goes, compared with what the machine's matrix products could do.

    python benchmarks/breakdown.py --updates 20 --precision bfloat16
    python benchmarks/breakdown.py --variant local_p --threads 1

trains the reference task or a variant under PyTorch's profiler and prints a table of the kinds of work with their
shares, and one JSON line. For products it counts floating-point operations, and so the rate at which they ran, to be
compared with the rates of one large product and of one from a decoder's step, each repeated on its own. The profiler
takes time itself, so read the shares; train_speed.py measures speed. On the CPU only.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.reference_task import Task, add_task_options, chosen_task, positive
from benchmarks.train_speed import WARM_UP, timed_updates
from nmt.cli.common import run
from nmt.data.prepare import prepare
from nmt.errors import UserError
from nmt.models.combinations import model_problems
from nmt.models.seq2seq import build_model
from nmt.ops.computing import computing, rounded
from nmt.ops.products import product
from nmt.training.update import chosen_computing

PRODUCTS = "matrix products"
PYTHON = "Python, autograd, dispatch"
REST = "element-wise operations, sums"
# Operations by their names in the profiler, without "aten::"; those in no group belong to REST.
GROUPS: dict[str, tuple[str, ...]] = {
    PRODUCTS: ("mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "addmv_", "addmv", "mv"),
    "copies, rounding, gathering": (
        *("copy_", "cat", "stack", "fill_", "zero_", "index_select", "gather", "scatter_add_", "constant_pad_nd"),
        *("_index_put_impl_", "index", "index_add_", "embedding", "embedding_dense_backward"),
    ),
    "softmax and its exponentials": ("_log_softmax", "_softmax", "_softmax_backward_data", "exp_", "exp"),
    "optimizer and gradient norm": ("_fused_adam_", "linalg_vector_norm", "_foreach_norm", "_foreach_mul_"),
    "random numbers": ("uniform_", "bernoulli_", "random_", "rand"),
}
SECONDS = 0.3  # for which a product is repeated
LARGE, STEP = (256, 512, 8000), (80, 512, 1536)  # rows, inner size, columns: an output layer; the gates of a step


class Event(NamedTuple):
    """All calls of an operation with inputs of the same shapes."""

    name: str
    seconds: float  # in the operation itself, without the operations it calls
    calls: int
    shapes: Sequence[Sequence[int]]


def operations(name: str, shapes: Sequence[Sequence[int]]) -> int:
    """Floating-point operations of a product, two for each multiplication with its addition; 0 for anything else."""
    if name not in GROUPS[PRODUCTS]:
        return 0
    left, right = [shape for shape in shapes if len(shape) > 0][-2:] if not name.startswith("add") else shapes[1:3]
    return 2 * math.prod(left) * (right[-1] if len(right) > 1 else 1)


def grouped(events: Iterable[Event], wall: float) -> dict[str, float]:
    """The seconds of each group; Python gets the part of `wall` that no operation accounts for."""
    seconds = dict.fromkeys((*GROUPS, REST), 0.0)
    for event in events:
        seconds[next((group for group, names in GROUPS.items() if event.name in names), REST)] += event.seconds
    return {**seconds, PYTHON: max(0.0, wall - sum(seconds.values()))}


def rate(rows: int, inner: int, columns: int) -> float:
    """Floating-point operations per second of a product of these sizes, computed as currently chosen."""
    left, right = torch.randn(rows, inner), rounded(torch.randn(columns, inner)).t()
    product(left, right)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        product(left, right)
        count += 1
    return 2 * rows * inner * columns * count / (time.perf_counter() - began)


def measure(task: Task, updates: int) -> dict[str, Any]:
    """Profile this many updates, after WARM_UP others."""
    config = task.load([model_problems])
    if task.device != "cpu":
        raise UserError(f"--device {task.device}: the breakdown works only on the CPU")
    if task.threads is not None:
        torch.set_num_threads(task.threads)
    device, kept = torch.device("cpu"), config.data.cache_folder
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as cache:
        prepared = prepare(config, cache=Path(cache), log=lambda message: print(message, file=sys.stderr))
        torch.manual_seed(config.seed)
        source, target = prepared.vocabularies
        model = build_model(config.model, source_size=source.size, target_size=target.size).train()
        stream = timed_updates(model, config, prepared, device)
        list(islice(stream, WARM_UP))
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            timed = list(islice(stream, updates))
    events = [
        Event(event.key.removeprefix("aten::"), event.self_cpu_time_total / 1e6, event.count, event.input_shapes)
        for event in profiler.key_averages(group_by_input_shape=True)
        if event.key.startswith("aten::")
    ]
    wall, tokens = sum(update.seconds for update in timed), sum(update.tokens for update in timed)
    seconds = grouped(events, wall)
    flop = sum(operations(event.name, event.shapes) * event.calls for event in events)
    choice = chosen_computing(config.training, device)
    with computing(*choice):
        large, step = (rate(*sizes) for sizes in (LARGE, STEP))
    return {
        "variant": task.variant,
        "computing": str(choice),
        "threads": torch.get_num_threads(),
        "updates": updates,
        "milliseconds": {group: round(1000 * value / updates, 2) for group, value in seconds.items()},
        "shares": {group: round(value / wall, 4) for group, value in seconds.items()},
        "mflop_per_target_token": round(flop / tokens / 1e6, 4),
        "products_gflop_per_second": round(flop / seconds[PRODUCTS] / 1e9, 1),
        "large_product_gflop_per_second": round(large / 1e9, 1),
        "step_product_gflop_per_second": round(step / 1e9, 1),
        "target_tokens_per_second_if_only_large_products": round(large * tokens / flop),
    }


def table(figures: dict[str, Any]) -> str:
    """The groups as a Markdown table, the largest first."""
    milliseconds, shares = figures["milliseconds"], figures["shares"]
    groups = sorted(milliseconds, key=lambda group: -milliseconds[group])
    lines = [f"| {group} | {milliseconds[group]:.1f} | {shares[group]:.0%} |" for group in groups]
    return "\n".join(["| work | ms per update | share |", "| --- | ---: | ---: |", *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--updates", type=positive, default=20, help="updates to profile (default: 20)")
    add_task_options(parser)
    options = parser.parse_args(arguments)

    def body() -> None:
        figures = measure(chosen_task(options), options.updates)
        print(table(figures))
        print(json.dumps(figures))

    return run("breakdown", body)


if __name__ == "__main__":
    sys.exit(main())
