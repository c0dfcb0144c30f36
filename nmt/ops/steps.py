"""What all steps of a loop read, layers and memories, whose gradients are formed once for all steps.

A product y_t = W x_t in every step of a loop gives autograd one weight gradient a step, g_t x_tᵀ, as large as W and
added to the last. Inside `weight_gradients_at_once` the layers keep x_t and g_t instead and form

    dW = Σ_t g_t x_tᵀ = [g_1 … g_T] [x_1 … x_T]ᵀ,        db = Σ_t g_t

when the backward pass has left the loop. Their plain twin is `nn.Linear`. So do the weighted sums c_t = a_t H and the
inner products e_t = q_t Hᵀ of attention with a memory H: dH = Σ_t a_tᵀ g_t, and dH = Σ_t g_tᵀ q_t.

In the graph of a loop, what is shared stands before all its steps and `_Outputs` after them, so that a backward pass
comes first to `_Outputs`, which forgets what an earlier pass has left, then to the steps, which keep, and last to what
is shared, which takes. No pass needs the one before it, and none has to ask for the gradients of the weights.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.linear import Linear
from nmt.ops.products import outer_products, product

State = TypeVar("State")

Kept = list[tuple[Tensor, Tensor]]
"""Of the steps that a backward pass has come through, the two factors of what they add to a gradient: those of a layer
are the gradients of its outputs (…, output_size) and its inputs (…, input_size), those of a memory (batch, queries,
source_length) and (batch, queries, size)."""


class Loop:
    """One loop: what its steps share, and what they keep."""

    def __init__(self) -> None:
        self._shared: dict[nn.Module | Tensor, tuple[tuple[Tensor | None, ...], Kept]] = {}

    def outputs(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The same tensors, which must be all that is read of the loop's steps after it."""
        kept = [kept for _, kept in self._shared.values()]
        outputs: tuple[Tensor, ...] = _Outputs.apply(kept, *tensors)
        return outputs

    def weights(self, layer: "StepLinear") -> tuple[tuple[Tensor | None, ...], Kept]:
        """What the steps of the layer multiply by and add, and where they keep their part of the gradient."""
        return self._of_all(layer, _Weights, layer.weight, layer.bias)

    def memory(self, values: Tensor) -> tuple[tuple[Tensor | None, ...], Kept]:
        """The same of a memory (batch, source_length, size)."""
        return self._of_all(values, _Memory, values)

    def _of_all(
        self, key: nn.Module | Tensor, function: type[torch.autograd.Function], *tensors: Tensor | None
    ) -> tuple[tuple[Tensor | None, ...], Kept]:
        if key not in self._shared:
            kept: Kept = []
            self._shared[key] = (function.apply(kept, *tensors), kept)
        return self._shared[key]


_current: ContextVar[Loop | None] = ContextVar("loop", default=None)


@contextmanager
def weight_gradients_at_once() -> Iterator[Loop]:
    """Inside the block, every `StepLinear` forms its weight gradient once for all steps of the block.

    What is read of the steps afterwards has to go through the loop's `outputs`, in one call: `run_steps` sees to it.
    """
    loop = Loop()
    token = _current.set(loop if torch.is_grad_enabled() and fused() else None)
    try:
        yield loop
    finally:
        _current.reset(token)


def run_steps(
    step: Callable[..., tuple[Sequence[Tensor], State]], state: State, *of_steps: Iterable[Any]
) -> tuple[Tensor, ...]:
    """The outputs of all steps of a loop, whose `StepLinear`s form their weight gradients once.

    `step` maps the state and what each of `of_steps` has for the step to its outputs, each (batch, …), and the next
    state. The outputs of all steps are stacked: (batch, steps, …).
    """
    outputs = []
    with weight_gradients_at_once() as loop:
        for arguments in zip(*of_steps, strict=True):
            of_step, state = step(state, *arguments)
            outputs.append(of_step)
    return loop.outputs(*(torch.stack(parts, dim=1) for parts in zip(*outputs, strict=True)))


