"""Windows of sentences: some neighboring positions of each, taken out, and what was computed of them put back.

`Slice` is for windows at one place of all sentences, `Windows` for those that are each at another: the first are
views, the second are gathered. Both have the same methods. `Tensor.take_along_dim` is the plain twin.

In the loop of `weight_gradients_at_once`, the gradients of all steps are added to one tensor as large as what windows
are taken from, where autograd would make such a tensor in every step. What is gathered is not kept for the backward
pass but gathered again there: the windows of all steps would be many times as large as the sentences.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.ops.steps import Total, current_loop


class Slice(NamedTuple):
    """One window, the same of every sentence: the positions start … stop - 1 of length."""

    positions: Tensor  # (1, 1, slots)
    start: int
    stop: int
    length: int

    @classmethod
    def over(cls, centres: Tensor, half_width: int, length: int) -> "Slice":
        """All positions s of 0 … length - 1 with |s - p| ≤ D for some center p ≥ 0 of `centres`, and those between."""
        numbers = centres.flatten().tolist()
        start, stop = 0, length
        if math.isfinite(sum(numbers)):  # else the weights of the model have diverged, which its results will show
            start = max(0, int(min(numbers)) - half_width)
            stop = min(length, math.ceil(max(numbers)) + half_width + 1)
        return cls(torch.arange(start, stop).view(1, 1, -1), start, stop, length)

    def of(self, values: Tensor) -> Tensor:
        """The rows of `values` (batch, length, size) in the window: (batch, slots, size)."""
        return _part_of(values, self)

    def of_queries(self, values: Tensor) -> Tensor:
        """The values (batch, queries, length, …) of each query in the window: (batch, queries, slots, …)."""
        return values[:, :, self.start : self.stop]

    def fold(self, values: Tensor) -> Tensor:
        """`values` (batch, queries, …) with a row for each window that `of` gives."""
        return values

    def spread(self, weights: Tensor) -> Tensor:
        """`weights` (batch, queries, slots) at their positions, and 0 elsewhere: (batch, queries, length)."""
        return torch.nn.functional.pad(weights, (self.start, self.length - self.stop))

    def not_kept(self, *pairs: tuple[Tensor, Tensor]) -> AbstractContextManager[None]:
        """As in `Windows`; views take no memory."""
        return nullcontext()

    def take(self, values: Tensor) -> Tensor:
        return values[:, self.start : self.stop]

    def add(self, gradient: Tensor, total: Tensor) -> None:
        total[:, self.start : self.stop] += gradient


class Windows(NamedTuple):
    """Windows of one size around some centers in every sentence of a batch."""

    positions: Tensor  # (batch, windows, slots), without repetitions inside a window
    rows: Tensor  # (batch × windows × slots,): the same among all positions of the batch, sentence by sentence
    length: int  # positions of a sentence, padding included

    @classmethod
    def around(cls, centres: Tensor, half_width: int, length: int) -> "Windows":
        """2D + 1 positions for each center p of `centres` (batch, windows), among them all s with |s - p| ≤ D.

        They begin with ⌈p⌉ - D, but where that would lead out of 0 … length - 1, of which there must be 2D + 1.
        """
        slots = 2 * half_width + 1
        # The limits hold for whole numbers, which NaN becomes: a clamp leaves it as it is.
        first = (centres.detach().ceil().long() - half_width).clamp(0, length - slots)
        positions = first.unsqueeze(2) + torch.arange(slots, device=first.device)
        starts = torch.arange(0, len(first) * length, length, device=first.device)
        return cls(positions, (positions + starts.view(-1, 1, 1)).flatten(), length)

    def of(self, values: Tensor) -> Tensor:
        """The rows of `values` (batch, length, size) in each window: (batch × windows, slots, size)."""
        return _part_of(values, self)

    def of_queries(self, values: Tensor) -> Tensor:
        """The values (batch, queries, length, …) of each query in its window: (batch, queries, slots, …)."""
        index = self.positions.view(*self.positions.shape, *[1] * (values.dim() - 3))
        return values.take_along_dim(index, dim=2)

    def fold(self, values: Tensor) -> Tensor:
        """`values` (batch, queries, …) with a row for each window: (batch × windows, queries / windows, …)."""
        return values.reshape(self.positions.size(0) * self.positions.size(1), -1, *values.shape[2:])

    def spread(self, weights: Tensor) -> Tensor:
        """`weights` (batch, queries, slots) at their positions, and 0 elsewhere: (batch, queries, length)."""
        whole = weights.new_zeros(*weights.shape[:2], self.length)
        return whole.scatter_(2, self.positions.expand_as(weights), weights)

    @contextmanager
    def not_kept(self, *pairs: tuple[Tensor, Tensor]) -> Iterator[None]:
        """Inside the block autograd keeps no tensor that `of` gave: a backward pass that needs it gathers it again.

        `pairs` has each of them, after what it was gathered from.
        """
        if not torch.is_grad_enabled():
            yield
            return
        sources = {_storage(gathered): source.detach() for source, gathered in pairs}

        def pack(tensor: Tensor) -> Any:
            source = sources.get(_storage(tensor))
            return tensor if source is None else (source, tensor.size(), tensor.stride(), tensor.storage_offset())

        def unpack(kept: Any) -> Tensor:
            if isinstance(kept, Tensor):
                return kept
            source, *view = kept
            return self.take(source).as_strided(*view)

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            yield

    def take(self, values: Tensor) -> Tensor:
        return values.flatten(0, 1).index_select(0, self.rows).view(-1, self.positions.size(2), values.size(2))

    def add(self, gradient: Tensor, total: Tensor) -> None:
        total.flatten(0, 1).index_add_(0, self.rows, gradient.flatten(0, 1))


def _part_of(values: Tensor, part: Slice | Windows) -> Tensor:
    loop = current_loop()
    if loop is None:
        return part.take(values)
    result: Tensor = _Part.apply(*loop.added_up(values), part)
    return result


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Part(torch.autograd.Function):
    """What `part` takes of `values` (batch, length, size); the gradient is added to a total, which the loop takes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, total: Total, part: Slice | Windows) -> Tensor:
        ctx.total, ctx.part, ctx.shape = total, part, values.shape
        return part.take(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        if ctx.needs_input_grad[0]:
            if not ctx.total:
                ctx.total.append(gradient.new_zeros(ctx.shape))
            ctx.part.add(gradient, ctx.total[0])
        return None, None, None
