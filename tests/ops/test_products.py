"""The switch to oneDNN keeps float32, or is not made."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from nmt.ops import loss, products
from nmt.ops.loss import smoothed_cross_entropy
from nmt.ops.products import (
    FLOAT32_ERROR,
    TRIAL_SIZES,
    fast_products,
    in_pieces,
    onednn_is_exact,
    outer_products,
    product,
    product_error,
)


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


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """PyTorch's switch, on a processor on which it changes nothing but the library."""
    switch = SimpleNamespace(fp32_precision="none")
    monkeypatch.setattr(products, "_settings", lambda: switch)
    monkeypatch.setattr(products, "product_error", lambda *sizes: 0.0)
    return switch


def test_the_switch_is_on_inside_the_block_alone(settings: SimpleNamespace) -> None:
    with fast_products():
        assert settings.fp32_precision == "bf16"
    assert settings.fp32_precision == "none"
    with pytest.raises(ValueError, match="inside"), fast_products():
        raise ValueError("inside")
    assert settings.fp32_precision == "none"


def test_the_switch_is_on_until_the_last_of_several_threads_has_left(settings: SimpleNamespace) -> None:
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(fast_products())
        other.enter_context(fast_products())
        one.close()
        assert settings.fp32_precision == "bf16"
        other.close()
        assert settings.fp32_precision == "none"


@pytest.mark.parametrize("wrong", range(len(TRIAL_SIZES)))
def test_every_size_is_tried_with_the_switch_on(
    wrong: int, settings: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def error(*sizes: int) -> float:
        tried.append((sizes, settings.fp32_precision))
        return 2 * FLOAT32_ERROR if sizes == TRIAL_SIZES[wrong] else 0.0

    monkeypatch.setattr(products, "product_error", error)
    assert onednn_is_exact() is False
    assert tried == [(sizes, "bf16") for sizes in TRIAL_SIZES[: wrong + 1]]
    assert settings.fp32_precision == "none"


def test_large_products_are_computed_with_the_switch_on(
    settings: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of linear layers, of their weights' gradients, and of the loss."""
    met = []

    def noting(of: object, name: str) -> None:
        inner = getattr(of, name)

        def noted(*arguments: object, **options: object) -> object:
            met.append((name, settings.fp32_precision))
            return inner(*arguments, **options)

        monkeypatch.setattr(of, name, noted)

    noting(products, "in_pieces")
    noting(products, "add_product")
    noting(loss, "_sums_and_gradient")
    product(torch.ones(2, 3), torch.ones(3, 5))
    outer_products(torch.ones(2, 3), torch.ones(2, 5))
    smoothed_cross_entropy(torch.ones(2, 3), torch.ones(5, 3), torch.tensor([0, 1]), smoothing=0.0)
    assert met == [("in_pieces", "bf16"), ("add_product", "bf16"), ("_sums_and_gradient", "bf16")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(1, [1]), (15, [15]), (16, [16]), (17, [32]), (200, [208]), (256, [256]), (300, [256, 48]), (513, [256, 256, 1])],
)
def test_few_numbers_of_rows_are_multiplied(rows: int, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of at most 256; but all together where one kernel computes all shapes."""
    met = []

    def twice(some: Tensor) -> Tensor:
        met.append(len(some))
        return 2 * some

    values = torch.arange(rows * 3.0).view(rows, 3)
    for has_kernels, numbers in ((True, expected), (False, [rows])):
        monkeypatch.setattr(products, "has_kernels_by_shape", lambda device, answer=has_kernels: answer)
        met.clear()
        assert torch.equal(in_pieces(twice, values), 2 * values)
        assert met == numbers


@pytest.mark.parametrize(
    ("rows", "expected"), [(1, [128]), (300, [384]), (512, [512]), (513, [512, 128]), (1024, [512, 512])]
)
def test_outer_products_have_few_inner_sizes(rows: int, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    met = []
    monkeypatch.setattr(products, "add_product", lambda total, left, right: met.append(len(right)))
    for has_kernels, numbers in ((True, expected), (False, [rows])):
        monkeypatch.setattr(products, "has_kernels_by_shape", lambda device, answer=has_kernels: answer)
        met.clear()
        outer_products(torch.ones(rows, 2), torch.ones(rows, 3))
        assert met == numbers


def test_a_gpu_has_no_kernels_by_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert [products.has_kernels_by_shape.__wrapped__(device) for device in ("cpu", "cuda")] == [True, False]


def test_the_switch_is_pytorchs() -> None:
    assert products._settings() is torch.backends.mkldnn.matmul


@pytest.mark.parametrize("place", [0, -1])
def test_the_error_is_the_largest_of_all_layouts(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """One wrong element in one of four products; and the measure depends on nothing but the processor."""
    assert product_error(3, 5, 7) == product_error(3, 5, 7) < FLOAT32_ERROR
    multiply = torch.addmm

    def wrong(*arguments: Tensor) -> Tensor:
        result = multiply(*arguments)
        result[place, place] += 0.1 * result.abs().max()
        return result

    monkeypatch.setattr(torch, "addmm", wrong)
    assert product_error(30, 5, 70) == pytest.approx(0.1, rel=0.01)

    def never(*arguments: Tensor) -> Tensor:
        return multiply(*arguments) * torch.nan

    monkeypatch.setattr(torch, "addmm", never)
    assert math.isnan(product_error(30, 5, 70))


def test_without_the_switch_or_the_library_nothing_is_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "product_error", lambda *sizes: 0.0)
    assert onednn_is_exact.__wrapped__() is True
    with monkeypatch.context() as changed:
        changed.setattr(products, "_settings", object)  # an older PyTorch, which has no such setting
        assert onednn_is_exact.__wrapped__() is False
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert onednn_is_exact.__wrapped__() is False


def test_the_measure_tells_the_two_apart() -> None:
    """Inputs rounded to bfloat16 must be recognized as such by the same error measure."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(80, 512, generator=generator), torch.randn(1536, 512, generator=generator)
    exact = left.double() @ right.double().T
    rounded = left.bfloat16().double() @ right.bfloat16().double().T
    assert (rounded - exact).abs().max() / exact.abs().max() > 10 * FLOAT32_ERROR
