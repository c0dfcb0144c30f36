"""Batches: which pairs of a corpus go together in an epoch, and their padded tensors.

It knows lengths and ids; it knows no files and no device but the one asked for. The plan of an epoch is a pure
function of the lengths, the seed and the epoch, so that an interrupted training continues with the batches it would
have seen.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.config.schema import Config, SubwordSampling
from nmt.data.binarised import PairedIds
from nmt.data.subwords import Subwords, Vocabularies
from nmt.symbols import BEGIN, END, PAD

Ids = Sequence[int] | npt.NDArray[np.integer]
Lengths = npt.NDArray[np.integer]
Indices = npt.NDArray[np.int64]


class Batch(NamedTuple):
    """Padded pairs: what one forward pass reads.

    The source has END appended, the target BEGIN before and END after it; PAD fills the ends of shorter rows.
    """

    source: Tensor  # (batch, source_length) int64
    source_lengths: Tensor  # (batch,) int64, END counted
    target: Tensor  # (batch, target_length + 1) int64
    target_lengths: Tensor  # (batch,) int64, pieces and END: the tokens the model has to write
    indices: Indices  # (batch,) rows of the corpus

    @property
    def target_input(self) -> Tensor:
        """What the decoder is fed, (batch, target_length): BEGIN and the pieces."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """What the decoder has to write, (batch, target_length): the pieces and END."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """Number of tokens the decoder has to write, padding left out."""
        return int(self.target_lengths.sum())

    @property
    def padding_share(self) -> float:
        """Padded positions / all positions of the source and the target output."""
        positions = self.source.numel() + self.target_output.numel()
        return 1 - (int(self.source_lengths.sum()) + self.target_tokens) / positions

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch with its tensors on the device."""
        source, source_lengths, target, target_lengths = (tensor.to(device) for tensor in self[:4])
        return Batch(source, source_lengths, target, target_lengths, self.indices)


