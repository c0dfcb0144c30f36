"""Products with packed weights, for inference: exact or near it, row by row, and refused where there are none."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.ops import packed_weights
from nmt.ops.linear import ConcatLinear, Linear
from nmt.ops.packed_weights import PRODUCTS, _input_range, _packs_type, int8_product, pack_weights
from nmt.ops.products import KeepsPacked


def problem(rows: int = 37) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(6)
    return torch.randn(rows, 29) * torch.rand(rows, 1), torch.randn(11, 29) * torch.rand(11, 1), torch.randn(11)


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("rows", [1, 5, 8, 23, 1030])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_float32_products_are_exact(
    rows: int, dtype: torch.dtype, packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where PyTorch cannot pack, too; and a float64 model stays one."""
    if not packs:
        monkeypatch.setattr("nmt.ops.packed_weights._packs_type", lambda kind: False)
    inputs, weight, bias = (tensor.to(dtype) for tensor in problem(rows))
    for own_bias in (None, bias):
        product = PRODUCTS["float32"](weight, own_bias)(inputs.view(rows, 1, 29))
        exact = nn.functional.linear(inputs.double(), weight.double(), None if own_bias is None else bias.double())
        assert product.dtype == dtype
        tolerance = 1e-5 if dtype == torch.float32 else 1e-14
        torch.testing.assert_close(product.double().view(rows, 11), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("rows", "pieces"), [(1, [1]), (5, [5]), (8, [8]), (23, [24]), (1024, [1024]), (1030, [1024, 6])]
)
@pytest.mark.parametrize("three_dimensional", [True, False])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_how_many_rows_are_multiplied_at_once(
    precision: str, rows: int, pieces: list[int], three_dimensional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 1024, and from 8 on a multiple of 8, for oneDNN keeps a kernel for every number that it meets."""
    multiplied, met = packed_weights._multiplied, []

    def noting(compute: Callable[..., Tensor], weight: Tensor, bias: Tensor | None, rows: Tensor) -> Tensor:
        met.append(rows.size(0))
        return multiplied(compute, weight, bias, rows)

    if not packed_weights._packs_type(getattr(torch, precision)):
        pytest.skip(f"nothing is packed here in {precision}")
    monkeypatch.setattr(packed_weights, "_multiplied", noting)
    inputs, weight, bias = problem(rows)
    PRODUCTS[precision](weight, bias)(inputs.view(rows, 1, 29) if three_dimensional else inputs)
    assert met == pieces


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("precision", "error"), [("bfloat16", 0.006), ("int8", 0.015)])
def test_products_are_near_the_exact_ones(
    precision: str, error: float, packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packs:
        monkeypatch.setattr("nmt.ops.packed_weights._packs_type", lambda kind: False)
    inputs, weight, bias = problem()
    exact = inputs @ weight.t()
    for expected, product in (
        (exact, PRODUCTS[precision](weight, None)(inputs)),
        (exact, PRODUCTS[precision](weight, bias)(inputs) - bias),
        (exact.view(37, 1, 11), PRODUCTS[precision](weight, None)(inputs.view(37, 1, 29))),
    ):
        assert product.dtype == torch.float32
        assert 1e-4 < float((product - expected).norm() / expected.norm()) < error


def test_int8_multiplies_as_many_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    in_pieces = packed_weights.in_pieces

    def noting(multiply: Callable[[Tensor], Tensor], rows: Tensor, *, longest: int, multiple: int) -> Tensor:
        sizes.append((longest, multiple))
        return in_pieces(multiply, rows, longest=longest, multiple=multiple)

    monkeypatch.setattr(packed_weights, "in_pieces", noting)
    inputs, weight, bias = problem()
    int8_product(weight, bias)(inputs)
    assert sizes == [(1024, 8)]


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx512_vnni": True}, 127),
        ({"avx_vnni": True, "avx512_vnni": False}, 127),
        ({"amx_int8": True}, 127),
        ({"avx2": True, "avx_vnni": False}, 63),
        (None, 63),  # an older PyTorch cannot tell
    ],
)
def test_the_range_of_the_inputs_by_what_the_processor_has(
    capabilities: dict[str, bool] | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if capabilities is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert _input_range() == expected


def test_int8_by_hand() -> None:
    """Rows of small integers whose largest is 127 are rounded to themselves; a row of zeros stays one."""
    limit = _input_range()
    inputs = torch.tensor([[float(limit), -3.0, 0.0], [0.0, 0.0, 0.0], [-float(limit), 5.0, 1.0]])
    weight = torch.tensor([[127.0, 1.0, -7.0], [2.0, -127.0, 4.0]])
    product = int8_product(weight, torch.tensor([0.5, 0.0]))(inputs)
    torch.testing.assert_close(product, inputs @ weight.t() + torch.tensor([0.5, 0.0]), rtol=1e-6, atol=1e-6)


def test_a_row_of_int8_does_not_depend_on_the_others() -> None:
    inputs, weight, bias = problem()
    multiply = int8_product(weight, bias)
    alone = torch.cat([multiply(row) for row in inputs.split(1)])
    assert torch.equal(multiply(inputs), alone)
    assert torch.equal(multiply(torch.cat((inputs, 1000 * inputs)))[:37], alone)


@torch.no_grad()
@pytest.mark.parametrize(
    ("precision", "native", "inner"),
    [
        ("float32", True, "float32"),
        ("bfloat16", False, "bfloat16"),
        ("int8", True, "bfloat16"),
        ("int8", False, "float32"),
    ],
)
def test_every_layer_gets_its_product(
    precision: str, native: bool, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """int8 is for the output layer, whose maker is returned; the others are in bfloat16 where that is quick."""
    monkeypatch.setattr("nmt.ops.packed_weights.native_bfloat16", lambda device: native)
    model = nn.Sequential(Linear(29, 11), nn.Tanh(), nn.Sequential(Linear(11, 3, bias=False)))
    inputs, _, _ = problem()
    exact = model(inputs).detach()
    weights = [parameter.clone() for parameter in model.parameters()]
    assert pack_weights(model, precision) is PRODUCTS[precision]
    error = float((model(inputs).detach() - exact).norm() / exact.norm())
    assert error < 1e-6 if inner == "float32" else 1e-4 < error < 0.02
    assert all(torch.equal(one, other) for one, other in zip(weights, model.parameters(), strict=True))


def test_int8_is_refused_on_another_device() -> None:
    with pytest.raises(UserError, match="precision int8: is for the CPU"):
        pack_weights(nn.Sequential(Linear(2, 2)).to("meta"), "int8")


def test_nothing_is_packed_without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _packs_type.__wrapped__(torch.float32) is True
    assert _packs_type.__wrapped__(torch.int64) is False
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert _packs_type.__wrapped__(torch.float32) is False


def test_a_module_that_is_moved_alone_leaves_those_within_where_they_are() -> None:
    model = KeepsPacked[None]()
    model.layer = Linear(2, 3)
    model.to_empty(device="meta", recurse=False)
    assert model.layer.weight.device.type == "cpu"


@torch.no_grad()
def test_both_halves_of_a_concatenated_layer_are_packed() -> None:
    """What is packed is what computes: here twice what the weights would give."""
    layer = ConcatLinear(3, 4, 2)
    first, second = torch.randn(5, 3), torch.randn(5, 4)
    expected = layer.first(first), layer.second(second)
    layer.pack(lambda weight, bias: lambda rows: 2 * nn.functional.linear(rows, weight, bias))
    torch.testing.assert_close(layer.first(first), 2 * expected[0])
    torch.testing.assert_close(layer.second(second), 2 * expected[1])


def test_int8_is_refused_where_pytorch_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise RuntimeError("no oneDNN")

    monkeypatch.setattr("nmt.ops.packed_weights.int8_product", missing)
    with pytest.raises(UserError, match=r"precision int8: this PyTorch cannot compute it here .*choose bfloat16"):
        pack_weights(nn.Sequential(Linear(2, 2)), "int8")
