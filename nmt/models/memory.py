"""What attention reads: the memory of the source, and what it remembers of its own earlier steps.

Plain tuples of tensors, moved and selected by search; the computations are in `attention.py`, `scores.py` and
`scopes.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Memory(NamedTuple):
    """The source, computed once a sentence: one row a sentence, however many hypotheses look at it."""

    values: Tensor  # (batch, source_length, memory_size), the encoder's annotations
    keys: Tensor  # (batch, source_length, key_size), what the score compares with; projected once
    lengths: Tensor  # (batch,), tokens of each sentence that the encoder read, END usually counted
    mask: Tensor | None  # (batch, source_length), True at real tokens; None only where nothing is padded

    def select(self, sentences: Tensor) -> "Memory":
        """The rows `sentences` (indices into the batch)."""
        values, keys, lengths = (part.index_select(0, sentences) for part in self[:3])
        return Memory(values, keys, lengths, None if self.mask is None else self.mask.index_select(0, sentences))


class Past(NamedTuple):
    """What is known before a step: its time, and what a score or scope asked to remember of the steps before.

    As a decoder's state the leading axis of the weights is the rows of the step, (rows, source_length); as the input of
    scores and scopes it is (batch, queries, source_length).
    """

    steps: Tensor | int  # (queries,), the position in the target of each query, counted from 0; a number: of all
    weights: Tensor | None = None  # of the step before; 0 before the first
    coverage: Tensor | None = None  # C_i = Σ_{k<i} a_k, the sum of the weights of all steps before

    def select(self, rows: Tensor) -> "Past":
        """The rows `rows`, a flat tensor of indices. All rows of a step stand at the same position."""
        return self._changed(lambda part: part.index_select(0, rows))

    def next(self, weights: Tensor) -> "Past":
        """The past of the next step, after one whose weights were `weights` (rows, source_length)."""
        return Past(
            self.steps + 1,
            None if self.weights is None else weights,
            None if self.coverage is None else self.coverage + weights,
        )

    def by_sentence(self, batch: int) -> "Past":
        """The same with the rows of each of `batch` sentences as its queries: (batch, queries, source_length)."""
        return self._changed(lambda part: part.view(batch, -1, part.size(1)))

    def _changed(self, change: Callable[[Tensor], Tensor]) -> "Past":
        if self.weights is None and self.coverage is None:
            return self
        weights, coverage = (None if part is None else change(part) for part in (self.weights, self.coverage))
        return Past(self.steps, weights, coverage)


def all_steps(count: int, *, device: torch.device) -> Past:
    """The past of `count` queries that are the steps 0, 1, … of a target, where nothing has to be remembered."""
    return Past(torch.arange(count, device=device))
