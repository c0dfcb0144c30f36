"""Batches: which pairs of a corpus go together in an epoch, and their padded tensors.

It knows lengths and ids; it knows no files and no devices. The plan of an epoch is a pure function of the lengths, the
seed and the epoch, so a resumed training run sees exactly the batches it would have seen without the interruption.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.config.schema import BatchOrder, Config, Shuffle, SortBy, SubwordSampling
from nmt.data.binarised import PairedIds
from nmt.data.mixing import mixed_rows
from nmt.data.subwords import Vocabularies
from nmt.symbols import BEGIN, END, PAD

Ids = Sequence[int] | npt.NDArray[np.integer]
Lengths = npt.NDArray[np.integer]
Indices = npt.NDArray[np.integer]

SAMPLED_TOGETHER = 100  # planned batches whose sentences are sampled and then sorted by length together


class PieceLinks(NamedTuple):
    """The links between the pieces of a batch: A_tj of row i, where it is not 0. All tensors are (links,)."""

    rows: Tensor  # i, int64, in order
    targets: Tensor  # t, int64, a position of the target output
    sources: Tensor  # j, int64, a position of the source
    shares: Tensor  # A_tj, float32; those of one target position sum to 1

    def of_rows(self, rows: slice) -> "PieceLinks":
        """The links of some rows, which are counted from 0 then."""
        first, last = torch.searchsorted(self.rows, torch.tensor([rows.start, rows.stop], device=self.rows.device))
        return PieceLinks(self.rows[first:last] - rows.start, *(part[first:last] for part in self[1:]))

    def doubled(self, rows: int) -> "PieceLinks":
        """The links of all `rows` rows, and then the same links of as many rows after them."""
        again = PieceLinks(self.rows + rows, *self[1:])
        return PieceLinks(*(torch.cat(parts) for parts in zip(self, again, strict=True)))

    def to(self, device: torch.device | str) -> "PieceLinks":
        """The same links with their tensors on the device."""
        return PieceLinks(*(part.to(device) for part in self))


class Candidates(NamedTuple):
    """Translations of the sources of a batch, for minimum risk training: of each first its reference, then others."""

    target: Tensor  # (rows, target_length + 1) int64: those of the first source, then of the next; as in `Batch`
    target_lengths: Tensor  # (rows,) int64, pieces and END
    mask: Tensor  # (batch, most), True at candidates; the k-th True, counted row by row, is row k of `target`
    costs: Tensor  # (batch, most) float32, 0 for the reference

    @property
    def sources(self) -> Tensor:
        """The row of the batch that each candidate translates, (rows,) int64."""
        return self.mask.nonzero()[:, 0]

    def of_rows(self, rows: slice) -> "Candidates":
        """Those of some rows of the batch, trimmed to the padding they need."""
        counts = self.mask.sum(dim=1)
        first = int(counts[: rows.start].sum())
        here, most = slice(first, first + int(counts[rows].sum())), int(counts[rows].max())
        lengths = self.target_lengths[here]
        target = self.target[here, : int(lengths.max()) + 1]
        return Candidates(target, lengths, self.mask[rows, :most], self.costs[rows, :most])

    def to(self, device: torch.device | str) -> "Candidates":
        """The same candidates with their tensors on the device."""
        return Candidates(*(part.to(device) for part in self))


class Batch(NamedTuple):
    """Padded pairs: the input of one forward pass.

    Sources end with END, targets begin with BEGIN and end with END; PAD fills up shorter rows.
    """

    source: Tensor  # (batch, source_length) int64
    source_lengths: Tensor  # (batch,) int64, including END
    target: Tensor  # (batch, target_length + 1) int64
    target_lengths: Tensor  # (batch,) int64, pieces and END: the tokens to predict
    indices: Indices  # (batch,) rows of the corpus
    links: PieceLinks | None = None  # of a corpus with alignments
    fed: Tensor | None = None  # (batch, target_length), what the decoder reads if that is not the target
    candidates: Candidates | None = None  # for minimum risk training

    @property
    def target_input(self) -> Tensor:
        """The decoder's input, (batch, target_length): BEGIN and the pieces, or `fed`."""
        return self.target[:, :-1] if self.fed is None else self.fed

    @property
    def target_output(self) -> Tensor:
        """What the decoder has to predict, (batch, target_length): the pieces and END."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """Number of tokens that the decoder has to predict, without padding."""
        return int(self.target_lengths.sum())

    @property
    def padding_share(self) -> float:
        """Share of padding among all positions of the source and the target output."""
        positions = self.source.numel() + self.target_output.numel()
        return 1 - (int(self.source_lengths.sum()) + self.target_tokens) / positions

    def halves(self) -> list["Batch"]:
        """The batch as two with half the rows each, trimmed to the padding they need; itself if it has one row."""
        rows = len(self.indices)
        if rows == 1:
            return [self]
        return [self._rows(slice(0, rows // 2)), self._rows(slice(rows // 2, rows))]

    def with_candidates_within(self, positions: int) -> list["Batch"]:
        """The batch, or parts of it whose candidates have at most so many positions, with padding; or one source."""
        if self.candidates is None or len(self.indices) == 1 or self.candidates.target.numel() <= positions:
            return [self]
        return [part for half in self.halves() for part in half.with_candidates_within(positions)]

    def doubled(self) -> "Batch":
        """All its pairs, and then the same pairs again."""
        source, source_lengths, target, target_lengths = (torch.cat((tensor, tensor)) for tensor in self[:4])
        links = None if self.links is None else self.links.doubled(len(self.indices))
        fed = None if self.fed is None else torch.cat((self.fed, self.fed))
        return Batch(source, source_lengths, target, target_lengths, np.tile(self.indices, 2), links, fed)

    def _rows(self, rows: slice) -> "Batch":
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        source = self.source[rows, : int(source_lengths.max())]
        target = self.target[rows, : int(target_lengths.max()) + 1]
        links = None if self.links is None else self.links.of_rows(rows)
        fed = None if self.fed is None else self.fed[rows, : target.size(1) - 1]
        candidates = None if self.candidates is None else self.candidates.of_rows(rows)
        return Batch(source, source_lengths, target, target_lengths, self.indices[rows], links, fed, candidates)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch with its tensors on the device."""
        source, source_lengths, target, target_lengths = (tensor.to(device) for tensor in self[:4])
        links = None if self.links is None else self.links.to(device)
        fed = None if self.fed is None else self.fed.to(device)
        candidates = None if self.candidates is None else self.candidates.to(device)
        return Batch(source, source_lengths, target, target_lengths, self.indices, links, fed, candidates)


