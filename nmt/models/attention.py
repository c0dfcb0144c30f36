"""Attention: a score between a query and the source positions, a softmax over the positions, a weighted sum.

`Attention` alone owns the mask, the scope, the softmax and the sum. Scores are in `scores.py`, scopes in `scopes.py`.
Where a scope has a window, either its positions alone are gathered and scored, or all are scored and those outside
masked, whichever is faster: the same numbers, and the second is the plain twin of the first.

Bahdanau, Cho & Bengio (2014), arXiv 1409.0473, section 3.1; Luong, Pham & Manning (2015), arXiv 1508.04025, section 3.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.models.initialisation import Role, Weight
from nmt.models.memory import Memory, Past
from nmt.models.scopes import Scope, Window
from nmt.models.scores import Score
from nmt.ops.computing import fused
from nmt.ops.masks import length_mask, masked_softmax
from nmt.ops.windows import Slice, Windows

SLICING, GATHERING = 200, 600  # what the operations for a part of the positions cost: see `Attention._near`


class Attention(nn.Module):
    """a_i = softmax_j(e_ij) over the real positions j within the scope, which may scale them; c_i = Σ_j a_ij h_j."""

    def __init__(self, score: Score, scope: Scope, *, memory_size: int) -> None:
        super().__init__()
        self.score = score
        self.scope = scope
        self.context_size = memory_size if score.context else 0

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        return ((parameter, Weight(Role.ATTENTION)) for parameter in self.parameters())

    @property
    def recurrent(self) -> bool:
        """Whether the weights of a step depend on those of the steps before it."""
        return bool(self.score.remembers)

    def remember(self, values: Tensor, lengths: Tensor) -> Memory:
        """The memory of a batch: `values` (batch, source_length, memory_size), `lengths` (batch,) in tokens."""
        # A GPU is not asked: the answer would have to wait for all that it has still to do.
        padded = lengths.device.type != "cpu" or int(lengths.min()) < values.size(1)
        mask = length_mask(lengths, values.size(1)) if padded else None
        if self.scope.half_width is not None:
            values = values.contiguous()  # rows of it will be gathered
        return Memory(values, self.score.project(values), lengths, mask)

    def start(self, memory: Memory) -> Past:
        """What there is to remember before the first step: nothing has been attended to."""
        nothing = memory.values.new_zeros(memory.values.shape[:2])
        weights, coverage = (nothing if name in self.score.remembers else None for name in ("weights", "coverage"))
        return Past(0, weights, coverage)

    def forward(self, query: Tensor, memory: Memory, past: Past) -> tuple[Tensor, Tensor]:
        """Contexts (batch, queries, context_size) and weights (batch, queries, source_length) of the queries
        (batch, queries, query_size); `past` as the score and the scope read it."""
        score, scope = self.score, self.scope
        if not score.context:
            return query.new_zeros(*query.shape[:2], 0), score(query, memory.keys, past)
        real, past = None if memory.mask is None else memory.mask.unsqueeze(1), score.looked_back(past)
        if scope.half_width is None:
            return self._over_all(query, memory, past, scope(None, real))
        centre, length = scope.centre(query, memory.lengths, past.steps), memory.values.size(1)
        near = self._near(query, centre, memory, scope.half_width) if 2 * scope.half_width < length else None
        if near is None:
            positions = torch.arange(length, device=centre.device)
            return self._over_all(query, memory, past, scope(positions - centre.unsqueeze(2), real))
        real = None if real is None else near.positions < memory.lengths.view(-1, 1, 1)
        return self._within(near, query, memory, past, scope(near.positions - centre.unsqueeze(2), real))

    def _over_all(self, query: Tensor, memory: Memory, past: Past, window: Window) -> tuple[Tensor, Tensor]:
        """Contexts and weights from the scores of all positions."""
        weights = _weights(self.score(query, memory.keys, past), window)
        return weights @ memory.values, weights

    def _within(
        self, near: Slice | Windows, query: Tensor, memory: Memory, past: Past, window: Window
    ) -> tuple[Tensor, Tensor]:
        """The same from the scores of the positions `near` alone; `window` is of these positions."""
        values = near.of(memory.values)
        keys = values if memory.keys is memory.values else near.of(memory.keys)
        with near.not_kept((memory.values, values), (memory.keys, keys)):
            scores = self.score(near.fold(query), keys, past.near(near))
            weights = _weights(scores.view(*query.shape[:2], -1), window)
            context = near.fold(weights) @ values
        return context.view(*query.shape[:2], -1), near.spread(weights)

    def _near(self, query: Tensor, centre: Tensor, memory: Memory, half_width: int) -> Slice | Windows | None:
        """The positions near the centers that it is fastest to score; None: all positions.

        The unit of the costs, those of a CPU, is a row of keys and values that is read; all queries of a sentence share
        it. Gathering a row costs about another one for each window.
        """
        cost = self.score.cost(query.size(1))
        if cost is None or not fused():
            return None
        (batch, length), windows, slots = memory.values.shape[:2], centre.size(1), 2 * half_width + 1
        of_all, of_windows = batch * length * (1 + cost), batch * slots * (1 + windows + cost) + GATHERING
        if (windows == 1 or batch == 1) and centre.device.type == "cpu":
            part = Slice.over(centre, half_width, length)
            if batch * (part.stop - part.start) * (1 + cost) + SLICING < min(of_all, of_windows):
                return part
        return Windows.around(centre, half_width, length) if of_windows < of_all else None

    def step(self, query: Tensor, memory: Memory, past: Past) -> tuple[Tensor, Tensor, Past]:
        """One step of every hypothesis: context (rows, context_size), weights (rows, source_length), the next past.

        `query` is (rows, query_size); with k rows a sentence, row i belongs to sentence i // k of the memory.
        """
        batch, rows = memory.values.size(0), query.size(0)
        context, weights = self(query.view(batch, -1, query.size(1)), memory, past.by_sentence(batch))
        weights = weights.reshape(rows, weights.size(2))
        return context.reshape(rows, self.context_size), weights, past.next(weights)


def _weights(scores: Tensor, window: Window) -> Tensor:
    """The weights within the window from the scores, both (batch, queries, positions)."""
    weights = masked_softmax(scores, window.mask)
    if window.factor is not None:
        weights = weights * window.factor
        if window.renormalise:
            weights = weights / weights.sum(-1, keepdim=True)
    return weights
