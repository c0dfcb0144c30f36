"""What a training would be, without training: data, samples, parameters, and the memory of its largest batch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn

from nmt.config import Config
from nmt.data.batch import Indices
from nmt.data.batching import batches
from nmt.data.planning import changes_by_epoch, mixture, padding_share, plan_epoch
from nmt.data.prepare import Prepared
from nmt.errors import counted
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import computing
from nmt.training.moving_average import MovingAverage
from nmt.training.optim import build_optimizer
from nmt.training.scheduled_sampling import with_own_words
from nmt.training.starting_weights import parts
from nmt.training.trainer import MakeCandidates
from nmt.training.update import chosen_computing, update

SAMPLES = 3


def describe(
    config: Config, prepared: Prepared, model: Seq2Seq, candidates: MakeCandidates | None = None
) -> Iterator[str]:
    """The report, line by line. It changes the model's weights and the random states.

    `candidates`: as the trainer has it.
    """
    watched = [(f"watched corpus {name}", ids) for name, ids, _ in prepared.watched]
    for name, corpus in (("training corpus", prepared.train), ("validation corpus", prepared.valid), *watched):
        pairs, *sides = corpus.report.lines()
        yield f"{name}: {pairs}"
        yield from (f"  {side}" for side in sides)
    yield from mixture(config.data.train, prepared.train.sizes)
    yield from _samples(prepared)
    yield from parameters(model)
    plan = plan_epoch(prepared.train, config, epoch=0)
    share = padding_share(plan, prepared.train.source_lengths, prepared.train.target_lengths)
    is_first = changes_by_epoch(config.data.train)
    which, note = ("in the first", "; other epochs read other pairs") if is_first else ("an", "")
    yield f"batches: {len(plan):,} {which} epoch, {share:.2%} padding{note}"
    measured = _largest_batch(config, prepared, model, plan, candidates)
    yield f"largest batch{' of the first epoch' if is_first else ''}: {measured}"


def _samples(prepared: Prepared) -> Iterator[str]:
    """Segmented pairs from the beginning, the middle and the end of the training corpus."""
    rows = np.linspace(0, len(prepared.train) - 1, SAMPLES, dtype=np.int64)
    for row in dict.fromkeys(rows.tolist()):
        source, target = prepared.train.source(row).tolist(), prepared.train.target(row).tolist()
        yield f"sample {row + 1:,}"
        yield f"  source: {' '.join(prepared.vocabularies.source.pieces(source))}"
        yield f"  target: {' '.join(prepared.vocabularies.target.pieces(target))}"


def parameters(model: Seq2Seq) -> Iterator[str]:
    """The number of parameters: in all, of each module, and how many of them are frozen."""
    modules = {name: module for name, module in model.named_children() if module is not None}
    yield f"parameters: {_sizes(model)}"
    for name, module in modules.items():
        yield f"  {name}: {_sizes(module)}"


def _sizes(module: nn.Module) -> str:
    count = sum(weight.numel() for weight in module.parameters())
    frozen = sum(weight.numel() for weight in module.parameters() if not weight.requires_grad)
    return f"{count:,}" + (f", {frozen:,} of them frozen" if frozen else "")


def _largest_batch(
    config: Config,
    prepared: Prepared,
    model: Seq2Seq,
    plan: Sequence[Indices],
    candidates: MakeCandidates | None,
) -> str:
    """Compute one update with the batch that has most (sentence, source, target) positions, and measure its memory.

    It has all that the trainer's have: words that are sampled, candidates, and the weights' moving average.
    """
    source, target = prepared.train.source_lengths, prepared.train.target_lengths
    sizes = [len(rows) * (int(source[rows].max()) + 1) * (int(target[rows].max()) + 1) for rows in plan]
    rows = plan[int(np.argmax(sizes))]
    (batch,) = batches(
        prepared.train,
        [rows],
        vocabularies=prepared.vocabularies,
        sampling=config.subwords.sampling,
        sort_by=config.training.sort_by,
        seed=config.seed,
    )
    assert batch is not None  # one process has every row
    settings, device = config.training, model.output_weight.device
    optimizer = build_optimizer(model.parameters(), settings, parts(model))
    chosen, sampling = chosen_computing(settings, device), settings.scheduled_sampling
    model.train()
    with _peak_memory(device) as peak:
        average = None if settings.moving_average is None else MovingAverage(model, settings.moving_average.decay)
        if sampling is not None:
            with computing(*chosen):
                batch = with_own_words(model, batch.to(device), sampling.probability)
        if candidates is not None:
            with computing(fused=chosen.fused):
                batch = batch._replace(candidates=candidates(model, batch, 0))
        update(model, optimizer, [batch], rate=settings.optimizer.learning_rate, config=settings)
        if average is not None:
            average.follow(1)
    sides = f"{batch.source.size(1)} source and {counted(batch.target.size(1) - 1, 'target position')}"
    shape = f"{counted(len(rows), 'sentence')}, {sides}"
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    used = f"{peak[0] / 2**20:,.0f} MiB" if peak else "not measured on this system"
    return f"{shape}; memory {used} for its update, besides {weights / 2**20:,.0f} MiB of weights"


@contextmanager
def _peak_memory(device: torch.device) -> Iterator[list[int]]:
    """A list that holds, after the block, the bytes by which the memory in use rose above its level before the block.

    On a GPU PyTorch counts them, and on Linux the kernel; elsewhere the list stays empty. The kernel does not see what
    fills memory that this process had freed and kept.
    """
    peak: list[int] = []
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield peak
        peak.append(torch.cuda.max_memory_allocated(device) - before)
        return
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is the present from now on
    except OSError:
        yield peak
        return
    before = resident("VmRSS")
    yield peak
    peak.append(max(0, resident("VmHWM") - before))  # the kernel counts coarsely


def resident(what: str) -> int:
    """The resident memory of this process (VmRSS) or its peak (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))
