"""Linear layers of a loop over time steps, whose weight gradients are formed once for all steps.

A product y_t = W x_t in every step of a loop gives autograd one weight gradient a step, g_t x_tᵀ, as large as W and
added to the last. Inside `weight_gradients_at_once` the layers keep x_t and g_t instead and form

    dW = Σ_t g_t x_tᵀ = [g_1 … g_T] [x_1 … x_T]ᵀ,        db = Σ_t g_t

when the backward pass has left the loop. Their plain twin is `nn.Linear`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.linear import Linear
from nmt.ops.products import outer_products, product


class StepLinear(Linear):
    """A linear layer that is used once in every step of a loop."""

    _loop: "_Loop | None" = None  # set inside `weight_gradients_at_once`

    def forward(self, inputs: Tensor) -> Tensor:
        if self._loop is None:
            return super().forward(inputs)
        result: Tensor = _StepProduct.apply(inputs, *self._loop)
        return result


@contextmanager
def weight_gradients_at_once(module: nn.Module) -> Iterator[None]:
    """Inside the block, every `StepLinear` of `module` forms its weight gradient once for all steps of the block."""
    layers = [layer for layer in module.modules() if isinstance(layer, StepLinear)]
    if torch.is_grad_enabled() and fused():
        for layer in layers:
            kept = _Kept()
            weight, bias = _Weights.apply(layer.weight, layer.bias, kept)
            layer._loop = _Loop(weight, bias, kept)
    try:
        yield
    finally:
        for layer in layers:
            layer._loop = None


class _Kept:
    """What the steps of a loop have kept in a backward pass: inputs (rows, input_size) and gradients of the outputs
    (rows, output_size) of each step."""

    def __init__(self) -> None:
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._pass = -1

    def add(self, inputs: Tensor, gradient: Tensor) -> None:
        now = torch._C._current_graph_task_id()  # the number of the backward pass that is running
        if self._pass != now:  # what an earlier pass has kept, in which nobody asked for the gradient of the weights
            self._pass = now
            self._steps.clear()
        self._steps.append((inputs.reshape(-1, inputs.size(-1)), gradient.reshape(-1, gradient.size(-1))))

    def take(self) -> tuple[Tensor, Tensor] | None:
        """Inputs and gradients of all steps of this pass, one below the other; None if there were none."""
        steps = self._steps if self._pass == torch._C._current_graph_task_id() else []
        self._steps = []  # a second pass over the same graph fills it anew
        return (torch.cat([step[0] for step in steps]), torch.cat([step[1] for step in steps])) if steps else None


class _Loop(NamedTuple):
    """What the steps of one loop share."""

    weight: Tensor
    bias: Tensor | None
    kept: _Kept


class _Weights(torch.autograd.Function):
    """The weights, rounded if products are to be; their gradient comes from what the steps have kept, when all have."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, kept: _Kept) -> tuple[Tensor, Tensor | None]:
        ctx.kept, ctx.bias, ctx.computing = kept, bias is not None, now()
        ctx.set_materialize_grads(False)
        own = rounded(weight)
        return own.view_as(weight) if own is weight else own, None if bias is None else bias.view_as(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple[Tensor | None, Tensor | None, None]:
        kept = ctx.kept.take()
        if kept is None:
            return None, None, None
        inputs, gradients = kept
        weight = None
        if ctx.needs_input_grad[0]:
            with computing(*ctx.computing):
                weight = outer_products(gradients, inputs)
        return weight, gradients.sum(0) if ctx.bias and ctx.needs_input_grad[1] else None, None


class _StepProduct(torch.autograd.Function):
    """x Wᵀ + b; the gradients of W and b are left to `_Weights`, which is in the graph before every step."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, kept: _Kept) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.kept = kept
        return product(inputs, weight.t(), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        inputs, weight = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            ctx.kept.add(inputs, gradient)
        return product(gradient, weight) if ctx.needs_input_grad[0] else None, None, None, None
