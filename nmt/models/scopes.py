"""Scopes of attention: which source positions a query may look at, and how much for their place alone.

Luong, Pham & Manning (2015), arXiv 1508.04025, sections 3.1 (global) and 3.2 (local). Positions are counted from 0 in
the order of the text; S is the number of a sentence's tokens, END counted. The paper clips a window at the borders of
the sentence, and so do these. Where the authors' code and the paper differ, this is the paper: the window of local-p is
centered on the real number p_t (their code: on its floor).
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.memory import Memory, Past
from nmt.ops.steps import StepLinear


class Window(NamedTuple):
    """Where each query may look."""

    mask: Tensor | None  # (batch, queries or 1, source_length), True inside; None: every position is
    factor: Tensor | None = None  # (batch, queries, source_length), multiplies the weights after the softmax
    renormalise: bool = False  # whether the product is made to sum to 1 again


class Scope(nn.Module):
    """All scopes are functions of the query, the memory's lengths and the target position."""

    options: ClassVar[frozenset[str]] = frozenset()
    """Keys of the configuration section `model.attention` that the constructor takes, besides the query's size."""

    def forward(self, query: Tensor, memory: Memory, past: Past) -> Window:
        """The window of each query of `query` (batch, queries, query_size)."""
        raise NotImplementedError


class GlobalScope(Scope):
    """Every position of the sentence."""

    def __init__(self, query_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, memory: Memory, past: Past) -> Window:
        return Window(None if memory.mask is None else memory.mask.unsqueeze(1))


class LocalMonotonicScope(Scope):
    """local-m: the positions s with |s - p_t| ≤ D, where p_t = min(t, S - 1) for the target position t.

    The paper says p_t = t; the clamp, without which a target longer than its source would look at nothing, is from the
    authors' code. There is no Gaussian.
    """

    options = frozenset({"half_width"})

    def __init__(self, query_size: int, *, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width

    def forward(self, query: Tensor, memory: Memory, past: Past) -> Window:
        centre = (memory.lengths.unsqueeze(1) - 1).clamp(max=past.steps)  # (batch, queries)
        distance = _distance(centre, memory)
        return Window(_real(distance.abs() <= self.half_width, memory))


class LocalPredictiveScope(Scope):
    """local-p: the positions s with |s - p_t| ≤ D around a predicted position, weighted by a Gaussian:

        p_t = (S - 1) · σ(v_pᵀ tanh(W_p h_t))        equation 9; in [0, S - 1], a real number
        a_t(s) = align(s) · exp(-(s - p_t)² / (2σ²))    equation 10, with σ = D / 2

    align is the softmax over the window. The Gaussian comes after it, so the weights sum to less than 1, as in the
    paper; `renormalise` makes them sum to 1 again. Gradients reach W_p (query_size, query_size) and v_p (query_size,)
    through the Gaussian alone.
    """

    options = frozenset({"half_width", "renormalise"})

    def __init__(self, query_size: int, *, half_width: int, renormalise: bool) -> None:
        super().__init__()
        self.half_width = half_width
        self.renormalise = renormalise
        self.layer = StepLinear(query_size, query_size, bias=False)
        self.vector = nn.Parameter(torch.empty(query_size))

    def centre(self, query: Tensor, lengths: Tensor) -> Tensor:
        """p_t (batch, queries) for the queries (batch, queries, query_size) in sentences of `lengths` (batch,)."""
        share = torch.sigmoid(torch.tanh(self.layer(query)) @ self.vector)
        return (lengths.unsqueeze(1) - 1) * share

    def forward(self, query: Tensor, memory: Memory, past: Past) -> Window:
        distance = _distance(self.centre(query, memory.lengths), memory)
        inside = _real(distance.abs() <= self.half_width, memory)
        deviation = self.half_width / 2
        return Window(inside, torch.exp(-distance.square() / (2 * deviation**2)), self.renormalise)


def _distance(centre: Tensor, memory: Memory) -> Tensor:
    """s - p_t (batch, queries, source_length) for every source position s, given p_t (batch, queries)."""
    positions = torch.arange(memory.values.size(1), device=memory.values.device)
    return positions - centre.unsqueeze(2)


def _real(inside: Tensor, memory: Memory) -> Tensor:
    """`inside` (batch, queries, source_length), but for padding."""
    return inside if memory.mask is None else inside & memory.mask.unsqueeze(1)


SCOPES: dict[str, type[GlobalScope] | type[LocalMonotonicScope] | type[LocalPredictiveScope]] = {
    "global": GlobalScope,
    "local-m": LocalMonotonicScope,
    "local-p": LocalPredictiveScope,
}
