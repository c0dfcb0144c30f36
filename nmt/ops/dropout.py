"""Dropout masks, drawn once for a whole sequence, from uniform numbers: on a CPU faster than Bernoulli draws."""

from collections.abc import Sequence

import torch
from torch import Tensor


def dropout_mask(shape: Sequence[int], rate: float, *, like: Tensor) -> Tensor:
    """Inverted dropout: each element is 0 with probability `rate` and 1 / (1 - rate) otherwise.

    The mask has `shape`, and the type and device of `like`. It is drawn from PyTorch's global generator.
    """
    kept = torch.rand(*shape, device=like.device) >= rate
    return kept.to(like.dtype).mul_(1.0 / (1.0 - rate))


def dropout(values: Tensor, rate: float, *, training: bool) -> Tensor:
    """`values` times a fresh dropout mask in training; `values` itself otherwise."""
    if not training or rate == 0.0:
        return values
    return values * dropout_mask(values.shape, rate, like=values)