def plan_batches(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    batch_size: int,
    batch_by: Literal["sentences", "tokens"],
    sort_by: SortBy = "source",
    sort_pairs: int | None = None,
    shuffle: Shuffle = "every_epoch",
    batch_order: BatchOrder = "shuffled",
    seed: int,
    epoch: int,
    rows: Indices | None = None,
) -> list[Indices]:
    """Return the rows of each batch of an epoch, in training order: each of `rows`, or (None) every row exactly once.

    Pairs are shuffled, sorted by the lengths that `sort_by` names (see `_sort_keys`), with equal ones in their order so
    far, and cut into batches, whose order is `batch_order`. `sort_pairs` sorts only this many pairs, a part, at a time.
    Lengths are in pieces, without END.

    `shuffle` "every_epoch": pairs get another order in every epoch; "once": that of the first one; "never": that of the
    corpus. `batch_order` "shuffled": all batches are. "shuffled_by_part": part after part, the batches of a part
    shuffled. "sorted": part after part, the batches of a part as they were cut, from short pairs to long ones.

    `batch_by` "sentences": `batch_size` pairs per batch, the rest in a smaller one. "tokens": the number of pairs times
    (longest source or target + 1 for END) stays within `batch_size`; a longer pair gets a batch of its own.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    index_type = np.int32 if len(source_lengths) <= np.iinfo(np.int32).max else np.int64  # half, for millions of pairs
    count = len(source_lengths) if rows is None else len(rows)
    if shuffle == "never":
        order: Indices = np.arange(count, dtype=index_type)
    else:
        shuffling = random
        if shuffle == "once":
            shuffling = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0])))
        order = shuffling.permutation(count).astype(index_type)
    if rows is not None:
        order = rows[order]
    keys = _sort_keys(source_lengths, target_lengths, sort_by)
    plan: list[Indices] = []
    for part in [order] if sort_pairs is None else np.split(order, range(sort_pairs, len(order), sort_pairs)):
        ordered = part[np.argsort(keys[part], kind="stable")]
        if batch_by == "sentences":
            ends: Indices = np.arange(batch_size, len(ordered), batch_size)
        else:
            ends = _token_ends(np.maximum(source_lengths[ordered], target_lengths[ordered]) + 1, batch_size)
        cut = np.split(ordered, ends)
        plan += [cut[batch] for batch in random.permutation(len(cut))] if batch_order == "shuffled_by_part" else cut
    return [plan[batch] for batch in random.permutation(len(plan))] if batch_order == "shuffled" else plan


def plan_epoch(corpus: PairedIds, config: Config, *, epoch: int) -> list[Indices]:
    """Return the batches of a training epoch (counted from 0) as configured; see `plan_batches` and `mixed_rows`."""
    return plan_batches(
        corpus.source_lengths,
        corpus.target_lengths,
        batch_size=config.training.batch_size,
        batch_by=config.training.batch_by,
        sort_by=config.training.sort_by,
        sort_pairs=config.training.sort_pairs,
        shuffle=config.training.shuffle,
        batch_order=config.training.batch_order,
        seed=config.seed,
        epoch=epoch,
        rows=_epoch_rows(corpus, config, epoch),
    )


def _epoch_rows(corpus: PairedIds, config: Config, epoch: int) -> Indices | None:
    """The rows that an epoch reads; None: every row exactly once."""
    weights = [files.weight for files in config.data.train]
    return mixed_rows(corpus.sizes, weights, shuffle=config.training.shuffle, seed=config.seed, epoch=epoch)


def unfilled(corpus: PairedIds, config: Config) -> str | None:
    """What to tell where `sort_pairs` pairs of the first epoch, of mean length, do not fill a batch of tokens, so that
    another `sort_pairs` would make larger ones; None where they do."""
    training = config.training
    pairs, size = training.sort_pairs, training.batch_size
    if training.batch_by == "sentences" or pairs is None:
        return None
    longest = np.maximum(corpus.source_lengths, corpus.target_lengths)
    if (rows := _epoch_rows(corpus, config, 0)) is not None:
        longest = longest[rows]
    tokens = float(longest.mean()) + 1
    if pairs * tokens >= size or pairs >= len(longest):
        return None
    room = math.ceil(size / tokens)
    return (
        f"training.sort_pairs: {pairs:,} leaves batches unfilled: no batch has more pairs, and training.batch_size: "
        f"{size:,} tokens has room for about {room:,} of this corpus; give more than that, or null"
    )


def padding_share(plan: Sequence[Indices], source_lengths: Lengths, target_lengths: Lengths) -> float:
    """Return the share of padding among all positions of sources and targets, counting END as real."""
    counts = np.array([len(rows) for rows in plan])
    starts, rows = np.cumsum(counts) - counts, np.concatenate(list(plan))
    real = positions = 0
    for lengths in (source_lengths, target_lengths):
        real += int(lengths[rows].sum(dtype=np.int64)) + len(rows)
        positions += int((np.maximum.reduceat(lengths[rows], starts).astype(np.int64) + 1) @ counts)
    return 1 - real / positions


def share_rows(rows: Indices, lengths: Lengths, *, share: tuple[int, int]) -> Indices:
    """Return the rows of a batch that process `share[0]` of `share[1]` computes; `lengths` (rows,) are their tokens.

    The longest remaining row always goes to the process with the fewest tokens, the first one in a tie. The result is
    in the order of `rows` and may be empty.
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
    vocabularies: Vocabularies,
    sampling: SubwordSampling | None,
    sort_by: SortBy = "source",
    seed: int,
    epoch: int = 0,
    start: int = 0,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Batch | None]:
    """Yield a process's share of each batch of a plan from position `start` on; None where it has no row.

    A batch does not depend on where the iteration started. `share`: see `share_rows`; one process has every row.

    With `sampling`, both sides are segmented again from their text, with a seed that depends only on `seed`, `epoch`
    and position, and the sentences of SAMPLED_TOGETHER batches are redistributed by their new lengths, in the order of
    `sort_by`; batches keep their planned number of rows and get longer than planned, also where that was by tokens: the
    plan of an epoch is to be known before anything is sampled. It needs a corpus kept with its text.
    """
    sampled: list[_Pairs] = []
    for position in range(start, len(plan)):
        if sampling is None:
            rows = share_rows(plan[position], ids.target_lengths[plan[position]], share=share)
            yield read_batch(ids, rows) if len(rows) else None
            continue
        group, place = divmod(position, SAMPLED_TOGETHER)
        if place == 0 or not sampled:
            planned = plan[group * SAMPLED_TOGETHER : (group + 1) * SAMPLED_TOGETHER]
            seeds = [int(part) for part in np.random.SeedSequence([seed, epoch, group + 1]).generate_state(2)]
            sampled = _sampled(ids, planned, sampling, sort_by, vocabularies, seeds)
        pairs = sampled[place]
        lengths = np.array([len(target) for target in pairs.targets])
        shared = share_rows(np.arange(len(lengths)), lengths, share=share)
        sources, targets = ([side[index] for index in shared] for side in (pairs.sources, pairs.targets))
        yield make_batch(sources, targets, pairs.rows[shared]) if len(shared) else None


