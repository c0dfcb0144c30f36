"""The plan of an epoch: which pairs of the corpora it reads, which go together in a batch, and in which order.

It is a pure function of sizes, lengths, weights, the seed, and the epoch, so that a resumed training run sees exactly
the batches that it would have seen without the interruption. It knows rows and lengths; it knows no ids.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from nmt.config.schema import Config, Shuffle, SortBy, TrainingConfig, TrainingFiles
from nmt.data.batch import Indices
from nmt.data.store import PairedIds
from nmt.errors import UserError, counted

Lengths = npt.NDArray[np.integer]
Weights = npt.NDArray[np.floating]


def plan_batches(
    source_lengths: Lengths,
    target_lengths: Lengths,
    settings: TrainingConfig,
    *,
    seed: int,
    epoch: int,
    rows: Indices | None = None,
) -> list[Indices]:
    """Return the rows of each batch of an epoch, in training order: each of `rows`, or (None) every row exactly once.

    Pairs are shuffled, sorted by the lengths that `sort_by` names (see `sort_keys`), with equal ones in their order so
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
    if settings.shuffle == "never":
        order: Indices = np.arange(count, dtype=index_type)
    else:
        shuffling = random
        if settings.shuffle == "once":
            shuffling = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0])))
        order = shuffling.permutation(count).astype(index_type)
    if rows is not None:
        order = rows[order]
    keys = sort_keys(source_lengths, target_lengths, settings.sort_by)
    plan: list[Indices] = []
    batch_size, batch_order, size = settings.batch_size, settings.batch_order, settings.sort_pairs
    for part in [order] if size is None else np.split(order, range(size, len(order), size)):
        ordered = part[np.argsort(keys[part], kind="stable")]
        if settings.batch_by == "sentences":
            ends: Indices = np.arange(batch_size, len(ordered), batch_size)
        else:
            ends = _token_ends(np.maximum(source_lengths[ordered], target_lengths[ordered]) + 1, batch_size)
        cut = np.split(ordered, ends)
        plan += [cut[batch] for batch in random.permutation(len(cut))] if batch_order == "shuffled_by_part" else cut
    return [plan[batch] for batch in random.permutation(len(plan))] if batch_order == "shuffled" else plan


def plan_epoch(corpus: PairedIds, config: Config, *, epoch: int) -> list[Indices]:
    """Return the batches of a training epoch (counted from 0) as configured; see `plan_batches` and `mixed_rows`."""
    settings, train, seed = config.training, config.data.train, config.seed
    weights, of_pairs = [files.weight for files in train], _pair_weights(train, corpus.sizes, corpus.weights)
    rows = mixed_rows(corpus.sizes, weights, of_pairs=of_pairs, shuffle=settings.shuffle, seed=seed, epoch=epoch)
    return plan_batches(corpus.source_lengths, corpus.target_lengths, settings, seed=seed, epoch=epoch, rows=rows)


def _pair_weights(
    train: Sequence[TrainingFiles], sizes: Sequence[int], weights: Weights | None
) -> list[Weights | None]:
    """The weights of the pairs of each training corpus, times that of the corpus; None: all its pairs have 1."""
    if weights is None:
        return [None] * len(sizes)
    parts = np.split(weights.astype(np.float64), np.cumsum(sizes)[:-1])
    return [
        None if files.pair_weights is None else files.weight * part for files, part in zip(train, parts, strict=True)
    ]


def padding_share(plan: Sequence[Indices], source_lengths: Lengths, target_lengths: Lengths) -> float:
    """Return the share of padding among all positions of sources and targets, counting END as real."""
    counts = np.array([len(rows) for rows in plan])
    starts, rows = np.cumsum(counts) - counts, np.concatenate(list(plan))
    real = positions = 0
    for lengths in (source_lengths, target_lengths):
        real += int(lengths[rows].sum(dtype=np.int64)) + len(rows)
        positions += int((np.maximum.reduceat(lengths[rows], starts).astype(np.int64) + 1) @ counts)
    return 1 - real / positions


def first_lengths(source_lengths: Lengths, target_lengths: Lengths, sort_by: SortBy) -> Lengths:
    """The lengths that pairs are sorted by first."""
    if sort_by == "longer":
        return np.maximum(source_lengths, target_lengths)
    return source_lengths if sort_by == "source" else target_lengths


def sort_keys(source_lengths: Lengths, target_lengths: Lengths, sort_by: SortBy) -> Indices:
    """One integer per pair that sorts by a first length, then by that of the other side: up and down in turns.

    When the first gets one piece longer, the other then stays long or short instead of dropping from the longest to
    the shortest, so a batch across that border needs less padding. The integer type is no larger than necessary,
    because a corpus may have many millions of pairs.
    """
    first = first_lengths(source_lengths, target_lengths, sort_by)
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


