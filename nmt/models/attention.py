"""Attention: a score between a query and every source position, a softmax over the positions, a weighted sum.

`Attention` alone owns the mask, the scope, the softmax and the sum. A score is a class with `forward(query, keys)`
and, if it must, `project(values)`; adding one means a class and a line in SCORES, and no other source file.

Bahdanau, Cho & Bengio (2014), arXiv 1409.0473, section 3.1; Luong, Pham & Manning (2015), arXiv 1508.04025, section 3.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nmt.ops.masks import length_mask, masked_softmax


class Memory(NamedTuple):
    """What attention reads, computed once a sentence: one row a sentence, however many hypotheses look at it."""

    values: Tensor  # (batch, source_length, memory_size), the encoder's annotations
    keys: Tensor  # (batch, source_length, key_size), what the score compares with; projected once
    mask: Tensor  # (batch, source_length), True at real tokens

    def select(self, sentences: Tensor) -> "Memory":
        """The rows `sentences` (indices into the batch)."""
        return Memory(*(part.index_select(0, sentences) for part in self))


class Score(nn.Module):
    """How well each query matches each source position: e (batch, queries, source_length)."""

    options: ClassVar[frozenset[str]] = frozenset()
    """Keys of the configuration section `model.attention` that the constructor takes, besides the two sizes."""

    def project(self, values: Tensor) -> Tensor:
        """Keys (batch, source_length, key_size) from the annotations; by default the annotations themselves."""
        return values

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (batch, queries, source_length) of `query` (batch, queries, query_size) against `keys`."""
        raise NotImplementedError


class AdditiveScore(Score):
    """e_ij = v_aᵀ tanh(W_a s_i + U_a h_j), Bahdanau et al. (2014), A.1.2; with `bias`: tanh(W_a s_i + U_a h_j + b).

    s_i is the query, h_j an annotation; W_a (size, query_size), U_a (size, memory_size), v_a (size,). U_a h_j does not
    depend on i and is computed once. The paper writes no bias, and its authors' code has none.
    """

    options = frozenset({"size", "bias"})

    def __init__(self, query_size: int, memory_size: int, *, size: int, bias: bool) -> None:
        super().__init__()
        self.query_layer = nn.Linear(query_size, size, bias=False)
        self.memory_layer = nn.Linear(memory_size, size, bias=bias)
        self.vector = nn.Parameter(torch.empty(size))

    def project(self, values: Tensor) -> Tensor:
        return self.memory_layer(values)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.query_layer(query).unsqueeze(2) + keys.unsqueeze(1))
        return hidden @ self.vector


SCORES: dict[str, type[Score]] = {"additive": AdditiveScore}


class Attention(nn.Module):
    """a_i = softmax_j(e_ij) over the real positions j of the sentence (global scope), and c_i = Σ_j a_ij h_j."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def remember(self, values: Tensor, lengths: Tensor) -> Memory:
        """The memory of a batch: `values` (batch, source_length, memory_size), `lengths` (batch,) in tokens."""
        return Memory(values, self.score.project(values), length_mask(lengths, values.size(1)))

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Contexts (batch, queries, memory_size) and weights (batch, queries, source_length) of the queries
        (batch, queries, query_size): the time steps of a sentence in training, the rows of its beam in search."""
        weights = masked_softmax(self.score(query, memory.keys), memory.mask.unsqueeze(1))
        return weights @ memory.values, weights
