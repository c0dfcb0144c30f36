"""From the plan of an epoch to its batches, read from the corpus, or segmented anew at random.

It knows ids and text; it knows no files and no devices.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from nmt.config.schema import SortBy, SubwordSampling
from nmt.data.alignments import links_of_words, piece_links
from nmt.data.batch import Batch, Indices, PieceLinks, make_batch
from nmt.data.padding import Ids
from nmt.data.planning import first_lengths, sort_keys
from nmt.data.store import LINK_VALUES, PairedIds
from nmt.data.subwords import Vocabularies

SAMPLED_TOGETHER = 100  # planned batches whose sentences are sampled and then sorted by length together


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

    A batch does not depend on where the iteration started. `share` (r, n): process r of n has every n-th row from the
    r-th on, so that the shares of a batch, whose rows are in the order of their lengths, are about as large.

    With `sampling`, both sides are segmented again from their text, with a seed that depends only on `seed`, `epoch`
    and position, and the sentences of SAMPLED_TOGETHER batches are redistributed by their new lengths, in the order of
    `sort_by`; batches keep their planned number of rows and get longer than planned, also where that was by tokens: the
    plan of an epoch is to be known before anything is sampled. It needs a corpus kept with its text.
    """
    rank, size = share
    sampled: list[_Pairs] = []
    for position in range(start, len(plan)):
        if sampling is None:
            rows = plan[position][rank::size]
            yield read_batch(ids, rows) if len(rows) else None
            continue
        group, place = divmod(position, SAMPLED_TOGETHER)
        if place == 0 or not sampled:
            planned = plan[group * SAMPLED_TOGETHER : (group + 1) * SAMPLED_TOGETHER]
            seeds = [int(part) for part in np.random.SeedSequence([seed, epoch, group + 1]).generate_state(2)]
            sampled = _sampled(ids, planned, sampling, sort_by, vocabularies, seeds)
        rows, sources, targets = sampled[place]
        pairs = _Pairs(rows[rank::size], sources[rank::size], targets[rank::size])
        yield _sampled_batch(ids, pairs, vocabularies) if len(pairs.rows) else None


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
    order = np.argsort(sort_keys(source_lengths, target_lengths, sort_by), kind="stable")
    usual = [first_lengths(ids.source_lengths[part], ids.target_lengths[part], sort_by).mean() for part in planned]
    shortest_first = sorted(range(len(planned)), key=lambda place: float(usual[place]))
    sampled: dict[int, _Pairs] = {}
    for place in shortest_first:
        chosen, order = order[: len(planned[place])], order[len(planned[place]) :]
        sampled[place] = _Pairs(rows[chosen], [sources[i] for i in chosen], [targets[i] for i in chosen])
    return [sampled[place] for place in range(len(planned))]


def _sampled_batch(ids: PairedIds, pairs: _Pairs, vocabularies: Vocabularies) -> Batch:
    """The pairs as a batch; where they have links, those of the words, which have other pieces now."""
    batch = make_batch(pairs.sources, pairs.targets, pairs.rows)
    if not ids.has_alignments:
        return batch
    rows = []
    for row, *pair in zip(*pairs, strict=True):
        best, sampled = (
            [subwords.words_of_pieces(pieces) for subwords, pieces in zip(vocabularies, both, strict=True)]
            for both in ((ids.source(row), ids.target(row)), pair)
        )
        links = piece_links(links_of_words(ids.links(row), *best), *sampled)
        rows.append(np.array(list(links), dtype=np.float32).reshape(-1, LINK_VALUES))
    return batch._replace(links=_links(rows))


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