class _Pairs(NamedTuple):
    """The pairs of a batch: their rows in the corpus, and their ids."""

    rows: Indices
    sources: Sequence[Ids]
    targets: Sequence[Ids]


def _sampled(
    ids: PairedIds,
    planned: Sequence[Indices],
    sampling: SubwordSampling,
    sort_by: SortBy,
    vocabularies: Vocabularies,
    seeds: Sequence[int],
) -> list[_Pairs]:
    """The planned batches with sampled segmentations, their pairs sorted by the new lengths.

    The batch that was planned with the shortest pairs gets the shortest ones. To bound memory, a segmentation with
    more than twice the pieces of the longest sentence on its side of the corpus is replaced by the best one.
    """
    rows = np.concatenate(list(planned))
    texts = zip(*(ids.text(row) for row in rows), strict=True)
    best = ((ids.source, ids.source_lengths), (ids.target, ids.target_lengths))
    sides: list[list[Ids]] = []
    for subwords, lines, seed, (best_ids, lengths) in zip(vocabularies, texts, seeds, best, strict=True):
        most = 2 * int(lengths.max())
        segmented = zip(rows, subwords.sample(lines, sampling=sampling, seed=seed), strict=True)
        sides.append([pieces if len(pieces) <= most else best_ids(row) for row, pieces in segmented])
    sources, targets = sides
    source_lengths, target_lengths = (np.array([len(pieces) for pieces in side]) for side in sides)
    order = np.argsort(_sort_keys(source_lengths, target_lengths, sort_by), kind="stable")
    usual = [_first_lengths(ids.source_lengths[part], ids.target_lengths[part], sort_by).mean() for part in planned]
    shortest_first = sorted(range(len(planned)), key=lambda place: float(usual[place]))
    sampled: dict[int, _Pairs] = {}
    for place in shortest_first:
        chosen, order = order[: len(planned[place])], order[len(planned[place]) :]
        sampled[place] = _Pairs(rows[chosen], [sources[i] for i in chosen], [targets[i] for i in chosen])
    return [sampled[place] for place in range(len(planned))]


