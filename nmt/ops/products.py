"""Which library computes float32 matrix products on a CPU.

PyTorch sends them to MKL, which on some processors reaches less than half of what oneDNN's kernels do (measured on an
AMD EPYC of the Zen 5 generation: 190 against 430 GFLOP/s). PyTorch's one switch to oneDNN is its permission to round
inputs to bfloat16; whether oneDNN then does round depends on the processor. So the permission is given only where a
trial shows that it changes nothing but the library: the products stay float32.
"""

from typing import Any, Literal

import torch

TRIAL_SIZES = (
    (3, 512, 1536),
    (80, 512, 1536),
    (256, 640, 4096),
)  # rows, inner, columns: a decoder step, a batch, an output layer
FLOAT32_ERROR = 1e-5  # relative to the largest value; bfloat16 errs by about 2e-3, float32 by about 1e-6


def prefer_onednn_products() -> Literal["oneDNN", "MKL"]:
    """Send float32 products to oneDNN where that keeps their precision; returns the library in use from now on.

    A setting of the whole process, to be made once by a command, before the model is built. The outcome depends on the
    processor alone, not on timing, so that two runs on one machine compute the same numbers.
    """
    if not torch.backends.mkldnn.is_available():
        return "MKL"
    try:
        settings: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
        settings.fp32_precision = "bf16"
    except (AttributeError, RuntimeError):  # an older PyTorch without the switch
        return "MKL"
    if all(_error(*sizes) < FLOAT32_ERROR for sizes in TRIAL_SIZES):
        return "oneDNN"
    settings.fp32_precision = "ieee"
    return "MKL"


def _error(rows: int, inner: int, columns: int) -> float:
    """The largest error of a float32 product against float64, relative to the largest value."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(rows, inner, generator=generator)
    right = torch.randn(columns, inner, generator=generator)
    exact = left.double() @ right.double().t()
    return float(((left @ right.t()).double() - exact).abs().max() / exact.abs().max())
