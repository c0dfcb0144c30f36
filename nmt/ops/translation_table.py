"""IBM Model 1: how probable each target piece is as the translation of each source piece, learned from parallel text.

    t(f | e), Σ_f t(f | e) = 1, for the pieces e of the source, or NULL, and f of the target

    expected counts    c(f | e) = Σ_pairs Σ_j [f_j = f] Σ_i [e_i = e] t(f_j | e_i) / Σ_k t(f_j | e_k)
    new probabilities  t(f | e) = c(f | e) / Σ_f' c(f' | e)

Every target piece f_j of a pair comes from one of its source pieces e_i, NULL among them, whatever their order. The
first probabilities are all equal. Only pieces that occur together in a pair have a probability, so that the memory
grows with their distinct pairs, not with the vocabularies or the text: 24 bytes each, three times that while they are
gathered. It knows ids only.

With positions, the j-th of J pieces comes from the i-th of I with a probability that falls with the distance from the
diagonal, and the probabilities are those that a Dirichlet prior of concentration α expects, by variational Bayes, so
that rare pieces do not explain whatever stands beside them:

    d(i | j) = (1 - p₀) exp(-λ |i / I - j / J|) / Σ_i'    p₀ for NULL           in place of equal ones
    t(f | e) = exp ψ(c(f | e) + α) / exp ψ(Σ_f' (c(f' | e) + α))

Brown, Della Pietra, Della Pietra & Mercer (1993), Computational Linguistics 19(2), section 4.1.
Dyer, Chahuneau & Smith (2013), NAACL, with λ = 4 all the time; Riley & Gildea (2012), ACL, for the prior.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Pair = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]  # the ids of a source and its target, neither empty
CELLS = 1 << 20  # source pieces × target pieces that are computed at once
TENSION, NULL_SHARE, CONCENTRATION = 4.0, 0.08, 0.01  # λ, p₀, and α


class TranslationTable(NamedTuple):
    """t(f | e) of all pieces that occur together, sorted by e, then by f."""

    sources: Tensor  # (entries,), the source's vocabulary size for NULL
    targets: Tensor  # (entries,)
    probabilities: Tensor  # (entries,), float64


def ibm_model_1(
    pairs: Sequence[Pair], *, source_size: int, target_size: int, iterations: int = 5, with_positions: bool = False
) -> TranslationTable:
    """The table after that many iterations of expectation maximization over `pairs`; the sizes are vocabularies'."""
    groups = [(with_null(source, source_size), target) for _, source, target in grouped(pairs)]
    keys = _distinct(groups, target_size)
    sources = keys // target_size
    probabilities = torch.ones(len(keys), dtype=torch.float64)  # of equal ones only the ratios count
    for _ in range(iterations):
        counts = torch.zeros_like(probabilities)
        for source, target in groups:
            places = torch.searchsorted(keys, cells(source, target, target_size))
            shares = probabilities[places]
            if with_positions:
                shares *= _of_positions(source.size(1) - 1, target.size(1))
            shares /= shares.sum(dim=1, keepdim=True)
            counts.index_add_(0, places.flatten(), shares.flatten())
        if with_positions:
            probabilities = expected_probabilities(counts, sources)
        else:
            probabilities = counts / torch.bincount(sources, weights=counts)[sources]
    return TranslationTable(sources, keys % target_size, probabilities)


def expected_probabilities(counts: Tensor, sources: Tensor) -> Tensor:
    """Those that the prior expects, from the counts of entries with these sources."""
    counts = counts + CONCENTRATION
    totals = torch.bincount(sources, weights=counts)
    return torch.exp(torch.digamma(counts) - torch.digamma(totals)[sources])


def _of_positions(source_length: int, target_length: int) -> Tensor:
    """d(i | j), (source_length + 1, target_length): the last row is that of NULL."""
    source, target = (
        torch.arange(1, length + 1, dtype=torch.float64) / length for length in (source_length, target_length)
    )
    near = torch.exp(-TENSION * (source.unsqueeze(1) - target).abs())
    null = torch.full((1, target_length), NULL_SHARE, dtype=torch.float64)
    return torch.cat([(1 - NULL_SHARE) * near / near.sum(dim=0), null])


def most_probable(table: TranslationTable, count: int, *, source_size: int, filling: int) -> Tensor:
    """The `count` most probable targets of each source (source_size, count), best first, then `filling`.

    Of equally probable ones the smaller id comes first. Those of NULL are left out.
    """
    order = torch.sort(table.probabilities, descending=True, stable=True).indices
    order = order[torch.sort(table.sources[order], stable=True).indices]
    sources, targets = table.sources[order], table.targets[order]
    ranks = torch.arange(len(sources)) - torch.searchsorted(sources, sources)
    kept = (ranks < count) & (sources < source_size)
    result = torch.full((source_size, count), filling)
    result[sources[kept], ranks[kept]] = targets[kept]
    return result


def grouped(pairs: Sequence[Pair]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Pairs of the same lengths together, those with an empty side left out: where they stand in `pairs`, their sources
    (pairs, source_length), and their targets (pairs, target_length).

    Without padding, no cell has to be left out again.
    """
    lengths = [(len(source), len(target)) for source, target in pairs]
    order = sorted((index for index, shape in enumerate(lengths) if all(shape)), key=lambda index: lengths[index])
    start = 0
    while start < len(order):
        shape = lengths[order[start]]
        stop, most = start + 1, start + max(1, CELLS // ((shape[0] + 1) * shape[1]))
        while stop < min(most, len(order)) and lengths[order[stop]] == shape:
            stop += 1
        indices = order[start:stop]
        source, target = (
            torch.from_numpy(np.stack([pairs[index][side] for index in indices]).astype(np.int32)) for side in (0, 1)
        )
        yield indices, source, target
        start = stop


def with_null(source: Tensor, null: int) -> Tensor:
    """With NULL at the end of each source: (pairs, source_length + 1)."""
    return torch.nn.functional.pad(source, (0, 1), value=null)


def cells(source: Tensor, target: Tensor, target_size: int) -> Tensor:
    """One number for each source piece with each target piece of its pair: (pairs, source_length, target_length)."""
    return source.long().unsqueeze(2) * target_size + target.long().unsqueeze(1)


def _distinct(groups: Sequence[tuple[Tensor, Tensor]], target_size: int) -> Tensor:
    """All cells, each once, ascending."""
    distinct = torch.tensor([], dtype=torch.long)
    waiting: list[Tensor] = []
    for source, target in groups:
        waiting.append(cells(source, target, target_size).unique())
        if sum(map(len, waiting)) > max(len(distinct), CELLS):
            distinct, waiting = torch.cat([distinct, *waiting]).unique(), []
    return torch.cat([distinct, *waiting]).unique()
