"""How the operations compute: by the fused kernels or by their plain twins, and in which precision the large products.

Everything in `nmt.ops` that has a plain twin asks here; the caller of the model chooses, for a block of code:

    with computing(fused=False):                                # the plain twins, for comparison
        ...
    with computing(precision=torch.bfloat16):                   # large products computed in bfloat16
        ...

Their inputs and results are rounded then, while sums inside a product are in float32. It holds for products only, and
for tensors that would be float32: states, softmax, loss, gradients of weights and the weights themselves stay float32,
and a float64 model stays one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Computing(NamedTuple):
    """The choice."""

    fused: bool = True
    precision: torch.dtype = torch.float32

    def __str__(self) -> str:
        return f"{'fused' if self.fused else 'plain'} kernels, products in {str(self.precision).removeprefix('torch.')}"


DEFAULT = Computing()
_current: ContextVar[Computing] = ContextVar("computing", default=DEFAULT)


@contextmanager
def computing(fused: bool = True, precision: torch.dtype = torch.float32) -> Iterator[None]:
    """Inside the block, compute so. A backward pass computes as the forward pass did, wherever it runs."""
    token = _current.set(Computing(fused, precision))
    try:
        yield
    finally:
        _current.reset(token)


def now() -> Computing:
    """The present choice, for a backward pass to take up again: `with computing(*choice)`."""
    return _current.get()


def fused() -> bool:
    """Whether the fused kernels are to be used."""
    return _current.get().fused


def rounded(values: Tensor) -> Tensor:
    """`values`, rounded to the precision of large products if they are float32."""
    precision = _current.get().precision
    return values.to(precision) if values.dtype == torch.float32 else values


@cache
def native_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 products run on instructions of their own there, and not as float32 with conversions."""
    if device.type != "cpu":
        return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # PyTorch 2.9 and later tell
    return torch.backends.mkldnn.is_available() and any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))
