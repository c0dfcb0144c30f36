"""What a training would be, without training: samples, parameters, memory of the largest batch, and time."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from nmt.data.batch import Indices
from nmt.data.planning import padding_share, plan_epoch
from nmt.data.prepare import Prepared
from nmt.data.store import PairedIds
from nmt.errors import counted
from nmt.models.seq2seq import Seq2Seq
from nmt.training.trainer import Trainer

SAMPLES = 3
WARM_UP, TIMED = 2, 10  # updates
LONGEST_TIMED = 20.0  # seconds after which no further update is timed


def describe(prepared: Prepared, trainer: Trainer) -> Iterator[str]:
    """The report on what `trainer` would do, line by line. It changes the model's weights and the random states."""
    yield from _samples(prepared)
    yield from parameters(trainer.model)
    plan = plan_epoch(prepared.train, trainer.config, epoch=0)
    share = padding_share(plan, prepared.train.source_lengths, prepared.train.target_lengths)
    trainer.is_trial = True
    yield f"batches: {len(plan):,} in the first epoch, {share:.2%} padding"
    yield f"largest batch: {_largest_batch(trainer, plan)}"
    yield f"time, without validation: {_time(trainer, plan)}"


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


def _largest_batch(trainer: Trainer, plan: Sequence[Indices]) -> str:
    """Compute one update with the batch that has most (sentence, source, target) positions, and measure its memory."""
    sizes = _sizes_of_batches(trainer.corpus, plan)
    largest = int(np.argmax(sizes.prod(axis=1)))
    sentences, source, target = sizes[largest].tolist()
    with _peak_memory(trainer.model.output_weight.device) as peak:
        _update(trainer, [plan[largest]])
    shape = f"{counted(sentences, 'sentence')}, {source} source and {counted(target, 'target position')}"
    averaged = [] if trainer.states.average is None else trainer.states.average.weights.values()
    weights = sum(weight.nbytes for weight in (*trainer.model.parameters(), *averaged))
    used = f"{peak[0] / 2**20:,.0f} MiB" if peak else "not measured on this system"
    return f"{shape}; memory {used} for its update, besides {weights / 2**20:,.0f} MiB of weights"


def _time(trainer: Trainer, plan: Sequence[Indices]) -> str:
    """How long training will take on this machine at most, and up to each validation, by a few updates that are spread
    over the first epoch.

    As their batches differ in size, the time that is measured is that of a position of source or target.
    """
    settings = trainer.settings
    sizes = _sizes_of_batches(trainer.corpus, plan)
    positions = sizes[:, 0] * (sizes[:, 1] + sizes[:, 2])
    updates = [slice(start, start + settings.accumulate) for start in range(0, len(plan), settings.accumulate)]
    chosen = [updates[index * len(updates) // TIMED] for index in range(TIMED)]
    seconds, measured = 0.0, 0
    for number, batches_of_update in enumerate([*chosen[:WARM_UP], *chosen]):
        needed = _update(trainer, plan[batches_of_update])
        if number >= WARM_UP:
            seconds += needed
            measured += int(positions[batches_of_update].sum())
        if seconds > LONGEST_TIMED:
            break
    of_update = seconds / measured * float(positions.sum()) / len(updates)

    def lasting(count: int) -> str:
        return f"{_about(of_update * count)} ({counted(count, 'update')})"

    every = settings.validate_every
    between = (
        f"{lasting(every.count * (len(updates) if every.unit == 'epochs' else 1))} from one validation to the next"
    )
    limits = [] if settings.max_updates is None else [settings.max_updates]
    if settings.max_epochs is not None:
        limits.append(settings.max_epochs * len(updates))
    if settings.early_stopping is None:
        return f"about {lasting(min(limits))}, {between}"
    at_most = f", at most {lasting(min(limits))}" if limits else ""
    patience = f"{counted(settings.early_stopping.patience, 'validation')} in a row"
    share = f", and {settings.early_stopping.share:.0%} of all," if settings.early_stopping.share else ""
    return f"about {between}{at_most}; training ends when {patience}{share} bring nothing better"


def _update(trainer: Trainer, plan: Sequence[Indices]) -> float:
    """Make an update of the planned batches; returns the seconds it took."""
    began = time.perf_counter()
    (group,) = trainer.groups(plan, start=0)
    trainer.update(group, began)
    getattr(torch, trainer.model.output_weight.device.type).synchronize()
    return time.perf_counter() - began


def _about(seconds: float) -> str:
    """A duration in the unit that a person would choose."""
    for unit, size, most in (("second", 1, 90), ("minute", 60, 90 * 60), ("hour", 3600, 48 * 3600)):
        if seconds < most:
            return counted(max(1, round(seconds / size)), unit)
    return counted(round(seconds / 86400), "day")


def _sizes_of_batches(corpus: PairedIds, plan: Sequence[Indices]) -> npt.NDArray[np.int64]:
    """Sentences, source positions, and target positions of each batch, (batches, 3); the end mark has one, too."""
    source, target = corpus.source_lengths, corpus.target_lengths
    return np.array([(len(rows), int(source[rows].max()) + 1, int(target[rows].max()) + 1) for rows in plan])


@contextmanager
def _peak_memory(device: torch.device) -> Iterator[list[int]]:
    """A list that holds, after the block, the bytes by which the memory in use rose above its level before the block.

    On most GPUs PyTorch counts them, and on Linux the kernel; elsewhere the list stays empty. The kernel does not see
    what fills memory that this process had freed and kept.
    """
    peak: list[int] = []
    if hasattr(counts := getattr(torch, device.type), "max_memory_allocated"):
        counts.reset_peak_memory_stats(device)
        before = counts.memory_allocated(device)
        yield peak
        peak.append(counts.max_memory_allocated(device) - before)
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
