"""Work in halves: what does not fit is cut until it does, and other failures are not taken for a lack of memory."""

from collections.abc import Sequence

import pytest
import torch

from nmt.ops.memory import in_halves, out_of_memory

EMPTIED = -1


@pytest.mark.parametrize(
    ("most", "items", "expected"),
    [
        (3, 11, [11, EMPTIED, 5, EMPTIED, 2, 3, 6, EMPTIED, 3, 3]),
        (1, 4, [4, EMPTIED, 2, EMPTIED, 1, 1, 2, EMPTIED, 1, 1]),
    ],
)
def test_what_does_not_fit_is_done_in_halves(
    most: int, items: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the halves are tried, PyTorch gives back what it keeps of a GPU's memory."""
    tried: list[int] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: tried.append(EMPTIED))

    def work(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        if len(batch) > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        return [10 * item for item in batch]

    assert in_halves(work, range(items)) == [10 * item for item in range(items)]
    assert tried == expected
    assert in_halves(work, []) == []


def test_a_single_item_that_does_not_fit_and_another_failure() -> None:
    def too_large(batch: Sequence[int]) -> list[int]:
        raise MemoryError

    tried = []

    def broken(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        raise RuntimeError("shapes do not match")

    with pytest.raises(MemoryError):
        in_halves(too_large, [1, 2, 3])
    with pytest.raises(RuntimeError, match="shapes"):
        in_halves(broken, [1, 2, 3])
    assert tried == [3]


def test_pytorchs_own_errors_are_known() -> None:
    for sizes in ((1 << 60,), (1 << 40, 1 << 40)):
        with pytest.raises(RuntimeError) as error:
            torch.empty(sizes)
        assert out_of_memory(error.value), error.value
    assert out_of_memory(MemoryError())
    assert out_of_memory(torch.cuda.OutOfMemoryError("CUDA out of memory"))
    assert out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    assert out_of_memory(RuntimeError("could not create a primitive"))
    assert not out_of_memory(RuntimeError("anything else"))
