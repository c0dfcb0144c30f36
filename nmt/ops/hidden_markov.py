"""Word alignment by agreement: hidden Markov models of both directions, learned together from parallel text.

The j-th target piece f_j comes from the source piece at the place a_j, or from NULL. Each place depends on the one
before, by the distance between them, and NULL remembers the place that it comes after, at first any:

    p(f, a | e) = Π_j p(a_j | a_{j-1}) t(f_j | e_{a_j})          t(f | e) as in `nmt.ops.translation_table`
    p(i | i')   = (1 - p₀) ((1 - ε) c(i - i') / Σ_k c(k - i') + ε / I)          p₀ for NULL, 1 ≤ i, k ≤ I, a_0 = 0

c(d) is how often a place is expected d after the last. Forward and backward sums give γ_ij, how probable it is that
f_j comes from e_i; those of the other direction, from target to source, γ'_ji. Each model learns from what both find:

    expected counts    c(f | e) = Σ_pairs Σ_i Σ_j [e_i = e] [f_j = f] γ_ij γ'_ji          what is left of f_j is NULL's

so that the two contradict each other in few places. They begin with the tables of IBM Model 1 with positions, and with
distances around 1.

Vogel, Ney & Tillmann (1996), COLING; Och & Ney (2003), Computational Linguistics 29(1), for NULL; Liang, Taskar & Klein
(2006), NAACL, "Alignment by Agreement".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nmt.ops.translation_table import NULL_SHARE, Pair, cells, expected_probabilities, grouped, ibm_model_1, with_null

FIRST_ITERATIONS, ITERATIONS = 3, 2  # of Model 1, and of both models together
EVEN_SHARE = 0.1  # ε
FARTHEST, SLOPE = 100, 0.3  # distances are counted up to here; the first c(d) is exp(-slope |d - 1|)
_LEAST = 1e-9  # t(f | e) of pieces that never occur together, or whose count came to nothing


class Posteriors(NamedTuple):
    """What a model expects of pairs of the same lengths, I and J."""

    origins: Tensor  # (pairs, I + 1, J): γ, with NULL last
    first: Tensor  # (I,): how many of the pairs begin at each place
    steps: Tensor | None  # (I, I): how many steps go from each place to each, where it was asked for


def posteriors(emissions: Tensor, jumps: Tensor, *, with_steps: bool = True) -> Posteriors:
    """Forward and backward sums, scaled at each piece: `emissions` t(f_j | e_i) (pairs, I + 1, J), the last of NULL;
    `jumps` p(i | i') (I + 1, I), the first row from the beginning, without p₀. Time grows with I² J."""
    length, pieces = emissions.size(1) - 1, emissions.size(2)
    likelihoods = emissions.permute(2, 0, 1)
    seen, null = (1 - NULL_SHARE) * likelihoods[..., :length], NULL_SHARE * likelihoods[..., length:]
    begins, jumps = jumps[0], jumps[1:]
    places, nulls, scales = torch.empty_like(seen), torch.empty_like(seen), torch.empty_like(null)
    at_place, at_null = seen[0] * begins, null[0].expand(-1, length) / length
    for piece in range(pieces):
        if piece:
            before = places[piece - 1] + nulls[piece - 1]
            at_place, at_null = seen[piece] * (before @ jumps), null[piece] * before
        scales[piece] = (at_place + at_null).sum(dim=1, keepdim=True)
        torch.div(at_place, scales[piece], out=places[piece])
        torch.div(at_null, scales[piece], out=nulls[piece])
    origins, steps = torch.empty_like(likelihoods), torch.zeros_like(jumps)
    behind = torch.ones_like(seen[0])  # what follows is as probable from NULL as from the place that it remembers
    for piece in reversed(range(pieces)):
        torch.mul(places[piece], behind, out=origins[piece, :, :length])
        torch.sum(nulls[piece] * behind, dim=1, out=origins[piece, :, length])
        if piece:
            reached = seen[piece] * behind / scales[piece]
            if with_steps:
                steps += (places[piece - 1] + nulls[piece - 1]).T @ reached
            behind = reached @ jumps.T + null[piece] * behind / scales[piece]
    first = origins[0, :, :length].sum(dim=0)
    return Posteriors(origins.permute(1, 2, 0), first, steps * jumps if with_steps else None)


class Direction:
    """The model of one direction, and what it counts."""

    def __init__(self, pairs: Sequence[Pair], source_size: int, target_size: int) -> None:
        sizes = {"source_size": source_size, "target_size": target_size}
        table = ibm_model_1(pairs, **sizes, iterations=FIRST_ITERATIONS, with_positions=True)
        self._null, self._target_size = source_size, target_size
        cells_of_table = table.sources * target_size + table.targets
        beyond = source_size + 1  # one cell behind all others, so that each that is looked up has a place
        self._sources = nn.functional.pad(table.sources, (0, 1), value=beyond)
        self._cells = nn.functional.pad(cells_of_table, (0, 1), value=beyond * target_size)
        self._probabilities = nn.functional.pad(table.probabilities, (0, 1))
        self._counts = torch.zeros_like(self._probabilities)
        distances = torch.arange(-FARTHEST, FARTHEST + 1)
        self._jumps = torch.exp(-SLOPE * (distances - 1).abs().double())
        self._jump_counts = torch.zeros_like(self._jumps)

    def places(self, source: Tensor, target: Tensor) -> Tensor:
        """Where the table has each cell of pairs of the same lengths (pairs, I + 1, J); the last place: nowhere."""
        wanted = cells(with_null(source, self._null), target, self._target_size)
        places = torch.searchsorted(self._cells, wanted)
        return places.masked_fill_(self._cells[places] != wanted, len(self._cells) - 1)

    def posteriors(self, places: Tensor, *, with_steps: bool = True) -> Posteriors:
        length = places.size(1) - 1
        jumps = self._jumps[_distances(length)]
        jumps = (1 - EVEN_SHARE) * jumps / jumps.sum(dim=1, keepdim=True) + EVEN_SHARE / length
        return posteriors(self._probabilities[places].clamp_(min=_LEAST), jumps, with_steps=with_steps)

    def count(self, places: Tensor, origins: Tensor, found: Posteriors) -> None:
        assert found.steps is not None
        self._counts.index_add_(0, places.flatten(), origins.flatten())
        distances = _distances(len(found.first)).flatten()
        self._jump_counts.index_add_(0, distances, torch.cat([found.first[None], found.steps]).flatten())

    def learn(self) -> None:
        """New probabilities from the counts, which begin anew."""
        self._probabilities = expected_probabilities(self._counts, self._sources)
        self._probabilities[-1] = 0.0
        self._jumps = self._jump_counts + 1e-3  # a distance that no pair had is not impossible
        self._counts, self._jump_counts = torch.zeros_like(self._counts), torch.zeros_like(self._jumps)


def _distances(length: int) -> Tensor:
    """Where `jumps` have i - i', (length + 1, length): from the beginning, and from each place."""
    places = torch.arange(1, length + 1)
    return (places - torch.arange(length + 1)[:, None]).clamp(-FARTHEST, FARTHEST) + FARTHEST


def agreeing(pairs: Sequence[Pair], *, source_size: int, target_size: int) -> tuple[Direction, Direction]:
    """The models of both directions after ITERATIONS over `pairs`; the sizes are vocabularies'."""
    turned = [(target, source) for source, target in pairs]
    forward, backward = Direction(pairs, source_size, target_size), Direction(turned, target_size, source_size)
    for _ in range(ITERATIONS):
        for _, source, target in grouped(pairs):
            places, places_back = forward.places(source, target), backward.places(target, source)
            found = forward.posteriors(places)
            found_back = backward.posteriors(places_back)
            both = found.origins[:, :-1] * found_back.origins[:, :-1].mT
            forward.count(places, _with_rest(both), found)
            backward.count(places_back, _with_rest(both.mT), found_back)
        forward.learn()
        backward.learn()
    return forward, backward


def _with_rest(both: Tensor) -> Tensor:
    """With what is left of each target piece for NULL: (pairs, I + 1, J)."""
    return torch.cat([both, 1 - both.sum(dim=1, keepdim=True)], dim=1)


def most_probable_origins(model: Direction, pairs: Sequence[Pair]) -> list[npt.NDArray[np.int32]]:
    """For each pair, the place that each target piece most probably comes from, by γ; the source's length is NULL."""
    best = [np.zeros(0, dtype=np.int32)] * len(pairs)
    for indices, source, target in grouped(pairs):
        found = model.posteriors(model.places(source, target), with_steps=False)
        origins = found.origins.argmax(dim=1)
        for index, row in zip(indices, origins.numpy().astype(np.int32), strict=True):
            best[index] = row
    return best
