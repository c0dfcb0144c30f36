"""Which library computes float32 matrix products on a CPU.

PyTorch sends them to MKL, which on some processors reaches less than half of what oneDNN's kernels do (measured on an
AMD EPYC of the Zen 5 generation: 190 against 430 GFLOP/s). PyTorch's one switch to oneDNN is its permission to round
inputs to bfloat16; whether oneDNN then does round depends on the processor. So the permission is given only where a
trial shows that it changes nothing but the library: the products stay float32.

oneDNN builds, and keeps, a kernel for every shape it meets (about a megabyte and a millisecond each). It is
therefore for code that computes products of a few shapes again and again, not for a whole process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

TRIAL_SIZES = ((3, 512, 1536), (16, 512, 1536), (80, 512, 1536), (256, 640, 4096))  # rows, inner size, columns
FLOAT32_ERROR = 1e-5  # relative to the largest value; bfloat16 errs by about 2e-3, float32 by about 1e-6


@contextmanager
def fast_products() -> Iterator[None]:
    """Inside the block, float32 products on the CPU go to oneDNN if that keeps their precision on this processor.

    The outcome depends on the processor alone, not on timing, so two runs on one machine compute the same numbers.
    """
    if not onednn_is_exact():
        yield
        return
    settings = _settings()
    former = settings.fp32_precision
    settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        settings.fp32_precision = former


@cache
def onednn_is_exact() -> bool:
    """Whether oneDNN, permitted to round, computes float32 products here with the precision of float32."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        settings = _settings()
        former = settings.fp32_precision
        settings.fp32_precision = "bf16"
    except (AttributeError, RuntimeError):  # an older PyTorch, without the switch
        return False
    try:
        return all(product_error(*sizes) < FLOAT32_ERROR for sizes in TRIAL_SIZES)
    finally:
        settings.fp32_precision = former


def product_error(rows: int, inner: int, columns: int) -> float:
    """The largest error of a float32 product against float64, relative to the largest value.

    Over the layouts that the loss and the steps of a decoder use, for each of which oneDNN may choose another kernel:
    A Bᵀ, A Bᵀ plus a bias in every row, A B, and C + Aᵀ B.
    """
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(rows, inner, generator=generator)
    right = torch.randn(columns, inner, generator=generator)
    exact = left.double() @ right.double().t()
    straight, upright = right.t().contiguous(), left.t().contiguous()
    found = (
        left @ right.t(),
        torch.addmm(torch.zeros(columns), left, right.t()),
        left @ straight,
        torch.zeros(rows, columns).addmm_(upright.t(), straight),
    )
    return max(float((each.double() - exact).abs().max() / exact.abs().max()) for each in found)


def _settings() -> Any:
    return torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
