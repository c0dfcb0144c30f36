"""Linear layers of a loop over time steps, whose weight gradients are formed once for all steps.

A product y_t = W x_t in every step of a loop gives autograd one weight gradient a step, g_t x_tᵀ, as large as W and
added to the last. Inside `weight_gradients_at_once` the layers keep x_t and g_t instead and form

    dW = Σ_t g_t x_tᵀ = [g_1 … g_T] [x_1 … x_T]ᵀ,        db = Σ_t g_t

when the backward pass has left the loop. Their plain twin is `nn.Linear`.

In the graph of a loop, `_Weights` of a layer stands before all its steps and `_Outputs` after them, so that a backward
pass comes first to `_Outputs`, which forgets what an earlier pass has left, then to the steps, which keep, and last to
`_Weights`, which takes. No pass needs the one before it, and none has to ask for the gradients of the weights.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.linear import Linear
from nmt.ops.products import outer_products, product

State = TypeVar("State")

Kept = list[tuple[Tensor, Tensor]]
"""The inputs (…, input_size) of a layer and the gradients of its outputs (…, output_size), of the steps that a backward
pass has come through."""


class Loop:
    """One loop: the weights of its layers, and what its steps keep."""

    def __init__(self) -> None:
        self._layers: dict[StepLinear, tuple[Tensor, Tensor | None, Kept]] = {}

    def outputs(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The same tensors, which must be all that is read of the loop's steps after it."""
        kept = [kept for *_, kept in self._layers.values()]
        outputs: tuple[Tensor, ...] = _Outputs.apply(kept, *tensors)
        return outputs

    def weights_of(self, layer: "StepLinear") -> tuple[Tensor, Tensor | None, Kept]:
        """What the steps of the layer multiply by and add, and keep their part of the gradient in."""
        if layer not in self._layers:
            kept: Kept = []
            self._layers[layer] = (*_Weights.apply(layer.weight, layer.bias, kept), kept)
        return self._layers[layer]


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
        result: Tensor = _StepProduct.apply(inputs, *loop.weights_of(self))
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
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, kept: Kept) -> tuple[Tensor, Tensor | None]:
        ctx.kept, ctx.computing = kept, now()
        ctx.set_materialize_grads(False)
        return rounded(weight), bias

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple[Tensor | None, Tensor | None, None]:
        inputs, gradients = (
            torch.cat([part.flatten(0, -2) for part in parts]) for parts in zip(*ctx.kept, strict=True)
        )
        ctx.kept.clear()
        with computing(*ctx.computing):
            weight = outer_products(gradients, inputs) if ctx.needs_input_grad[0] else None
        return weight, gradients.sum(0) if ctx.needs_input_grad[1] else None, None


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
            ctx.kept.append((inputs.detach(), gradient))  # with its graph, which holds `kept`, neither would be freed
        return product(gradient, weight) if ctx.needs_input_grad[0] else None, None, None, None
