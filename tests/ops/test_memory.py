"""Work in halves: what does not fit is cut until it does, and other failures are not taken for a lack of memory."""

from collections.abc import Sequence

import pytest
import torch

from nmt.ops.memory import in_halves, out_of_memory


def test_what_does_not_fit_is_done_in_halves() -> None:
    tried: list[int] = []

    def work(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        if len(batch) > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        return [10 * item for item in batch]

    assert in_halves(work, range(11)) == [10 * item for item in range(11)]
    assert tried == [11, 5, 2, 3, 6, 3, 3]
    assert in_halves(work, []) == []


def test_a_single_item_that_does_not_fit_and_another_failure() -> None:
    def too_large(batch: Sequence[int]) -> list[int]:
        raise MemoryError

    def broken(batch: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(MemoryError):
        in_halves(too_large, [1, 2, 3])
    with pytest.raises(RuntimeError, match="shapes"):
        in_halves(broken, [1, 2, 3])


def test_pytorchs_own_errors_are_known() -> None:
    for sizes in ((1 << 60,), (1 << 40, 1 << 40)):
        with pytest.raises(RuntimeError) as error:
            torch.empty(sizes)
        assert out_of_memory(error.value), error.value
    assert out_of_memory(MemoryError())
    assert not out_of_memory(RuntimeError("anything else"))
