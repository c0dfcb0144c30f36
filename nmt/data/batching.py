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

    def halves(self) -> list["Batch"]:
        """The batch as two of half the rows, their padding cut to what they need; itself, if it has one row."""
        rows = len(self.indices)
        if rows == 1:
            return [self]
        return [self._rows(slice(0, rows // 2)), self._rows(slice(rows // 2, rows))]

    def _rows(self, rows: slice) -> "Batch":
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        source = self.source[rows, : int(source_lengths.max())]
        target = self.target[rows, : int(target_lengths.max()) + 1]
        return Batch(source, source_lengths, target, target_lengths, self.indices[rows])

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


def share_rows(rows: Indices, lengths: Lengths, *, share: tuple[int, int]) -> Indices:
    """Return the rows of a batch that process `share[0]` of `share[1]` computes; `lengths` (rows,) are their tokens.

    The longest row left goes to the process with the fewest tokens, the first of equals. In the order of `rows`; may
    be empty.
    """
    rank, size = share
    if size == 1:
        return rows
    owners = np.empty(len(rows), dtype=np.int64)
    loads = [0] * size
    for place in np.argsort(-lengths.astype(np.int64), kind="stable"):
        owner = loads.index(min(loads))
        owners[place] = owner
        loads[owner] += int(lengths[place]) + 1
    return rows[owners == rank]


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
    """Yield the batches of a plan from position `start` on, exactly as an iteration from 0 yields them there."""
    for batch in shared_batches(
        ids, plan, sampling=sampling, vocabularies=vocabularies, seed=seed, epoch=epoch, start=start
    ):
        assert batch is not None  # the only process has every row
        yield batch


def shared_batches(
    ids: PairedIds,
    plan: Sequence[Indices],
    *,
    share: tuple[int, int] = (0, 1),
    sampling: SubwordSampling | None = None,
    vocabularies: Vocabularies | None = None,
    seed: int = 0,
    epoch: int = 0,
    start: int = 0,
) -> Iterator[Batch | None]:
    """Yield a process's share of each batch of a plan from position `start` on; None where it has no row.

    A batch is the same whatever the position that the iteration began at. `share`: see `share_rows`.

    With `sampling`, both sides are segmented anew from their text, by a seed that depends on `seed`, `epoch` and the
    position alone; batches are then somewhat longer than planned. A sampled segmentation of more than twice the
    pieces of the longest sentence of that side of the corpus is replaced by the best segmentation, which bounds
    memory. `sampling` needs `vocabularies` and a corpus kept with its text.
    """
    if sampling is not None and vocabularies is None:
        raise ValueError("sampling needs the vocabularies")
    for position in range(start, len(plan)):
        rows = plan[position]
        mine = share_rows(rows, ids.target_lengths[rows], share=share)
        if len(mine) == 0:
            yield None
            continue
        sources: list[Ids] = [ids.source(row) for row in mine]
        targets: list[Ids] = [ids.target(row) for row in mine]
        if sampling is not None and vocabularies is not None:
            source_texts, target_texts = zip(*(ids.text(row) for row in rows), strict=True)
            seeds = [int(part) for part in np.random.SeedSequence([seed, epoch, position + 1]).generate_state(2)]
            limits = 2 * ids.longest_source, 2 * ids.longest_target
            chosen = np.flatnonzero(np.isin(rows, mine))  # all are sampled, so that each is what one process would have
            sources = _sampled(vocabularies.source, source_texts, chosen, sources, sampling, seeds[0], limits[0])
            targets = _sampled(vocabularies.target, target_texts, chosen, targets, sampling, seeds[1], limits[1])
        yield make_batch(sources, targets, mine)


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
    subwords: Subwords,
    texts: Sequence[str],
    chosen: Indices,
    best: Sequence[Ids],
    sampling: SubwordSampling,
    seed: int,
    limit: int,
) -> list[Ids]:
    """A sampled segmentation of each chosen text, or the best one where that is too long."""
    sampled = subwords.sample(texts, sampling=sampling, seed=seed)
    return [sampled[index] if len(sampled[index]) <= limit else old for index, old in zip(chosen, best, strict=True)]
