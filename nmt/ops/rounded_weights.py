"""Linear layers whose weights are rounded once, for inference: to bfloat16, or to 8-bit integers.

`round_weights` gives every `Linear` of a model a product of its own that reads the rounded weight. The model keeps its
float32 weights, and must not be trained so.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.ops.linear import Linear
from nmt.ops.products import product

Product = Callable[[Tensor], Tensor]
WEIGHT_RANGE = 127  # of a signed 8-bit integer, used symmetrically


def bfloat16_product(weight: Tensor, bias: Tensor | None) -> Product:
    """x Wᵀ + b with x and W rounded to bfloat16, summed in float32; float32 in and out."""
    turned = weight.bfloat16().t()
    return lambda inputs: product(inputs, turned, bias)


def int8_product(weight: Tensor, bias: Tensor | None) -> Product:
    """x Wᵀ + b with x and W rounded to 8-bit integers, a scale for each row of x and of W: on a CPU, by oneDNN.

    y_ij = s_i t_j Σ_k round(x_ik / s_i) round(W_jk / t_j) + b_j, s_i = max_k |x_ik| / 127, t_j = max_k |W_jk| / 127.
    The sums of integers are exact, so no row depends on another.
    """
    scales = _scales(weight, WEIGHT_RANGE)
    packed = torch.ops.onednn.qlinear_prepack((weight / scales).round().to(torch.int8), None)
    zeros = torch.zeros(weight.size(0), dtype=torch.int32)
    weight_scales, limit = scales.squeeze(1), _input_range()

    def multiply(inputs: Tensor) -> Tensor:
        flat = inputs.reshape(-1, inputs.size(-1))
        row_scales = _scales(flat, limit)
        rounded = (flat / row_scales).round_().add_(limit + 1).to(torch.uint8)
        result: Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, limit + 1, packed, weight_scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
        ).mul_(row_scales)
        if bias is not None:
            result += bias
        return result.view(*inputs.shape[:-1], result.size(1))

    return multiply


def _scales(rows: Tensor, limit: int) -> Tensor:
    """For each row what its largest value is `limit` times of: (rows, 1)."""
    return rows.abs().amax(dim=1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny) / limit


def _input_range() -> int:
    """The largest rounded input: 127 where the processor adds products of 8-bit integers in 32 bits; else they overflow
    16 bits beyond 63."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return 127 if any(capabilities.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8")) else 63


PRODUCTS: dict[str, Callable[[Tensor, Tensor | None], Product]] = {
    "bfloat16": bfloat16_product,
    "int8": int8_product,
}


def round_weights(model: nn.Module, precision: str) -> Callable[[Tensor, Tensor | None], Product]:
    """Have every `Linear` of `model` compute in this precision, a key of PRODUCTS; returns the maker of products.

    Raises UserError for int8 on a GPU, and where this PyTorch cannot compute it.
    """
    make = PRODUCTS[precision]
    if precision == "int8":
        _check_int8(next(model.parameters()).device)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, Linear):
                layer.product = make(layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
    return make


def _check_int8(device: torch.device) -> None:
    if device.type != "cpu":
        raise UserError("precision int8: is for the CPU; choose bfloat16 or float32 on a GPU")
    try:
        int8_product(torch.ones(2, 2), None)(torch.ones(1, 2))
    except (AttributeError, RuntimeError) as error:
        raise UserError(f"precision int8: this PyTorch cannot compute it here ({error}); choose bfloat16") from error
