"""Alignments with few enough links to count by hand."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from nmt.evaluation.alignments import SYMMETRIZATIONS, alignment_scores, grow_diag_final_and, symmetrized
from nmt.pharaoh import Gold, Link, Links


def test_precision_recall_and_error_rate_by_hand() -> None:
    # A = {0-0, 1-2, 2-2}, S = {0-0, 1-1}, P = S + {1-2}: |A ∩ P| = 2 of 3, |A ∩ S| = 1 of 2
    scores = alignment_scores([[(0, 0), (1, 2), (2, 2)]], [Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)})])
    assert scores == pytest.approx((2 / 3, 1 / 2, 1 - (1 + 2) / (3 + 2)))
    sure = {(0, 0), (1, 1)}
    assert alignment_scores([sure], [Gold(sure, sure)]) == (1.0, 1.0, 0.0)
    assert alignment_scores([{(5, 5)}], [Gold(sure, sure)]) == (0.0, 0.0, 1.0)
    # over two sentences the counts are added, not the rates: 1 - (1 + 0 + 1 + 0) / (1 + 1 + 1 + 2)
    two = [Gold({(0, 0)}, {(0, 0)}), Gold({(1, 1), (2, 2)}, {(1, 1), (2, 2)})]
    assert alignment_scores([[(0, 0)], [(7, 7)]], two).error_rate == pytest.approx(0.6)
    assert alignment_scores([[], [(0, 0)]], [Gold({(1, 1)}, {(1, 1)}), Gold(set(), {(0, 0)})]) == (1.0, 0.0, 0.5)
    assert alignment_scores([[]], [Gold(set(), set())]) == (None, None, None)


# ------------------------------------------------------------------------------------------------------ symmetrization

# Rows are target words, columns source words; F forward only, R reverse only, B both:
#
#          0  1  2  3  4
#      0   B  F  .  .  .      0-0 is in both; 1-0 beside it: source 1 has no link yet, so it is added
#      1   .  R  .  .  .      1-1 is diagonal to 0-0 and beside 1-0: target 1 has no link yet, so it is added
#      2   .  .  .  F  .      3-2 is beside nothing: final-and adds it, as neither word has a link
#      3   .  .  .  R  F      3-3: its source 3 has one by then, so it is left out; 4-3: neither word has one, so added
FORWARD = [[(0, 0), (1, 0), (3, 2), (4, 3)]]
REVERSE = [[(0, 0), (1, 1), (3, 3)]]  # as the other model writes it: its source is our target
BY_HAND = {
    "intersection": [(0, 0)],
    "union": [(0, 0), (1, 0), (1, 1), (3, 2), (3, 3), (4, 3)],
    "grow-diag-final-and": [(0, 0), (1, 0), (1, 1), (3, 2), (4, 3)],
}


@pytest.mark.parametrize("how", SYMMETRIZATIONS)
def test_symmetrization_by_hand(how: str) -> None:
    assert [*symmetrized(how, FORWARD, REVERSE)] == [BY_HAND[how]]


def grown_plainly(forward: Links, reverse: Links) -> set[Link]:
    """grow-diag-final-and as published: sweeps over all links until a sweep adds nothing."""

    def in_order(links: Links) -> list[Link]:
        return sorted(links, key=lambda link: (link[1], link[0]))

    either, links = set(forward) | set(reverse), set(forward) & set(reverse)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    growing = True
    while growing:
        growing = False
        for source, target in in_order(either):
            if (source, target) in links:
                for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                    new = (source + right, target + down)
                    if new in either and new not in links and (new[0] not in sources or new[1] not in targets):
                        links.add(new)
                        sources.add(new[0])
                        targets.add(new[1])
                        growing = True
    for direction in (forward, reverse):
        for link in in_order(direction):
            if link[0] not in sources and link[1] not in targets:
                links.add(link)
                sources.add(link[0])
                targets.add(link[1])
    return links


dense = some.sets(some.tuples(some.integers(0, 7), some.integers(0, 7)), max_size=40)
sparse = some.sets(some.tuples(some.integers(0, 15), some.integers(0, 15)), max_size=40)


@settings(max_examples=150)
@given(some.one_of(some.tuples(dense, dense), some.tuples(sparse, sparse)))
def test_each_link_is_visited_once_and_grows_what_sweeps_grow(directions: tuple[set[Link], set[Link]]) -> None:
    assert grow_diag_final_and(*directions) == grown_plainly(*directions)


@pytest.mark.parametrize("step", [1, -1])
def test_growing_a_long_chain_takes_no_longer_than_its_links(step: int) -> None:
    """With sweeps over all links that add one link each, 3,000 links took 5 s and 13,000 took 100 s."""
    chain = [(place if step == 1 else 2999 - place, place) for place in range(3000)]
    start = chain[-1]  # the last in order, so that each of the others is added behind
    began = time.perf_counter()
    grown = grow_diag_final_and(chain, [start])
    assert time.perf_counter() - began < 2.0
    assert grown == set(chain)
