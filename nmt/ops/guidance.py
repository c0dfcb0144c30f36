"""The loss that guides attention: its cross-entropy with word alignments, of which only the links are stored.

Chen, Matusov, Khadivi & Peter (2016), "Guided Alignment Training for Topic-Aware Neural Machine Translation", arXiv
1607.01628, who offer the squared error too; this is their cross-entropy, in the unit of the other loss.
"""

import torch
from torch import Tensor

SMALLEST_WEIGHT = 1e-30  # 1 over it is still far from the largest number of float32


def guided_loss(weights: Tensor, rows: Tensor, targets: Tensor, sources: Tensor, shares: Tensor) -> Tensor:
    """The loss summed over the target positions of a batch, in nats:

        - Σ_i Σ_t Σ_j A_itj log a_itj

    `weights` a (batch, target_length, source_length) are the attention's. The others, all (links,), are i, t, j and the
    value of A wherever it is not 0, so a target position without a link adds nothing.

    Weights below SMALLEST_WEIGHT are left out, value and gradient: outside the window of a local scope a weight is 0,
    and nothing can raise it.
    """
    attended = weights[rows, targets, sources]
    reached = torch.where(attended >= SMALLEST_WEIGHT, attended, 1.0)
    return -(shares.to(weights.dtype) * reached.log()).sum()