def read_batch(ids: PairedIds, rows: Indices) -> Batch:
    """Return these rows of a corpus as a batch."""
    batch = make_batch([ids.source(row) for row in rows], [ids.target(row) for row in rows], rows)
    return batch._replace(links=_links([ids.links(row) for row in rows])) if ids.has_alignments else batch


def _links(rows: Sequence[npt.NDArray[np.float32]]) -> PieceLinks:
    """The links of the rows of a batch, each (links, 3): target piece, source piece, share."""
    values = np.concatenate(list(rows))
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    positions = values[:, :2].astype(np.int64)
    parts = (numbers, positions[:, 0], positions[:, 1], values[:, 2])
    return PieceLinks(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids], indices: Indices) -> Batch:
    """Return these pairs of ids, without special symbols so far, as a padded batch."""
    source, source_lengths = pad_with_end(sources)
    target, target_lengths = pad_with_end(targets)
    begin = torch.full((len(targets), 1), BEGIN)
    return Batch(source, source_lengths, torch.cat((begin, target), dim=1), target_lengths, indices)


def make_candidates(translations: Sequence[Sequence[Ids]], costs: Sequence[Sequence[float]]) -> Candidates:
    """Return the ids of the translations of each source, the reference first, and their costs, as padded tensors."""
    target, lengths = pad_with_end([ids for several in translations for ids in several])
    begin = torch.full((len(target), 1), BEGIN)
    counts = torch.tensor([len(several) for several in translations])
    mask = torch.arange(int(counts.max())) < counts.unsqueeze(1)
    padded = torch.zeros(mask.shape)
    padded[mask] = torch.tensor([cost for several in costs for cost in several])
    return Candidates(torch.cat((begin, target), dim=1), lengths, mask, padded)


