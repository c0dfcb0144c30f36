"""A target that is given, step by step, as search would come by it: for pairs too long for all steps at once.

log p(y | x) = Σ_t log p(y_t | y_1 … y_{t-1}, x). The source is encoded once, and the memory grows with the length of
the source, where that of all steps at once grows with source × target, and for some scores × size. Training's
validation and forced decoding both score such pairs here; it knows tensors, and no corpus.
"""

from itertools import pairwise

import torch
from torch import Tensor

from nmt.models.seq2seq import Seq2Seq

LARGEST_AREA = 500**2
"""Source × target tokens of one pair, both with their ends, beyond which it is done step by step: no segment that is
translated is longer than 500 pieces."""


def stepwise_log_probability(
    model: Seq2Seq, source: Tensor, target: Tensor, *, attention: bool = False
) -> tuple[float, Tensor | None]:
    """Nats of `target` (1, target_length + 1), BEGIN to END, given `source` (1, source_length) with END and no padding.

    With `attention` its weights as well, (target_length, source_length). For a model in evaluation, without gradients.
    """
    device = model.output_weight.device
    state = model.start(source.to(device), torch.tensor([source.size(1)], device=device))
    tokens = target[0].tolist()
    total, rows = 0.0, []
    for token, following in pairwise(tokens):
        vectors, weights, state = model.advance(torch.tensor([token], device=device), state)
        total += float(model.log_probabilities(vectors)[0, following])
        if attention:
            rows.append(weights[0].cpu())
    return total, torch.stack(rows) if attention else None
