"""Linear layers for inference, whose weights are laid out once in the processor's own form, and rounded on request.

`pack_weights` gives every layer of a model a product of its own that reads the packed weight: whole (float32), or
rounded to bfloat16 or to 8-bit integers. The model keeps its weights as they are, so that they take twice the memory,
and three times for those that Luong's decoder multiplies at once. Packing copies: after changing weights, pack again.
Where gradients are recorded, nothing is packed.

On a CPU the products are oneDNN's, in the precision that they are asked for, whatever PyTorch is permitted to round. A
packed weight is read once and in order, which a step with few rows, of one sentence, consists of: for 5 rows and a
weight of 8000 × 512 it takes a quarter of the time.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.ops.computing import native_bfloat16
from nmt.ops.linear import linear
from nmt.ops.products import KeepsPacked, MakeProduct, Product, in_pieces, product

WEIGHT_RANGE = 127  # of a signed 8-bit integer, used symmetrically
USUAL_ROWS = 64  # what a weight is packed for; oneDNN takes it for any number of rows
LONGEST, MULTIPLE = 1024, 8  # rows computed at once, and what their number is filled up to a multiple of: few shapes


def float32_product(weight: Tensor, bias: Tensor | None) -> Product:
    """x Wᵀ + b."""
    if not _packs(weight):
        return partial(linear, weight=weight, bias=bias)
    return _packed(weight, bias)


def bfloat16_product(weight: Tensor, bias: Tensor | None) -> Product:
    """x Wᵀ + b with x, W, and the product x Wᵀ rounded to bfloat16; b is added in the type of x."""
    rounded = weight.bfloat16()
    if not _packs(rounded):
        turned = rounded.t()
        return lambda inputs: product(inputs, turned, bias)
    multiply = _packed(rounded, None)

    def rounding(inputs: Tensor) -> Tensor:
        result = multiply(inputs.bfloat16()).to(inputs.dtype)
        return result if bias is None else result.add_(bias)

    return rounding


def _packed(weight: Tensor, bias: Tensor | None) -> Product:
    pack, compute = _operations()
    packed = pack(weight, USUAL_ROWS)
    multiply = partial(_multiplied, compute, packed, bias)
    columns = weight.size(0)

    def of_any_shape(inputs: Tensor) -> Tensor:
        if inputs.dim() == 2 and inputs.size(0) < MULTIPLE:
            return multiply(inputs)  # most steps of one sentence: there is nothing to cut or to fill up
        rows = inputs.reshape(-1, inputs.size(-1))
        result = in_pieces(multiply, rows, longest=LONGEST, multiple=MULTIPLE)
        return result.view(*inputs.shape[:-1], columns)

    return of_any_shape


def _multiplied(compute: Callable[..., Tensor], weight: Tensor, bias: Tensor | None, rows: Tensor) -> Tensor:
    return compute(rows, weight, bias, "none", [], "")


def _operations() -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    operations: Any = torch.ops.mkldnn
    return operations._reorder_linear_weight.default, operations._linear_pointwise.default


def _packs(weight: Tensor) -> bool:
    """Whether weights like this one can be packed here; products with others are those of `nmt.ops.products`."""
    return weight.device.type == "cpu" and _packs_type(weight.dtype)


def inner_precision(precision: str, device: torch.device) -> str:
    """What the layers before the output layer compute in, where it computes in `precision`."""
    if precision != "int8":
        return precision
    return "bfloat16" if native_bfloat16(device) else "float32"


def packs_all(weight: Tensor, precision: str) -> bool:
    """Whether no product of a model with weights like this one is left to `nmt.ops.products`, in this precision."""
    return _packs(weight.bfloat16() if inner_precision(precision, weight.device) == "bfloat16" else weight)


@cache
def _packs_type(kind: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        pack, compute = _operations()
        one = torch.ones(1, 1, dtype=kind)
        return bool(_multiplied(compute, pack(one), None, one) == 1)
    except (AttributeError, RuntimeError):  # a type that it does not have, or another PyTorch
        return False


def int8_product(weight: Tensor, bias: Tensor | None) -> Product:
    """x Wᵀ + b with x and W rounded to 8-bit integers, a scale for each row of x and of W: on a CPU, by oneDNN.

    y_ij = s_i t_j Σ_k round(x_ik / s_i) round(W_jk / t_j) + b_j, s_i = max_k |x_ik| / 127, t_j = max_k |W_jk| / 127.
    The sums of integers are exact, so no row depends on another.
    """
    scales = _scales(weight, WEIGHT_RANGE)
    packed = torch.ops.onednn.qlinear_prepack((weight / scales).round().to(torch.int8).contiguous(), None)
    zeros = torch.zeros(weight.size(0), dtype=torch.int32)
    weight_scales, limit = scales.squeeze(1), _input_range()

    def multiply(rows: Tensor) -> Tensor:
        result: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows, 1.0, limit + 1, packed, weight_scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return result

    def rounding(inputs: Tensor) -> Tensor:
        flat = inputs.reshape(-1, inputs.size(-1))
        row_scales = _scales(flat, limit)
        rounded = (flat / row_scales).round_().add_(limit + 1).to(torch.uint8)
        result = in_pieces(multiply, rounded, longest=LONGEST, multiple=MULTIPLE).mul_(row_scales)
        if bias is not None:
            result += bias
        return result.view(*inputs.shape[:-1], result.size(1))

    return rounding


def _scales(rows: Tensor, limit: int) -> Tensor:
    """For each row what its largest value is `limit` times of: (rows, 1)."""
    return rows.abs().amax(dim=1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny) / limit


def _input_range() -> int:
    """The largest rounded input: 127 where the processor adds products of 8-bit integers in 32 bits; else they overflow
    16 bits beyond 63."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return 127 if any(capabilities.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8")) else 63


PRODUCTS: dict[str, MakeProduct] = {
    "float32": float32_product,
    "bfloat16": bfloat16_product,
    "int8": int8_product,
}


def pack_weights(model: nn.Module, precision: str) -> MakeProduct:
    """Pack every `KeepsPacked` of `model` in this precision, a key of PRODUCTS; returns it for the output layer.

    With int8, only the output layer has 8 bits, which is most of the work of a small model. The other layers compute in
    bfloat16, or in float32 where the processor has no instructions for that: a state carries their errors on. The root
    mean square error of log-probabilities was 0.007 so, 0.016 with 8 bits throughout, and 0.011 in bfloat16. The
    encoder's recurrent network is never rounded.

    Raises UserError for an unknown precision, for int8 on a GPU, and where this PyTorch cannot compute it.
    """
    if precision not in PRODUCTS:
        raise UserError(f"precision {precision}: unknown; choose one of {', '.join(PRODUCTS)}")
    device = next(model.parameters()).device
    if precision == "int8":
        _check_int8(device)
    inner = inner_precision(precision, device)
    for module in model.modules():
        if isinstance(module, KeepsPacked):
            module.pack(PRODUCTS[inner])
    return PRODUCTS[precision]


def _check_int8(device: torch.device) -> None:
    if device.type != "cpu":
        raise UserError("precision int8: is for the CPU; choose bfloat16 or float32 on a GPU")
    try:
        int8_product(torch.ones(2, 2), None)(torch.ones(1, 2))
    except (AttributeError, RuntimeError) as error:
        raise UserError(f"precision int8: this PyTorch cannot compute it here ({error}); choose bfloat16") from error