def pad_with_end(sentences: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Return the sentences with END appended, padded to (batch, length), and their lengths (batch,) including END."""
    padded = np.full((len(sentences), 1 + max(map(len, sentences))), PAD, dtype=np.int64)
    for row, pieces in enumerate(sentences):
        padded[row, : len(pieces)] = pieces
        padded[row, len(pieces)] = END
    return torch.from_numpy(padded), torch.tensor([len(pieces) + 1 for pieces in sentences], dtype=torch.int64)


def _first_lengths(source_lengths: Lengths, target_lengths: Lengths, sort_by: SortBy) -> Lengths:
    """The lengths that pairs are sorted by first."""
    if sort_by == "longer":
        return np.maximum(source_lengths, target_lengths)
    return source_lengths if sort_by == "source" else target_lengths


def _sort_keys(source_lengths: Lengths, target_lengths: Lengths, sort_by: SortBy) -> Indices:
    """One integer per pair that sorts by a first length, then by that of the other side: up and down in turns.

    When the first gets one piece longer, the other then stays long or short instead of dropping from the longest to
    the shortest, so a batch across that border needs less padding. The integer type is no larger than necessary,
    because a corpus may have many millions of pairs.
    """
    first = _first_lengths(source_lengths, target_lengths, sort_by)
    second = target_lengths if sort_by == "source" else source_lengths
    span = int(second.max(initial=0)) + 1
    largest = (int(first.max(initial=0)) + 1) * span
    keys = first.astype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)
    down = keys % 2 == 1
    keys *= span
    keys += second
    keys[down] += span - 1 - 2 * second[down]
    return keys


def _token_ends(widths: Lengths, batch_size: int) -> Indices:
    """Return where each batch but the last ends, for pairs of these widths: as many as fit, at least one."""
    ends: list[int] = []
    start = 0
    while start < len(widths):
        most = max(batch_size // int(widths[start]), 1)
        widest = np.maximum.accumulate(widths[start : start + most].astype(np.int64))
        fitting = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), batch_size, side="right"))
        start += max(fitting, 1)
        ends.append(start)
    return np.array(ends[:-1], dtype=np.int64)
