"""The choice of kernels and precision, and what bfloat16 may and may not touch."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nmt.ops.computing import Computing, computing, fused, native_bfloat16, now, rounded
from nmt.ops.linear import Linear
from nmt.ops.loss import smoothed_cross_entropy
from nmt.ops.products import CHUNK, product
from nmt.ops.recurrence import GRU, LSTM
from nmt.ops.sequence import sequence
from nmt.ops.steps import StepLinear, weight_gradients_at_once


def test_memory_that_is_not_written_is_nan() -> None:
    """In these tests (see conftest.py): so no test passes by what happened to be there."""
    assert torch.empty(3, 5).isnan().all()


def test_the_choice_holds_inside_the_block_and_nests() -> None:
    assert now() == Computing(True, torch.float32)
    with computing(fused=False, precision=torch.bfloat16):
        assert not fused()
        with computing():
            assert now() == Computing(True, torch.float32)
        assert now() == Computing(False, torch.bfloat16)
    assert fused()


def test_only_float32_is_rounded() -> None:
    with computing(precision=torch.bfloat16):
        assert rounded(torch.ones(2)).dtype == torch.bfloat16
        assert rounded(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert rounded(torch.ones(2)).dtype == torch.float32


@pytest.mark.parametrize("rows", [1, 15, 16, CHUNK, CHUNK + 1, 3 * CHUNK - 7])
def test_products_of_any_number_of_rows(rows: int) -> None:
    torch.manual_seed(2)
    left, matrix, bias = torch.randn(rows, 5), torch.randn(5, 7), torch.randn(7)
    expected = (left.double() @ matrix.double() + bias.double()).float()
    torch.testing.assert_close(product(left, matrix, bias), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        product(left.view(1, rows, 5), matrix), (expected - bias).view(1, rows, 7), atol=1e-5, rtol=0
    )


def _linear(inputs: Tensor, weight: Tensor) -> Tensor:
    layer = Linear(weight.size(1), weight.size(0), bias=False)
    del layer.weight
    layer.weight = weight  # type: ignore[assignment]
    return layer(inputs).tanh()  # type: ignore[no-any-return]


def _steps(inputs: Tensor, weight: Tensor) -> Tensor:
    layer = StepLinear(weight.size(1), weight.size(0), bias=False)
    del layer.weight
    layer.weight = weight  # type: ignore[assignment]
    with weight_gradients_at_once() as loop:
        return loop.outputs(torch.stack([layer(row.unsqueeze(0)).tanh() for row in inputs]))[0]


def _sequence(inputs: Tensor, weight: Tensor) -> Tensor:
    size = weight.size(1)
    from_inputs = inputs.repeat(1, 3).view(-1, 1, 1, 3 * size)
    recurrent, first = weight.repeat(3, 1)[: 3 * size].unsqueeze(0), (torch.ones(1, 1, size),)
    return sequence(GRU, from_inputs, recurrent, torch.zeros(1, 3 * size), first, None)[0]


def _lstm_sequence(inputs: Tensor, weight: Tensor) -> Tensor:
    size = weight.size(1)
    from_inputs = inputs.repeat(1, 4).view(-1, 1, 1, 4 * size)
    recurrent, first = weight.repeat(3, 1)[: 4 * size].unsqueeze(0), torch.ones(1, 1, size)
    return sequence(LSTM, from_inputs, recurrent, None, (first, first), None)[0]


def _loss(inputs: Tensor, weight: Tensor) -> Tensor:
    targets = torch.arange(inputs.size(0)) % weight.size(0)
    return smoothed_cross_entropy(inputs, weight, targets, smoothing=0.1)[0]


@pytest.mark.parametrize("compute", [_linear, _steps, _sequence, _lstm_sequence, _loss])
def test_bfloat16_is_near_float32_and_leaves_float32_tensors(compute: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Values and gradients differ by the rounding of products (2⁻⁹ of each factor), and are float32 all the same."""
    torch.manual_seed(5)
    inputs, weight = torch.randn(9, 6), torch.randn(11, 6)
    computed = []
    for precision in (torch.float32, torch.bfloat16):
        tensors = inputs.clone().requires_grad_(), weight.clone().requires_grad_()
        with computing(precision=precision):
            result = compute(*tensors)
        result.sum().backward()  # outside the block: it computes as the forward pass did
        computed.append([result.detach(), *(tensor.grad for tensor in tensors)])
    for exact, near in zip(*computed, strict=True):
        assert exact is not None
        assert near is not None
        assert near.dtype == torch.float32
        error = float((near - exact).norm() / exact.norm())
        assert 1e-6 < error < 0.02, error


def test_plain_kernels_are_the_library_s() -> None:
    layer, inputs = Linear(3, 2), torch.randn(4, 3)
    with computing(fused=False):
        assert torch.equal(layer(inputs), nn.functional.linear(inputs, layer.weight, layer.bias))
        assert layer(inputs).grad_fn.name() == "AddmmBackward0"


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("compute", [_linear, _steps, _sequence, _lstm_sequence, _loss])
def test_a_backward_pass_computes_as_the_forward_pass_did(
    compute: Callable[[Tensor, Tensor], Tensor], precision: torch.dtype
) -> None:
    """To the bit, whether it runs inside the block or outside."""
    torch.manual_seed(5)
    inputs, weight = torch.randn(9, 6), torch.randn(11, 6)
    gradients = []
    for inside in (True, False):
        tensors = inputs.clone().requires_grad_(), weight.clone().requires_grad_()
        with computing(precision=precision):
            loss = compute(*tensors).square().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        gradients.append([tensor.grad for tensor in tensors])
    for within, outside in zip(*gradients, strict=True):
        assert torch.equal(within, outside)


def test_a_linear_layer_has_its_own_backward_pass() -> None:
    result = Linear(6, 11)(torch.randn(9, 6))
    assert result.grad_fn.name() == "_LinearBackward"


def test_the_choice_in_words() -> None:
    assert str(Computing()) == "fused kernels, products in float32"
    assert str(Computing(False, torch.bfloat16)) == "plain kernels, products in bfloat16"


@pytest.mark.parametrize(
    ("capabilities", "library", "expected"),
    [
        ({"avx512_bf16": True}, True, True),
        ({"amx_bf16": True}, True, True),
        ({"amx_bf16": False, "avx2": True}, True, False),
        ({"amx_bf16": True}, False, False),
        (None, True, False),  # an older PyTorch cannot tell
    ],
)
def test_native_bfloat16_by_what_the_processor_has(
    capabilities: dict[str, bool] | None, library: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if capabilities is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: library)
    assert native_bfloat16.__wrapped__(torch.device("cpu")) is expected


@pytest.mark.parametrize("supported", [True, False])
def test_native_bfloat16_of_a_gpu_is_not_emulated(supported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or supported
    )
    assert native_bfloat16.__wrapped__(torch.device("cuda")) is supported


def test_native_bfloat16_is_known_for_the_cpu() -> None:
    information = Path("/proc/cpuinfo")
    if not information.exists():
        pytest.skip("needs /proc/cpuinfo to compare with")
    flags = information.read_text(encoding="utf-8").split()
    assert native_bfloat16(torch.device("cpu")) == ("avx512_bf16" in flags or "amx_bf16" in flags)
