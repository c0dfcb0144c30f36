"""How several training corpora are mixed: how often an epoch reads the pairs of each, and which of them.

Like the plan of the batches, what an epoch reads is a pure function of the corpora's sizes, their weights, the seed and
the epoch, so a run that is resumed reads on where it stood. It knows rows; it knows no files and no batches.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from nmt.config.schema import Shuffle, TrainingFiles
from nmt.errors import UserError, counted


def mixed_rows(
    sizes: Sequence[int], weights: Sequence[float], *, shuffle: Shuffle, seed: int, epoch: int
) -> npt.NDArray[np.integer] | None:
    """Return the rows that an epoch reads of corpora with `sizes` rows, one after the other; None: every row once.

    A corpus of n rows and weight w is read pass after pass, each a permutation π_k of its own (where `shuffle` is
    "once", all are π_0; where it is "never", the order of the files), and epoch e takes what stands between ⌊e w n⌋ and
    ⌊(e + 1) w n⌋ of

        π_0(0), …, π_0(n - 1), π_1(0), …, π_1(n - 1), π_2(0), …

    So no row is read a second time before all others have been read once, in one epoch or over several.
    """
    if all(weight == 1.0 for weight in weights):
        return None
    parts: list[npt.NDArray[np.integer]] = []
    first = 0
    for corpus, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
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


def pairs_until(size: int, weight: float, *, epoch: int) -> int:
    """How many pairs of a corpus with this size and weight are read before an epoch, counted from 0, begins."""
    return math.floor(epoch * Fraction(str(weight)) * size)  # of the decimal number: as floats, 0.29 · 100 < 29


def changes_by_epoch(train: Sequence[TrainingFiles]) -> bool:
    """Whether an epoch reads other pairs than the one before, as a weight that is no whole number has it."""
    return any(files.weight % 1 for files in train)


def mixture(train: Sequence[TrainingFiles], sizes: Sequence[int]) -> list[str]:
    """What an epoch reads of each training corpus with `sizes` pairs, in lines; none for one that is read as it is.

    Raises UserError where an epoch might have no pair at all.
    """
    if not any(pairs_until(size, files.weight, epoch=1) for files, size in zip(train, sizes, strict=True)):
        weights = ", ".join(
            f"{files.weight:g} × {counted(size, 'pair')}" for files, size in zip(train, sizes, strict=True)
        )
        raise UserError(f"data.train: an epoch would have no pair ({weights}); give a larger weight")
    if len(train) == 1 and train[0].weight == 1.0 and train[0].tag is None:
        return []
    return [
        f"an epoch reads {_pairs(size, files.weight)} of {files.source}: weight "
        f"{files.weight:g}, {counted(size, 'pair')}" + (f", tagged {files.tag}" if files.tag else "")
        for files, size in zip(train, sizes, strict=True)
    ]


def _pairs(size: int, weight: float) -> str:
    """How many pairs an epoch reads of a corpus: w n, or in turns the whole numbers around it."""
    least, most = pairs_until(size, weight, epoch=1), math.ceil(Fraction(str(weight)) * size)
    return counted(least, "pair") if least == most else f"{least:,} or {counted(most, 'pair')}"
