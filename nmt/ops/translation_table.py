"""IBM Model 1: how probable each target piece is as the translation of each source piece, learned from parallel text.
With positions, which piece of a sentence translates which.

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

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Pair = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]  # the ids of a source and its target, neither empty
CELLS = 1 << 20  # source pieces × target pieces that are computed at once
TENSION, NULL_SHARE, CONCENTRATION = 4.0, 0.08, 0.01  # λ, p₀, and α
_UNSEEN = 1e-9  # t(f | e) of pieces that never occur together


class TranslationTable(NamedTuple):
    """t(f | e) of all pieces that occur together, sorted by e, then by f."""

    sources: Tensor  # (entries,), the source's vocabulary size for NULL
    targets: Tensor  # (entries,)
    probabilities: Tensor  # (entries,), float64


def ibm_model_1(
    pairs: Sequence[Pair], *, source_size: int, target_size: int, iterations: int = 5, with_positions: bool = False
) -> TranslationTable:
    """The table after that many iterations of expectation maximization over `pairs`; the sizes are vocabularies'."""
    groups = list(_groups(pairs, source_size))
    keys = _distinct(groups, target_size)
    sources = keys // target_size
    probabilities = torch.ones(len(keys), dtype=torch.float64)  # of equal ones only the ratios count
    for _ in range(iterations):
        counts = torch.zeros_like(probabilities)
        for source, target in groups:
            places = torch.searchsorted(keys, _cells(source, target, target_size))
            shares = probabilities[places]
            if with_positions:
                shares *= _of_positions(source.size(1) - 1, target.size(1))
            shares /= shares.sum(dim=1, keepdim=True)
            counts.index_add_(0, places.flatten(), shares.flatten())
        if with_positions:
            counts += CONCENTRATION
            totals = torch.bincount(sources, weights=counts)
            probabilities = torch.exp(torch.digamma(counts) - torch.digamma(totals)[sources])
        else:
            probabilities = counts / torch.bincount(sources, weights=counts)[sources]
    return TranslationTable(sources, keys % target_size, probabilities)


def _of_positions(source_length: int, target_length: int) -> Tensor:
    """d(i | j), (source_length + 1, target_length): the last row is that of NULL."""
    source, target = (
        torch.arange(1, length + 1, dtype=torch.float64) / length for length in (source_length, target_length)
    )
    near = torch.exp(-TENSION * (source.unsqueeze(1) - target).abs())
    null = torch.full((1, target_length), NULL_SHARE, dtype=torch.float64)
    return torch.cat([(1 - NULL_SHARE) * near / near.sum(dim=0), null])


def linked(
    table: TranslationTable, pairs: Iterable[Pair], *, source_size: int, target_size: int
) -> Iterator[list[tuple[int, int]]]:
    """For each pair, by a table learned with positions, which source piece each target piece most probably comes from.

    Links (i, j), by j; a piece that comes from NULL has none, nor have those of an empty side.
    """
    beyond = torch.tensor([(source_size + 1) * target_size])  # behind all cells, so that each has a place
    keys = torch.cat([table.sources * target_size + table.targets, beyond])
    learned = torch.cat([table.probabilities, torch.zeros(1, dtype=torch.float64)])
    for source, target in pairs:
        if not (len(source) and len(target)):
            yield []
            continue
        sources = torch.from_numpy(np.append(source, source_size).astype(np.int32))
        cells = _cells(sources.unsqueeze(0), torch.from_numpy(target).unsqueeze(0), target_size)[0]
        places = torch.searchsorted(keys, cells)
        probabilities = torch.where(keys[places] == cells, learned[places], _UNSEEN)
        best = (probabilities * _of_positions(len(source), len(target))).argmax(dim=0).tolist()
        yield [(place, position) for position, place in enumerate(best) if place < len(source)]


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


def _groups(pairs: Sequence[Pair], null: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of the same lengths together, NULL at the end of each source: (pairs, 1 + length), (pairs, length).

    Without padding, no cell has to be left out again.
    """
    lengths = [(len(source), len(target)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda index: lengths[index])
    start = 0
    while start < len(order):
        shape = lengths[order[start]]
        stop, most = start + 1, start + max(1, CELLS // ((shape[0] + 1) * shape[1]))
        while stop < min(most, len(order)) and lengths[order[stop]] == shape:
            stop += 1
        sources, targets = (np.stack([pairs[index][side] for index in order[start:stop]]) for side in (0, 1))
        nulls = torch.full((stop - start, 1), null, dtype=torch.int32)
        yield torch.cat([torch.from_numpy(sources.astype(np.int32)), nulls], 1), torch.from_numpy(targets)
        start = stop


def _cells(source: Tensor, target: Tensor, target_size: int) -> Tensor:
    """One number for each source piece with each target piece of its pair: (pairs, source_length, target_length)."""
    return source.long().unsqueeze(2) * target_size + target.long().unsqueeze(1)


def _distinct(groups: Sequence[tuple[Tensor, Tensor]], target_size: int) -> Tensor:
    """All cells, each once, ascending."""
    distinct = torch.tensor([], dtype=torch.long)
    waiting: list[Tensor] = []
    for source, target in groups:
        waiting.append(_cells(source, target, target_size).unique())
        if sum(map(len, waiting)) > max(len(distinct), CELLS):
            distinct, waiting = torch.cat([distinct, *waiting]).unique(), []
    return torch.cat([distinct, *waiting]).unique()
