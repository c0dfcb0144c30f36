"""Masks over positions, which are True at real tokens everywhere in the toolkit, with their softmax; masks of dropout.

A dropout mask is drawn once for a whole sequence, from uniform numbers: on a CPU that is faster than Bernoulli draws.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """The mask of sentences padded at their end: mask[i, j] = (j < lengths[i]).

    `lengths` (batch,) counts tokens; the result is (batch, size), True at real tokens, on the device of `lengths`.
    """
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis of `scores`, exactly 0 where `mask` is False, and 0 throughout where all of it is.

    a_s = exp(e_s) / Σ_{s': mask} exp(e_s'). `mask` must broadcast to the shape of `scores`; None is True everywhere.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


def dropout_mask(
    shape: Sequence[int], rate: float, *, like: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """Inverted dropout: each element is 0 with probability `rate` and 1 / (1 - rate) otherwise.

    The mask has `shape`, and the type and device of `like`. It is drawn from `generator`, by default PyTorch's global
    one.
    """
    kept = torch.rand(*shape, device=like.device, generator=generator) >= rate
    return kept.to(like.dtype).mul_(1.0 / (1.0 - rate))


def dropout(values: Tensor, rate: float, *, training: bool, locked: int | None = None) -> Tensor:
    """`values` times a fresh dropout mask in training; `values` itself otherwise.

    `locked` is an axis along which the mask stays the same: the steps of a sentence (Gal & Ghahramani 2016, arXiv
    1512.05287), or the units of an embedding, which drops whole words, at each place by itself (Sennrich, Haddow &
    Birch 2016, arXiv 1606.02891).
    """
    if not training or rate == 0.0:
        return values
    shape = [1 if axis == locked else size for axis, size in enumerate(values.shape)]
    return values * dropout_mask(shape, rate, like=values)
