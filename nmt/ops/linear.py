"""A linear layer whose products, forward and backward, are those of `nmt.ops.products`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.products import outer_products, product


class Linear(nn.Linear):
    """x Wᵀ + b (…, out_features) for x (…, in_features). `nn.Linear` is its plain twin."""

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias)


class ConcatLinear(nn.Linear):
    """W [x ; y] = W_x x + W_y y without bias, for parts x and y that are multiplied each by itself."""

    def __init__(self, first_size: int, second_size: int, out_features: int) -> None:
        super().__init__(first_size + second_size, out_features, bias=False)
        self.first_size = first_size

    def first(self, inputs: Tensor) -> Tensor:
        """W_x x (…, out_features) for x (…, first_size)."""
        return linear(inputs, self.weight[:, : self.first_size])

    def second(self, inputs: Tensor) -> Tensor:
        """W_y y (…, out_features) for y (…, second_size)."""
        return linear(inputs, self.weight[:, self.first_size :])


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b (…, output_size), for inputs x (…, input_size) and a weight W (output_size, input_size)."""
    if not fused():
        return nn.functional.linear(inputs, weight, bias)
    if not torch.is_grad_enabled():
        return product(inputs, rounded(weight).t(), bias)
    result: Tensor = _Linear.apply(inputs, weight, bias)
    return result


class _Linear(torch.autograd.Function):
    """dx = g W, dW = Σ g xᵀ, db = Σ g."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.computing = now()
        matrix = rounded(weight)
        ctx.save_for_backward(inputs, matrix)
        return product(inputs, matrix.t(), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        for_inputs, for_weight, for_bias = ctx.needs_input_grad
        flat = gradient.reshape(-1, gradient.size(-1))
        with computing(*ctx.computing):
            return (
                product(gradient, weight) if for_inputs else None,
                outer_products(flat, inputs.reshape(-1, inputs.size(-1))) if for_weight else None,
                flat.sum(0) if for_bias else None,
            )