# ----------------------------------------------------------------------------------------------- mixing several corpora


def mixed_rows(
    sizes: Sequence[int],
    weights: Sequence[float],
    *,
    of_pairs: Sequence[Weights | None] = (),
    shuffle: Shuffle,
    seed: int,
    epoch: int,
) -> npt.NDArray[np.integer] | None:
    """Return the rows that an epoch reads of corpora with `sizes` rows, one after the other; None: every row once.

    A corpus of n rows and weight w is read pass after pass, each a permutation π_k of its own (where `shuffle` is
    "once", all are π_0; where it is "never", the order of the files), and epoch e takes what stands between ⌊e w n⌋ and
    ⌊(e + 1) w n⌋ of

        π_0(0), …, π_0(n - 1), π_1(0), …, π_1(n - 1), π_2(0), …

    So no row is read a second time before all others have been read once, in one epoch or over several.

    Of a corpus whose rows have weights `of_pairs`, `_drawn_rows` are read.
    """
    of_pairs = of_pairs or [None] * len(sizes)
    if all(weight == 1.0 for weight in weights) and all(pairs is None for pairs in of_pairs):
        return None
    parts: list[npt.NDArray[np.integer]] = []
    first = 0
    for corpus, (size, weight, of_rows) in enumerate(zip(sizes, weights, of_pairs, strict=True)):
        if of_rows is not None:
            parts.append(first + _drawn_rows(of_rows, np.random.SeedSequence([seed], spawn_key=(corpus, epoch))))
            first += size
            continue
        start, end = pairs_until(size, weight, epoch=epoch), pairs_until(size, weight, epoch=epoch + 1)
        for number in range(start // max(size, 1), -(-end // max(size, 1))):
            order: npt.NDArray[np.integer] = np.arange(size)
            if shuffle != "never":
                # With a spawn key, the seeds are others than those of `plan_batches` and of sampling.
                drawn = np.random.SeedSequence([seed], spawn_key=(corpus, 0 if shuffle == "once" else number))
                order = np.random.Generator(np.random.PCG64(drawn)).permutation(size)
            parts.append(first + order[max(start - number * size, 0) : end - number * size])
        first += size
    return np.concatenate(parts)


def _drawn_rows(weights: Weights, seed: np.random.SeedSequence) -> npt.NDArray[np.integer]:
    """Rows with weights w_i, ascending: ⌊w_i⌋ or ⌈w_i⌉ times row i, and w_i times on average.

    With the rows in a random order and u in [0, 1), row i is there ⌊w_1 + … + w_i + u⌋ - ⌊w_1 + … + w_(i-1) + u⌋ times.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.permutation(len(weights))
    ends = np.floor(np.cumsum(weights[order]) + random.random()).astype(np.int64)
    return np.sort(np.repeat(order, np.diff(ends, prepend=0)))


def pairs_until(size: int, weight: float, *, epoch: int) -> int:
    """How many pairs of a corpus with this size and weight are read before an epoch, counted from 0, begins."""
    return math.floor(epoch * Fraction(str(weight)) * size)  # of the decimal number: as floats, 0.29 · 100 < 29


def mixture(train: Sequence[TrainingFiles], sizes: Sequence[int], weights_of_pairs: Weights | None = None) -> list[str]:
    """What an epoch reads of each training corpus with `sizes` pairs, in lines; none for one that is read as it is.

    Raises UserError where an epoch might have no pair at all.
    """
    of_pairs = _pair_weights(train, sizes, weights_of_pairs)
    read = [
        pairs_until(size, files.weight, epoch=1) if of_rows is None else math.floor(of_rows.sum())
        for files, size, of_rows in zip(train, sizes, of_pairs, strict=True)
    ]
    if not any(read):
        weights = ", ".join(
            f"{files.weight:g} × {pairs}" for files, pairs in zip(train, _counted_pairs(train, sizes), strict=True)
        )
        raise UserError(f"data.train: an epoch would have no pair ({weights}); give a larger weight")
    if [(files.weight, files.pair_weights, files.tag) for files in train] == [(1.0, None, None)]:
        return []
    return [
        f"an epoch reads {counted(count, 'pair')} of {files.source}: weight {files.weight:g}, {pairs}"
        + (f", tagged {files.tag}" if files.tag else "")
        for files, pairs, count in zip(train, _counted_pairs(train, sizes), read, strict=True)
    ]


def _counted_pairs(train: Sequence[TrainingFiles], sizes: Sequence[int]) -> list[str]:
    """How many pairs each corpus has, and what weights them."""
    return [
        counted(size, "pair") + (f" weighted by {files.pair_weights}" if files.pair_weights else "")
        for files, size in zip(train, sizes, strict=True)
    ]