class StepLinear(Linear):
    """A linear layer that is used once in every step of a loop."""

    def forward(self, inputs: Tensor) -> Tensor:
        loop = _current.get()
        if loop is None:
            return super().forward(inputs)
        (weight, bias), kept = loop.weights(self)
        result: Tensor = _StepProduct.apply(inputs, weight, bias, kept)
        return result


def weighted_sums(weights: Tensor, values: Tensor) -> Tensor:
    """Σ_j a_ij h_j (batch, queries, size) of a memory h (batch, source_length, size), the same in all steps of a loop,
    by weights a (batch, queries, source_length). `weights @ values` is the plain twin."""
    loop = _current.get()
    return weights @ values if loop is None else _with_memory(weights, loop, values, transposed=False)


def inner_products(queries: Tensor, keys: Tensor) -> Tensor:
    """q_iᵀ k_j (batch, queries, source_length) of queries q (batch, queries, size) with a memory k (batch,
    source_length, size), the same in all steps of a loop. `queries @ keys.transpose(1, 2)` is the plain twin."""
    loop = _current.get()
    return queries @ keys.transpose(1, 2) if loop is None else _with_memory(queries, loop, keys, transposed=True)


def _with_memory(rows: Tensor, loop: Loop, values: Tensor, *, transposed: bool) -> Tensor:
    (shared,), kept = loop.memory(values)
    result: Tensor = _StepMemory.apply(rows, shared, kept, transposed)
    return result


class _Outputs(torch.autograd.Function):
    """The outputs of a loop as they are; a backward pass begins here, so what an earlier one has left is forgotten."""

    @staticmethod
    def forward(ctx: Any, kept: list[Kept], *outputs: Tensor) -> tuple[Tensor, ...]:
        ctx.kept = kept
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        for kept in ctx.kept:
            kept.clear()
        return None, *gradients


class _Weights(torch.autograd.Function):
    """The weights, rounded if products are to be; their gradient comes from what the steps have kept, when all have."""

    @staticmethod
    def forward(ctx: Any, kept: Kept, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        ctx.kept, ctx.computing = kept, now()
        ctx.set_materialize_grads(False)
        return rounded(weight), bias

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple[None, Tensor | None, Tensor | None]:
        gradients, inputs = (
            torch.cat([part.flatten(0, -2) for part in parts]) for parts in zip(*ctx.kept, strict=True)
        )
        ctx.kept.clear()
        with computing(*ctx.computing):
            weight = outer_products(gradients, inputs) if ctx.needs_input_grad[1] else None
        return None, weight, gradients.sum(0) if ctx.needs_input_grad[2] else None


class _Memory(torch.autograd.Function):
    """A memory as it is; its gradient is one product of what the steps have kept."""

    @staticmethod
    def forward(ctx: Any, kept: Kept, values: Tensor) -> tuple[Tensor]:
        ctx.kept = kept
        ctx.set_materialize_grads(False)
        return (values,)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: None) -> tuple[None, Tensor]:
        weights, vectors = (torch.cat(parts, dim=1) for parts in zip(*ctx.kept, strict=True))
        ctx.kept.clear()
        return None, weights.transpose(1, 2) @ vectors


class _StepProduct(torch.autograd.Function):
    """x Wᵀ + b; the gradients of W and b are left to `_Weights`, which is in the graph before every step."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, kept: Kept) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.kept = kept
        return product(inputs, weight.t(), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        inputs, weight = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.kept.append((gradient, inputs.detach()))  # with its graph, which holds `kept`, neither would be freed
        return product(gradient, weight) if ctx.needs_input_grad[0] else None, None, None, None


class _StepMemory(torch.autograd.Function):
    """x H, or x Hᵀ if `transposed`; the gradient of H is left to `_Memory`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, values: Tensor, kept: Kept, transposed: bool) -> Tensor:
        ctx.save_for_backward(rows, values)
        ctx.kept, ctx.transposed = kept, transposed
        return rows @ (values.transpose(1, 2) if transposed else values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        rows, values = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.kept.append((gradient, rows.detach()) if ctx.transposed else (rows.detach(), gradient))
        of_rows = gradient @ (values if ctx.transposed else values.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return of_rows, None, None, None
