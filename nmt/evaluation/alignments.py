"""Word alignments as sets of links: the error rate, and symmetrization of two directions.

This module knows links; `nmt.pharaoh` has their format. The error rate is defined by Och & Ney (2003), "A Systematic
Comparison of Various Statistical Alignment Models"; grow-diag by Koehn, Och & Marcu (2003) and Koehn et al. (2005), for
IWSLT 2005.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from nmt.pharaoh import Gold, Link, Links

_NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


# ---------------------------------------------------------------------------------------------------------- error rate


class AlignmentScores(NamedTuple):
    """Scores over all sentences together, from 0 to 1; None where the denominator is 0."""

    precision: float | None  # |A ∩ P| / |A|
    recall: float | None  # |A ∩ S| / |S|
    error_rate: float | None  # 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 is perfect


def alignment_scores(predicted: Iterable[Links], gold: Iterable[Gold]) -> AlignmentScores:
    """Precision, recall and alignment error rate of predicted links A, given sure links S and possible ones P ⊇ S."""
    all_predicted = all_sure = predicted_sure = predicted_possible = 0
    for links, (sure, possible) in zip(map(set, predicted), gold, strict=True):
        all_predicted += len(links)
        all_sure += len(sure)
        predicted_sure += len(links & sure)
        predicted_possible += len(links & possible)
    total = all_predicted + all_sure
    return AlignmentScores(
        predicted_possible / all_predicted if all_predicted else None,
        predicted_sure / all_sure if all_sure else None,
        1 - (predicted_sure + predicted_possible) / total if total else None,
    )


# ------------------------------------------------------------------------------------------------------ symmetrization


def grow_diag_final_and(forward: Links, reverse: Links) -> set[Link]:
    """The intersection, grown (Koehn et al. 2005).

    grow-diag: links of the union that are next to a link, also diagonally, are added if their source word or their
    target word has no link yet, until nothing changes. final-and: then every link of `forward`, and after that of
    `reverse`, whose words both have no link yet. Links are visited by target word, then by source word.
    """
    either, links = {*forward, *reverse}, {*forward} & {*reverse}
    sources, targets = {source for source, _ in links}, {target for _, target in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    # A neighbor that cannot be added when its link is visited never can be, because `links`, `sources` and `targets`
    # only grow. So each link is visited once: in this sweep if it lies ahead, in the next if it was added behind.
    sweep = [_place(link) for link in links]
    while sweep:
        heapq.heapify(sweep)
        behind = []
        while sweep:
            place = target, source = heapq.heappop(sweep)
            for down, right in _NEIGHBORS:
                new = (source + right, target + down)
                if new in either and new not in links and (new[0] not in sources or new[1] not in targets):
                    add(new)
                    if _place(new) > place:
                        heapq.heappush(sweep, _place(new))
                    else:
                        behind.append(_place(new))
        sweep = behind
    for direction in (forward, reverse):
        for link in sorted(direction, key=_place):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links


def _place(link: Link) -> tuple[int, int]:
    """The sort key in which links are visited: the target word, then the source word."""
    return link[1], link[0]


SYMMETRIZATIONS: dict[str, Callable[[Links, Links], set[Link]]] = {
    "intersection": lambda forward, reverse: {*forward} & {*reverse},  # few and precise
    "union": lambda forward, reverse: {*forward, *reverse},  # many, with fewer missed
    "grow-diag-final-and": grow_diag_final_and,
}


def symmetrized(how: str, forward: Iterable[Links], reverse: Iterable[Links]) -> Iterator[list[Link]]:
    """The sorted links of each sentence from both directions, combined by the heuristic `how` of SYMMETRIZATIONS.

    `reverse` is what the model of the other direction gives: the sources of its links are our targets.
    """
    for links, turned in zip(forward, reverse, strict=True):
        yield sorted(SYMMETRIZATIONS[how](links, [(source, target) for target, source in turned]))