def plan_batches(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    batch_size: int,
    batch_by: Literal["sentences", "tokens"],
    seed: int,
    epoch: int,
) -> list[Indices]:
    """Return the rows of each batch of an epoch, in training order: every row exactly once.

    Pairs are sorted by source and target length, those of equal lengths in random order, cut into batches, and the
    batches are shuffled. Lengths are pieces, END not counted.

    `batch_by` "sentences": `batch_size` pairs a batch, the rest in one smaller batch. "tokens": pairs times (longest
    source or target + 1 for END) stays within `batch_size`; a single pair above it is a batch of its own.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    order = random.permutation(len(source_lengths))
    order = order[np.argsort(_sort_keys(source_lengths, target_lengths)[order], kind="stable")]
    if batch_by == "sentences":
        ends = np.append(np.arange(batch_size, len(order), batch_size), len(order))
    else:
        ends = _token_ends(np.maximum(source_lengths, target_lengths)[order] + 1, batch_size)
    starts = np.append(0, ends[:-1])
    return [order[starts[batch] : ends[batch]] for batch in random.permutation(len(ends))]


def plan_epoch(corpus: PairedIds, config: Config, *, epoch: int) -> list[Indices]:
    """Return the batches of a training epoch (counted from 0), as the configuration has them; see `plan_batches`."""
    return plan_batches(
        corpus.source_lengths,
        corpus.target_lengths,
        batch_size=config.training.batch_size,
        batch_by=config.training.batch_by,
        seed=config.seed,
        epoch=epoch,
    )


def padding_share(plan: Sequence[Indices], source_lengths: Lengths, target_lengths: Lengths) -> float:
    """Return padded positions / all positions, over source and target together, END counted."""
    real = positions = 0
    for rows in plan:
        for lengths in (source_lengths[rows], target_lengths[rows]):
            real += int(lengths.sum()) + len(rows)
            positions += (int(lengths.max()) + 1) * len(rows)
    return 1 - real / positions


def batches(
    ids: PairedIds,
    plan: Sequence[Indices],
    *,
    sampling: SubwordSampling | None = None,
    vocabularies: Vocabularies | None = None,
    seed: int = 0,
    epoch: int = 0,
    start: int = 0,
) -> Iterator[Batch]:
    """Yield the batches of a plan from position `start` on, exactly as an iteration from 0 yields them there.

    With `sampling`, both sides are segmented anew from their text, by a seed that depends on `seed`, `epoch` and the
    position alone; batches are then somewhat longer than planned. A sampled segmentation of more than twice the
    pieces of the longest sentence of that side of the corpus is replaced by the best segmentation, which bounds
    memory. `sampling` needs `vocabularies` and a corpus kept with its text.
    """
    if sampling is not None and vocabularies is None:
        raise ValueError("sampling needs the vocabularies")
    for position in range(start, len(plan)):
        rows = plan[position]
        sources: list[Ids] = [ids.source(row) for row in rows]
        targets: list[Ids] = [ids.target(row) for row in rows]
        if sampling is not None and vocabularies is not None:
            source_texts, target_texts = zip(*(ids.text(row) for row in rows), strict=True)
            seeds = [int(part) for part in np.random.SeedSequence([seed, epoch, position + 1]).generate_state(2)]
            limits = 2 * ids.longest_source, 2 * ids.longest_target
            sources = _sampled(vocabularies.source, source_texts, sources, sampling, seeds[0], limits[0])
            targets = _sampled(vocabularies.target, target_texts, targets, sampling, seeds[1], limits[1])
        yield make_batch(sources, targets, rows)


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids], indices: Indices) -> Batch:
    """Return the padded batch of these pairs of ids, which carry no special symbols yet."""
    source, source_lengths = pad_sources(sources)
    target = np.full((len(targets), 2 + max(len(row) for row in targets)), PAD, dtype=np.int64)
    target[:, 0] = BEGIN
    for row, pieces in enumerate(targets):
        target[row, 1 : len(pieces) + 1] = pieces
        target[row, len(pieces) + 1] = END
    target_lengths = torch.tensor([len(pieces) + 1 for pieces in targets], dtype=torch.int64)
    return Batch(source, source_lengths, torch.from_numpy(target), target_lengths, indices)


def pad_sources(sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Return the sources with END appended and PAD filled, (batch, source_length), and their lengths, END counted."""
    source = np.full((len(sources), 1 + max(len(row) for row in sources)), PAD, dtype=np.int64)
    for row, pieces in enumerate(sources):
        source[row, : len(pieces)] = pieces
        source[row, len(pieces)] = END
    return torch.from_numpy(source), torch.tensor([len(pieces) + 1 for pieces in sources], dtype=torch.int64)


def _sort_keys(source_lengths: Lengths, target_lengths: Lengths) -> Indices:
    """One integer a pair that sorts by source length, then by target length: up and down in turns.

    Where the source grows by one piece, the target then stays long or short instead of falling from the longest to
    the shortest, and a batch across that border needs less padding.
    """
    source = source_lengths.astype(np.int64)
    target = target_lengths.astype(np.int64)
    span = int(target.max(initial=0)) + 1
    return source * span + np.where(source % 2 == 0, target, span - 1 - target)


def _token_ends(widths: Lengths, batch_size: int) -> Indices:
    """Return where each batch ends, for pairs in order with these widths: as many as fit, at least one."""
    ends: list[int] = []
    start = 0
    while start < len(widths):
        most = max(batch_size // int(widths[start]), 1)
        widest = np.maximum.accumulate(widths[start : start + most].astype(np.int64))
        fitting = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), batch_size, side="right"))
        start += max(fitting, 1)
        ends.append(start)
    return np.array(ends, dtype=np.int64)


def _sampled(
    subwords: Subwords, texts: Sequence[str], best: Sequence[Ids], sampling: SubwordSampling, seed: int, limit: int
) -> list[Ids]:
    sampled = subwords.sample(texts, sampling=sampling, seed=seed)
    return [new if len(new) <= limit else old for new, old in zip(sampled, best, strict=True)]
