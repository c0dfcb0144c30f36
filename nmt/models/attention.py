"""Attention: a score between a query and the source positions, a softmax over the positions, a weighted sum.

`Attention` alone owns the mask, the scope, the softmax and the sum. Scores are in `scores.py`, scopes in `scopes.py`.
Every position is scored, and those outside a scope's window are masked.

Bahdanau, Cho & Bengio (2014), arXiv 1409.0473, section 3.1; Luong, Pham & Manning (2015), arXiv 1508.04025, section 3.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.models.initialization import Role, Weight
from nmt.models.memory import Memory, Past
from nmt.models.scopes import Scope, Window
from nmt.models.scores import Score
from nmt.ops.masks import length_mask, masked_softmax
from nmt.ops.steps import weighted_sums


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
        real, distance = None if memory.mask is None else memory.mask.unsqueeze(1), None
        if scope.half_width is not None:
            center = scope.center(query, memory.lengths, past.steps)
            distance = torch.arange(memory.values.size(1), device=center.device) - center.unsqueeze(2)
        scores, shape = score(query, memory.keys, past), (*query.shape[:2], memory.values.size(1))
        if scores.shape != shape:  # which might broadcast to it
            given = f"{type(score).__name__} gives scores of shape {tuple(scores.shape)}"
            raise ValueError(f"{given}; here (batch, queries, source_length) is {shape}")
        weights = _weights(scores, scope(distance, real))
        return weighted_sums(weights, memory.values), weights

    def step(self, query: Tensor, memory: Memory, past: Past) -> tuple[Tensor, Tensor, Past]:
        """One step of every hypothesis: context (rows, context_size), weights (rows, source_length), the next past.

        `query` is (rows, query_size); with k rows a sentence, row i belongs to sentence i // k of the memory.
        """
        batch, rows = memory.values.size(0), query.size(0)
        context, weights = self(query.view(batch, -1, query.size(1)), memory, past.by_sentence(batch))
        weights = weights.reshape(rows, weights.size(2))
        context = context.reshape(rows, self.context_size) if self.score.context else query[:, :0]
        return context, weights, past.next(weights)


def _weights(scores: Tensor, window: Window) -> Tensor:
    """The weights within the window from the scores, both (batch, queries, positions)."""
    weights = masked_softmax(scores, window.mask)
    if window.factor is not None:
        weights = weights * window.factor
        if window.renormalize:
            weights = weights / weights.sum(-1, keepdim=True)
    return weights
