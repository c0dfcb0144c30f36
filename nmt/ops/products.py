"""Large matrix products: in which precision, in which pieces, and, for float32 on a CPU, by which library.

PyTorch sends them to MKL, which on some processors reaches less than half of what oneDNN's kernels do (measured on an
AMD EPYC of the Zen 5 generation: 190 against 430 GFLOP/s). PyTorch's one switch to oneDNN is its permission to round
inputs to bfloat16; whether oneDNN then does round depends on the processor. So the permission is given only where a
trial shows that it changes nothing but the library: the products stay float32.

With AVX-512 oneDNN builds, and keeps, a kernel for every shape it meets (about a megabyte and a millisecond each). It
is therefore for code that computes products of a few shapes again and again, not for a whole process; and rows are
filled up there. With AVX2 it has one kernel for all shapes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nmt.ops.computing import rounded

ROWS = 16  # the rows of a product, where they are more, are filled up to a multiple of this, and
CHUNK = 256  # longer ones are computed in pieces of this, so that oneDNN meets few shapes
OUTER_CHUNK = 512  # as are the inner sizes of outer products, of which the last are filled up to
OUTER_ROWS = 128  # a multiple of this
TRIAL_SIZES = ((3, 512, 1536), (16, 512, 1536), (80, 512, 1536), (256, 640, 4096))  # rows, inner size, columns
COMPARED = 64  # rows, and columns, of each trial at most, from the first to the last
FLOAT32_ERROR = 1e-5  # relative to the largest value; bfloat16 errs by about 2e-3, float32 by about 1e-6

_switching = Lock()
_formers: list[str] = []  # what the blocks of `fast_products` in which threads are now came upon, the first one first

Product = Callable[[Tensor], Tensor]
"""From rows (…, inner_size) to (…, columns)."""


def product(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows @ matrix + bias, for rows (…, inner_size) and a matrix (inner_size, columns); in the type of `rows`.

    The product is computed, and rounded, in the type of the matrix, which the caller has rounded if it is to be; the
    bias is added in the type of `rows`.
    """
    flat = rows.reshape(-1, rows.size(-1)).to(matrix.dtype)
    if bias is not None and matrix.dtype != rows.dtype:
        return product(rows, matrix).add_(bias)
    multiply = partial(torch.matmul, other=matrix) if bias is None else partial(torch.addmm, bias, mat2=matrix)
    with fast_products():
        result = in_pieces(multiply, flat).to(rows.dtype)
    return result.view(*rows.shape[:-1], matrix.size(1))


def in_pieces(multiply: Product, rows: Tensor) -> Tensor:
    """multiply(rows) (count, columns), for rows (count, inner_size), asked for few different numbers of rows where each
    has a kernel of its own."""
    if not has_kernels_by_shape(rows.device.type):
        return multiply(rows)
    if rows.size(0) > CHUNK:
        return torch.cat([_filled(multiply, piece) for piece in rows.split(CHUNK)])
    return _filled(multiply, rows)


def _filled(multiply: Product, rows: Tensor) -> Tensor:
    count = rows.size(0)
    return multiply(rows) if count < ROWS else multiply(_whole(rows, ROWS))[:count]


def _whole(rows: Tensor, multiple: int) -> Tensor:
    """The rows, filled up to a multiple with rows of zeros."""
    missing = -rows.size(0) % multiple
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def outer_products(left: Tensor, right: Tensor) -> Tensor:
    """Σ_i l_i r_iᵀ (left_size, right_size) over the rows of `left` (rows, left_size) and `right` (rows, right_size).

    The sum is in the type of `left`, whatever the products are rounded to.
    """
    total = left.new_zeros(left.size(1), right.size(1))
    with fast_products():
        if not has_kernels_by_shape(left.device.type):
            add_product(total, rounded(left).t(), rounded(right))
            return total
        for start in range(0, left.size(0), OUTER_CHUNK):
            first, second = (_whole(rounded(rows[start : start + OUTER_CHUNK]), OUTER_ROWS) for rows in (left, right))
            add_product(total, first.t(), second)
    return total


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to `total`, in the type of `total`."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


@contextmanager
def fast_products() -> Iterator[None]:
    """Inside the block, float32 products on the CPU go to oneDNN if that keeps their precision on this processor.

    The outcome depends on the processor alone, not on timing, so two runs on one machine compute the same numbers. The
    permission is the whole process's: of several threads the last that leaves such a block takes it back.
    """
    if not onednn_is_exact():
        yield
        return
    settings = _settings()
    with _switching:
        _formers.append(settings.fp32_precision)
        settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        with _switching:
            former = _formers.pop()
            if not _formers:
                settings.fp32_precision = former


@cache
def has_kernels_by_shape(device: str) -> bool:
    """Whether products on a device of this type are those of oneDNN with a kernel for every shape."""
    return device == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX512"


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
    A Bᵀ, A Bᵀ plus a bias in every row, A B, and C + Aᵀ B. Only some rows and columns are looked at: a kernel that
    rounds does so everywhere, and whoever starts a program waits for this. NaN if any of these elements is.
    """
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(rows, inner, generator=generator)
    right = torch.randn(columns, inner, generator=generator)
    some, across = (torch.linspace(0, size - 1, min(size, COMPARED)).long() for size in (rows, columns))
    exact = left[some].double() @ right[across].double().t()
    straight, upright = right.t().contiguous(), left.t().contiguous()
    results = (
        left @ right.t(),
        torch.addmm(torch.zeros(columns), left, right.t()),
        left @ straight,
        torch.zeros(rows, columns).addmm_(upright.t(), straight),
    )
    errors = [result[some][:, across].double().sub_(exact).abs_().max() for result in results]
    return float(torch.stack(errors).max() / exact.abs().max())


def _settings() -> Any:
    return torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
