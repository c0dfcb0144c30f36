"""What a training would be, without training: data, samples, parameters, memory of the largest batch, and time."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from nmt.config import Config
from nmt.data.batch import Batch, Indices
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
WARM_UP, TIMED = 2, 10  # updates
LONGEST_TIMED = 20.0  # seconds after which no further update is timed


def describe(
    config: Config, prepared: Prepared, model: Seq2Seq, candidates: MakeCandidates | None = None
) -> Iterator[str]:
    """The report, line by line. It changes the model's weights and the random states.

    `candidates`: as the trainer has it.
    """
    watched = [(f"watched corpus {name}", ids) for name, ids in prepared.watched.items()]
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
    yield f"time: {_time(config, prepared, model, plan, candidates)}"


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
    """Compute one update with the batch that has most (sentence, source, target) positions, and measure its memory."""
    sizes = _sizes_of_batches(prepared, plan)
    (batch,) = _read(config, prepared, [plan[int(np.argmax(sizes.prod(axis=1)))]])
    with _peak_memory(model.output_weight.device) as peak:
        _Updates(config, model, candidates)([batch])
    sides = f"{batch.source.size(1)} source and {counted(batch.target.size(1) - 1, 'target position')}"
    shape = f"{counted(len(batch.indices), 'sentence')}, {sides}"
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    used = f"{peak[0] / 2**20:,.0f} MiB" if peak else "not measured on this system"
    return f"{shape}; memory {used} for its update, besides {weights / 2**20:,.0f} MiB of weights"


def _time(
    config: Config, prepared: Prepared, model: Seq2Seq, plan: Sequence[Indices], candidates: MakeCandidates | None
) -> str:
    """How long the planned updates will take on this machine, by a few that are spread over the first epoch.

    As their batches differ in size, the time that is measured is that of a position of source or target.
    """
    settings = config.training
    make_update = _Updates(config, model, candidates)
    sizes = _sizes_of_batches(prepared, plan)
    positions = sizes[:, 0] * (sizes[:, 1] + sizes[:, 2])
    updates = [slice(start, start + settings.accumulate) for start in range(0, len(plan), settings.accumulate)]
    chosen = [updates[index * len(updates) // TIMED] for index in range(TIMED)]
    seconds, measured = 0.0, 0
    for number, batches_of_update in enumerate([*chosen[:WARM_UP], *chosen]):
        group = _read(config, prepared, plan[batches_of_update])
        began = time.perf_counter()
        make_update(group)
        if number >= WARM_UP:
            seconds += time.perf_counter() - began
            measured += int(positions[batches_of_update].sum())
        if seconds > LONGEST_TIMED:
            break
    limits = [] if settings.max_updates is None else [settings.max_updates]
    if settings.max_epochs is not None:
        limits.append(settings.max_epochs * len(updates))
    of_update = seconds / measured * float(positions.sum()) / len(updates)
    early = "" if settings.early_stopping is None else ", or fewer if it stops early"
    return f"about {_about(of_update * min(limits))} for {counted(min(limits), 'update')}{early}, without validation"


def _about(seconds: float) -> str:
    """A duration in the unit that a person would choose."""
    for unit, size, most in (("second", 1, 90), ("minute", 60, 90 * 60), ("hour", 3600, 48 * 3600)):
        if seconds < most:
            return counted(max(1, round(seconds / size)), unit)
    return counted(round(seconds / 86400), "day")


class _Updates:
    """Updates as the trainer makes them: with words that are sampled, candidates, and the weights' moving average."""

    def __init__(self, config: Config, model: Seq2Seq, candidates: MakeCandidates | None) -> None:
        self.settings, self.model, self.candidates = config.training, model.train(), candidates
        self.optimizer = build_optimizer(model.parameters(), self.settings, parts(model))
        average = self.settings.moving_average
        self.average = None if average is None else MovingAverage(model, average.decay)

    def __call__(self, group: Sequence[Batch]) -> None:
        settings, device = self.settings, self.model.output_weight.device
        chosen, sampling = chosen_computing(settings, device), settings.scheduled_sampling
        if sampling is not None:
            with computing(*chosen):
                group = [with_own_words(self.model, batch.to(device), sampling.probability) for batch in group]
        if self.candidates is not None:
            with computing(fused=chosen.fused):
                group = [batch._replace(candidates=self.candidates(self.model, batch, 0)) for batch in group]
        update(self.model, self.optimizer, group, rate=settings.optimizer.learning_rate, config=settings)
        if self.average is not None:
            self.average.follow(1)
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def _sizes_of_batches(prepared: Prepared, plan: Sequence[Indices]) -> npt.NDArray[np.int64]:
    """Sentences, source positions, and target positions of each batch, (batches, 3); the end mark has one, too."""
    source, target = prepared.train.source_lengths, prepared.train.target_lengths
    return np.array([(len(rows), int(source[rows].max()) + 1, int(target[rows].max()) + 1) for rows in plan])


def _read(config: Config, prepared: Prepared, plan: Sequence[Indices]) -> list[Batch]:
    """The batches of a plan, as one process of the trainer reads them, which has all rows."""
    stream = batches(
        prepared.train,
        plan,
        vocabularies=prepared.vocabularies,
        sampling=config.subwords.sampling,
        sort_by=config.training.sort_by,
        seed=config.seed,
    )
    return [batch for batch in stream if batch is not None]


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
