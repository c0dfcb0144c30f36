"""The switch to oneDNN keeps float32, or is not made."""

from collections.abc import Iterator

import pytest
import torch

from nmt.ops import products
from nmt.ops.products import FLOAT32_ERROR, TRIAL_SIZES, fast_products, onednn_is_exact, product_error


@pytest.fixture(autouse=True)
def _fresh_trial() -> Iterator[None]:
    onednn_is_exact.cache_clear()
    yield
    onednn_is_exact.cache_clear()


def test_products_stay_float32_and_the_setting_is_restored() -> None:
    former = torch.backends.mkldnn.matmul.fp32_precision
    with fast_products():
        assert all(product_error(*sizes) < FLOAT32_ERROR for sizes in [*TRIAL_SIZES, (7, 1000, 33), (1000, 17, 1000)])
    assert torch.backends.mkldnn.matmul.fp32_precision == former


def test_a_processor_that_would_round_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    former = torch.backends.mkldnn.matmul.fp32_precision
    monkeypatch.setattr(products, "product_error", lambda *sizes: 3e-3)
    with fast_products():
        assert torch.backends.mkldnn.matmul.fp32_precision == former


def test_without_the_switch_or_the_library_nothing_is_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "product_error", lambda *sizes: 0.0)
    assert onednn_is_exact.__wrapped__() is True
    with monkeypatch.context() as changed:
        changed.setattr(products, "_settings", object)  # an older PyTorch, which has no such setting
        assert onednn_is_exact.__wrapped__() is False
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert onednn_is_exact.__wrapped__() is False


def test_the_measure_tells_the_two_apart() -> None:
    """Inputs rounded to bfloat16 must be recognised as such by the same error measure."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(80, 512, generator=generator), torch.randn(1536, 512, generator=generator)
    exact = left.double() @ right.double().T
    rounded = left.bfloat16().double() @ right.bfloat16().double().T
    assert (rounded - exact).abs().max() / exact.abs().max() > 10 * FLOAT32_ERROR
