"""Masks over positions, and the softmax that obeys them. A mask is True at real tokens, everywhere in the toolkit."""

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
