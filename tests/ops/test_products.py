import torch

from nmt.ops import products
from nmt.ops.products import FLOAT32_ERROR, TRIAL_SIZES, prefer_onednn_products


def test_products_stay_float32() -> None:
    """Whatever library is chosen on this processor, its error is that of float32, far below bfloat16's 4e-3."""
    former = torch.backends.mkldnn.matmul.fp32_precision
    try:
        assert prefer_onednn_products() in ("oneDNN", "MKL")
        assert all(products._error(*sizes) < FLOAT32_ERROR for sizes in [*TRIAL_SIZES, (7, 1000, 33), (1000, 17, 1000)])
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = former


def test_rounding_to_bfloat16_is_refused(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    former = torch.backends.mkldnn.matmul.fp32_precision
    monkeypatch.setattr(products, "_error", lambda *sizes: 3e-3)
    try:
        assert prefer_onednn_products() == "MKL"
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = former


def test_the_measure_tells_the_two_apart() -> None:
    """Inputs rounded to bfloat16 must be recognised as such by the same error measure."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(80, 512, generator=generator), torch.randn(1536, 512, generator=generator)
    exact = left.double() @ right.double().T
    rounded = left.bfloat16().double() @ right.bfloat16().double().T
    assert (rounded - exact).abs().max() / exact.abs().max() > 10 * FLOAT32_ERROR
